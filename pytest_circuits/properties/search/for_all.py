"""For all prompts, and all sets of components: a search for counterexamples by hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core.units import Universe
from ...core.verdict import Bound, Estimate, Search
from ...errors import Invalid, OptionError
from ...measurement.requests import LoadTask, PlanBoundary, Steps, ask, freeze
from ...measurement.trials import Trial, TrialAnswer, measured
from ..protocol import Claim, Property
from ..steps.examples import check_share, circuits, describe, empty_set, examples, intact
from .for_all_parameters import CircuitOf, ForAll
from .for_all_report import report

if TYPE_CHECKING:
    from ...strategies.search import Effort, Example, Make
    from ...tasks.grammar.spaces import Space

ROUNDS = 200
PLANNED = "if an example fails, shrinking it takes some batches more"


@dataclass
class Table:
    """What is known of examples: the answers, and which of the examples hold (None: it is not to be judged)."""

    claim: Claim
    space: Space
    universe: Universe
    fixed: tuple[str, ...] | None
    answers: dict[Example, TrialAnswer | None]
    known: dict[Example, bool | None]
    fitting: Trial | None = None

    def trial(self, example: Example) -> Trial:
        """What is measured of an example."""
        p: ForAll = self.claim.parameters
        units = self.fixed if example.units is None else example.units
        assert units is not None
        return Trial(
            example.pair, units, p.mode, p.ablation, freeze(p.ablation_options), p.metric, self.space.scoring, self.space.stop
        )  # fmt: skip

    def measure(self, wanted: Iterable[Example]) -> Steps[None]:
        """Look at examples that are not known yet, all in one go."""
        new = [example for example in dict.fromkeys(wanted) if example not in self.known]
        if not new:
            return
        trials = [self.trial(example) for example in new]
        found = yield from measured(self.claim.model, trials, self.fitting)
        for example, trial in zip(new, trials, strict=True):
            answer = found[trial]
            self.answers[example], self.known[example] = answer, holds(self.claim.parameters, answer)
            if answer is not None and self.fitting is None:
                self.fitting = trial

    def failing(self) -> list[Example]:
        """Those that fail, smallest first."""
        return sorted((one for one, held in self.known.items() if held is False), key=lambda one: one.size)

    @property
    def judged(self) -> list[Example]:
        """Those that can be judged."""
        return [one for one, held in self.known.items() if held is not None]


def holds(p: ForAll, answer: TrialAnswer | None) -> bool | None:
    """Whether the example holds; None where there is no behaviour to speak of: it does not fit, or the intact model is wrong."""
    if answer is None or answer.intact is None or not answer.intact.correct:
        return None
    if p.check == "answer_changes":
        return not answer.correct
    if p.check == "answer_stays":
        return answer.correct
    if answer.intact.metric <= 0:
        return None
    return answer.metric >= float(p.share or 0) * answer.intact.metric


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the sets, draw, measure all draws in one go, search, shrink."""
    try:
        import hypothesis  # noqa: F401
    except ImportError as problem:
        raise Invalid(f"for_all needs the package hypothesis: pip install hypothesis ({problem})") from None
    from hypothesis import Phase

    from ...strategies.search import Effort, independent

    p: ForAll = claim.parameters
    space = yield from _space(claim)
    universe = yield from describe(claim)
    fixed, sets = yield from _components(claim, universe)
    effort = Effort.now(p.examples, f"for_all {p.seed} {p.split_seed}")
    if not effort.allows(Phase.generate):
        raise Invalid(f"the hypothesis profile {effort.profile!r} generates no examples: its phases lack 'generate'")
    make = _make(space, sets)
    table = Table(claim, space, universe, fixed, {}, {})
    draws = independent(make, effort.examples, effort.seed)
    yield from _first(table, make, effort, draws)
    yield from ask(PlanBoundary(claim.model, PLANNED))
    competent = _competent(p, table, draws)
    explicit = _explicit(p)
    for one in explicit:
        if one.units is not None:
            universe.index(one.units)  # refuses names that the model does not have
        if one.units is None or one.units in sets:
            yield from table.measure([one])
        else:  # of other sets the claim says nothing
            table.known[one] = None
    before, smallest = yield from _searched(table, make, effort, explicit)
    return _estimate(claim, table, draws, competent, explicit, before, smallest, effort, sets)


def _space(claim: Claim) -> Steps[Space]:
    from ...tasks.grammar.spaces import grammar, has_grammar, rows

    name = claim.parameters.prompts.task
    source = claim.tasks[name]
    if has_grammar(source):
        found = grammar(source.target, source.options)
        assert found is not None
        return found
    task = yield from ask(LoadTask(claim.model, source))
    return rows(task)


def _components(claim: Claim, universe: Universe) -> Steps[tuple[tuple[str, ...] | None, Any]]:
    """The set, or the sets to draw from."""
    from ...strategies.sets import set_space

    p: ForAll = claim.parameters
    which = p.components
    if which.fixed is not None:
        return (yield from _set(claim, which.fixed, universe)), None
    given: dict[str, tuple[str, ...]] = {}
    for name in ("inside", "outside", "including"):
        if getattr(which, name) is not None:
            given[name] = yield from _set(claim, getattr(which, name), universe)
    assert which.size is not None
    size = which.size if isinstance(which.size, (int, str)) else (which.size[0], which.size[1])
    try:
        found = set_space(universe.component_names, size, of=which.of, **given)
    except OptionError as problem:
        raise Invalid(str(problem), {"components": universe.components}) from None
    if found.most + len(found.including) == universe.components:
        raise Invalid(
            f"sets of all {universe.components} components would be {'removed' if p.mode == 'remove' else 'kept'}, which says nothing of "
            "any of them: lower size"
        )
    return None, found


def _set(claim: Claim, which: CircuitOf, universe: Universe) -> Steps[tuple[str, ...]]:
    """A set of components in order. Raises `Invalid` for one of all of them, and where a task's is empty or cannot be found."""
    p: ForAll = claim.parameters
    if which.units is not None:
        universe.index(which.units)  # refuses names that the model does not have
        names = set(which.units)
    else:
        assert which.task is not None
        found = yield from examples(claim, which.task)
        yield from intact(claim, which.task, found)
        discovery = (yield from circuits(claim, which.task)).take(found.discovery)
        check_share(which.p, len(discovery))
        names = set(discovery.shared(which.p))
        if not names:
            cut = p.model_copy(update={"task": which.task})
            cut.__dict__["p"] = which.p
            raise empty_set(cut, which.task, int(discovery.counts.max()), len(discovery))
    if len(names) == universe.components:
        raise Invalid(f"the set is all {len(names)} components: nothing is left to compare with", {"components": len(names)})
    return tuple(unit for unit in universe.component_names if unit in names)


def _make(space: Space, sets: Any) -> Make:
    from ...strategies.search import Example

    def make(random: Any) -> Example | None:
        pair = space.draw(random)
        if pair is None:
            return None
        return Example(replace(pair, source=None), None if sets is None else sets.draw(random))

    return make


def _first(table: Table, make: Make, effort: Effort, draws: Sequence[Example]) -> Steps[None]:
    """The independent draws and all that hypothesis generates, in as few batches as that can be known beforehand."""
    from ...strategies.search import generate

    for _ in range(ROUNDS):
        found = generate(make, table.known, effort)
        if not found.unknown and draws[0] in table.known:
            return
        yield from table.measure([*draws, *found.unknown])
        if not table.judged:
            _competent(table.claim.parameters, table, draws)  # says why


def _competent(p: ForAll, table: Table, draws: Sequence[Example]) -> dict[str, int]:
    """Counts of the independent draws. Raises `Invalid` where the intact model can do too few of them (the competence gate)."""
    unfit = sum(table.answers[one] is None for one in draws)
    judged = sum(table.known[one] is not None for one in draws)
    right = sum(answer is not None and answer.intact is not None and answer.intact.correct for answer in map(table.answers.get, draws))
    counts = {"drawn": len(draws), "unfit": unfit, "answered_wrongly": len(draws) - unfit - right, "judged": judged}
    if judged < p.min_accuracy * (len(draws) - unfit) or not judged:
        raise Invalid(
            f"of {len(draws)} prompts drawn from task {p.prompts.task!r}, {unfit} do not fit the tokenizer and the intact model answers "
            f"{right} of the other {len(draws) - unfit} correctly (min_accuracy is {p.min_accuracy:g}): there is no behaviour to explain",
            counts,
        )
    if judged < p.min_accuracy * len(draws):
        raise Invalid(
            f"{unfit} of {len(draws)} prompts drawn from task {p.prompts.task!r} do not fit the tokenizer, and {judged} can be judged, "
            f"below min_accuracy {p.min_accuracy:g}: too many are filtered out; use other words, or other parameters of the task",
            counts,
        )
    return counts


def _explicit(p: ForAll) -> list[Example]:
    from ...strategies.search import Example
    from ...tasks.records import pair_from

    found = []
    for i, one in enumerate(p.explicit):
        given = one.model_dump(exclude_none=True, exclude={"units"})
        pair = pair_from({name: value for name, value in given.items() if value != []}, f"explicit example {i + 1}")
        found.append(Example(replace(pair, source=None), None if one.units is None else tuple(one.units)))
    return found


def _searched(table: Table, make: Make, effort: Effort, explicit: Sequence[Example]) -> Steps[tuple[list[Example], Example | None]]:
    """Examples that failed in earlier runs, and the smallest that fails now: of those that are always looked at, the first that does.

    What was drawn is shrunk before the earlier ones are looked at, so that the next run asks for the same batches.
    """
    from ...strategies.search import save, saved

    key = _key(table.claim)
    given = [one for one in explicit if table.known[one] is False]
    drawn = [] if given else table.failing()
    smallest = (yield from _shrunk(table, make, effort, drawn[0])) if drawn else None
    before = saved(make, effort, key)
    for one in before:
        yield from table.measure([one])
    still = [one for one in before if table.known[one] is False]
    if given:
        smallest = given[0]
    elif still and (smallest is None or still[0].size < smallest.size):
        smallest = yield from _smallest(table, make, effort, still[0])
    if smallest is not None:  # on its own, as the next run will ask for it
        yield from measured(table.claim.model, [table.trial(smallest)], table.fitting)
    save(effort, key, smallest, before, table.known)
    return before, smallest


def _shrunk(table: Table, make: Make, effort: Effort, start: Example) -> Steps[Example]:
    """The smallest failing example to which hypothesis shrinks one; itself where all choices were made already."""
    from ...strategies.search import shrink

    for _ in range(ROUNDS):
        if not start.choices:
            break
        found = shrink(make, table.known, effort, start)
        if not found.unknown:
            assert found.failing is not None
            return found.failing
        yield from table.measure(found.unknown)
        start = min((start, *(one for one in table.failing() if one.choices)), key=lambda one: one.size)
    return start


def _smallest(table: Table, make: Make, effort: Effort, start: Example) -> Steps[Example]:
    """One that failed in an earlier run, shrunk until that changes nothing: on another model, or under another profile, it need not be
    as small as it gets. Each time from what was known before, as in the run after this one.
    """
    known = dict(table.known)
    while True:
        look = replace(table, known=dict(known))
        found = yield from _shrunk(look, make, effort, start)
        table.known.update(look.known)
        if found.size >= start.size:
            return start
        known[found], start = False, found


def _key(claim: Claim) -> bytes:
    """Under which the database keeps failing examples of this claim: not by the weights, so that they are tried on the next release."""
    from hashlib import sha256

    p: ForAll = claim.parameters
    own = p.model_dump_json(exclude={"examples", "seed", "explicit", "confidence", "split_seed"})
    tasks = sorted((name, one.kind, one.target, one.parameters) for name, one in claim.tasks.items())
    return b"pytest-circuits.for_all." + sha256(repr((claim.model.name, own, tasks)).encode()).hexdigest().encode()


def _estimate(
    claim: Claim, table: Table, draws: Sequence[Example], counts: Mapping[str, int], explicit: Sequence[Example], before: Sequence[Example],
    smallest: Example | None, effort: Effort, sets: Any,
) -> Estimate:  # fmt: skip
    from ...stats.chance import binomial_interval, binomial_upper

    p: ForAll = claim.parameters
    judged = [one for one in draws if table.known[one] is not None]
    held = sum(bool(table.known[one]) for one in judged)
    assert (smallest is None) == (not table.failing())
    at_most = binomial_upper(len(judged) - held, len(judged), p.confidence)
    details = report(p, table, counts, explicit, before, smallest, effort, sets, at_most)
    shown = details["counterexample"]["in_words"] if smallest is not None else None
    return Estimate(
        held / len(judged), binomial_interval(held, len(judged), p.confidence), len(judged), p.confidence,
        "Clopper-Pearson interval, independent draws", "for_all", details, search=Search(len(table.judged), shown, at_most),
    )  # fmt: skip


FOR_ALL = Property(
    "for_all", ForAll, estimate, 0.0, 1.0, "something holds for all prompts and sets of components, as far as a search can tell",
    "share of examples", grows=False, bound=Bound(at_least=1.0),
)  # fmt: skip
