"""For all prompts, and all sets of components: a search for counterexamples by hypothesis."""

from __future__ import annotations

from ...core.verdict import Bound, Estimate, Search
from ...errors import Invalid, ReasonCode
from ...measurement.requests import PlanBoundary, Steps, ask
from ..protocol import Claim, Property
from ..steps.examples import describe_model
from .counterexamples import SearchResult, check_competence, measure_draws, search
from .example_table import ExampleTable
from .for_all_parameters import ForAll
from .for_all_report import report
from .sample_spaces import component_spaces, example_maker, explicit_examples, prompt_space

PLANNED = "if an example fails, shrinking it takes some batches more"


def estimate(claim: Claim) -> Steps[Estimate]:
    """Draw examples, measure all draws together, search for a counterexample and shrink it."""
    try:
        import hypothesis  # noqa: F401
    except ImportError as problem:
        raise Invalid(
            f"for_all needs the package hypothesis: pip install hypothesis ({problem})", code=ReasonCode.MISSING_PACKAGE
        ) from None
    from hypothesis import Phase

    from ...strategies.search import Effort, independent_draws

    p: ForAll = claim.parameters
    space = yield from prompt_space(claim)
    universe = yield from describe_model(claim)
    fixed, sets = yield from component_spaces(claim, universe)
    effort = Effort.of_profile(p.examples, f"for_all {p.seed} {p.split_seed}")
    if not effort.allows(Phase.generate):
        raise Invalid(
            f"the hypothesis profile {effort.profile!r} generates no examples: its phases lack 'generate'", code=ReasonCode.NO_SEARCH
        )
    make = example_maker(space, sets)
    table = ExampleTable(claim, space, universe, fixed, {}, {})
    draws = independent_draws(make, effort.examples, effort.seed)
    yield from measure_draws(table, make, effort, draws)
    yield from ask(PlanBoundary(claim.model, PLANNED))
    counts = check_competence(p, table, draws)
    explicit = explicit_examples(p)
    for example in explicit:
        if example.units is not None:
            universe.index(example.units)  # refuses names that the model does not have
        if example.units is None or example.units in sets:
            yield from table.measure([example])
        else:  # the claim is not about such a set
            table.known[example] = None
    earlier, smallest = yield from search(table, make, effort, explicit)
    return _estimate_from(p, SearchResult(table, draws, counts, explicit, earlier, smallest, effort, sets))


def _estimate_from(p: ForAll, result: SearchResult) -> Estimate:
    """The share of eligible independent draws for which the claim holds, and the counterexample."""
    from ...stats.binomial import binomial_interval, binomial_upper

    table = result.table
    outcomes = [table.known[example] for example in result.draws if table.known[example] is not None]
    n, held = len(outcomes), sum(map(bool, outcomes))
    assert (result.smallest is None) == (not table.failing())
    at_most = binomial_upper(n - held, n, p.confidence)
    details = report(p, result, at_most)
    counterexample = details["counterexample"]["in_words"] if result.smallest is not None else None
    return Estimate(
        held / n, binomial_interval(held, n, p.confidence), n, p.confidence, "Clopper-Pearson interval, independent draws", "for_all",
        details, search=Search(len(table.eligible), counterexample, at_most),
    )  # fmt: skip


FOR_ALL = Property(
    "for_all", ForAll, estimate, 0.0, 1.0, "something holds for all prompts and sets of components, as far as a search can tell",
    "share of examples", grows=False, bound=Bound(at_least=1.0), external=lambda parameters: None,  # hypothesis' profile, seed, database
)  # fmt: skip
