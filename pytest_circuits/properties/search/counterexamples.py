"""The search for counterexamples: measure examples in batches, and shrink one that fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ...measurement.trials import measure_trials
from ..protocol import Claim
from .example_table import ExampleTable
from .for_all_parameters import ForAll

if TYPE_CHECKING:
    from ...strategies.search import Effort, Example, Make

ROUNDS = 200


@dataclass(frozen=True)
class SearchResult:
    """What a search looked at, and the smallest example that fails, if any.

    `draws` are the independent draws and `counts` what became of them; `earlier` are examples that failed in earlier runs; `sets` is the
    `SetSpace` that sets of components were drawn from, or None.
    """

    table: ExampleTable
    draws: Sequence[Example]
    counts: dict[str, int]
    explicit: Sequence[Example]
    earlier: Sequence[Example]
    smallest: Example | None
    effort: Effort
    sets: Any


def measure_draws(table: ExampleTable, make: Make, effort: Effort, draws: Sequence[Example]) -> Steps[None]:
    """Measure the independent draws and everything that hypothesis generates, in as few batches as possible."""
    from ...strategies.search import generate

    for _ in range(ROUNDS):
        generated = generate(make, table.known, effort)
        if not generated.unknown and draws[0] in table.known:
            return
        yield from table.measure([*draws, *generated.unknown])
        if not table.eligible:
            check_competence(table.claim.parameters, table, draws)  # raises, with the reason


def check_competence(p: ForAll, table: ExampleTable, draws: Sequence[Example]) -> dict[str, int]:
    """Counts of the independent draws. Raises `Invalid` where the intact model can do too few of them (the competence gate)."""
    unfit = sum(table.answers[example] is None for example in draws)
    eligible = sum(table.known[example] is not None for example in draws)
    right = sum(answer is not None and answer.intact is not None and answer.intact.correct for answer in map(table.answers.get, draws))
    counts = {"drawn": len(draws), "unfit": unfit, "answered_wrongly": len(draws) - unfit - right, "judged": eligible}
    if eligible < p.min_accuracy * (len(draws) - unfit) or not eligible:
        raise Invalid(
            f"of {len(draws)} prompts drawn from task {p.prompts.task!r}, {unfit} do not fit the tokenizer and the intact model answers "
            f"{right} of the other {len(draws) - unfit} correctly (min_accuracy is {p.min_accuracy:g}): there is no behaviour to explain",
            counts,
            code=ReasonCode.ACCURACY_BELOW_GATE,
        )
    if eligible < p.min_accuracy * len(draws):
        raise Invalid(
            f"{unfit} of {len(draws)} prompts drawn from task {p.prompts.task!r} do not fit the tokenizer, and {eligible} are eligible, "
            f"below min_accuracy {p.min_accuracy:g}: too many are filtered out; use other words, or other parameters of the task",
            counts,
            code=ReasonCode.TOO_FEW_FITTING_PROMPTS,
        )
    return counts


def search(table: ExampleTable, make: Make, effort: Effort, explicit: Sequence[Example]) -> Steps[tuple[list[Example], Example | None]]:
    """Examples that failed in earlier runs, and the smallest that fails now; of the explicit examples, the first that fails.

    What was drawn is shrunk before examples of earlier runs are measured, so that the next run asks for the same batches.
    """
    from ...strategies.search import save_examples, saved_examples

    key = database_key(table.claim)
    failing_explicit = [example for example in explicit if table.known[example] is False]
    drawn = [] if failing_explicit else table.failing()
    smallest = (yield from shrunk_example(table, make, effort, drawn[0])) if drawn else None
    earlier = saved_examples(make, effort, key)
    for example in earlier:
        yield from table.measure([example])
    still_failing = [example for example in earlier if table.known[example] is False]
    if failing_explicit:
        smallest = failing_explicit[0]
    elif still_failing and (smallest is None or still_failing[0].size < smallest.size):
        smallest = yield from fully_shrunk(table, make, effort, still_failing[0])
    if smallest is not None:  # by itself, as the next run will ask for it
        yield from measure_trials(table.claim.model, [table.trial(smallest)], table.fitting)
    save_examples(effort, key, smallest, earlier, table.known)
    return earlier, smallest


def shrunk_example(table: ExampleTable, make: Make, effort: Effort, start: Example) -> Steps[Example]:
    """The smallest failing example that hypothesis shrinks `start` to; `start` itself if it was not drawn."""
    from ...strategies.search import shrink

    for _ in range(ROUNDS):
        if not start.choices:
            break
        shrunk = shrink(make, table.known, effort, start)
        if not shrunk.unknown:
            assert shrunk.failing is not None
            return shrunk.failing
        yield from table.measure(shrunk.unknown)
        start = min((start, *(example for example in table.failing() if example.choices)), key=lambda example: example.size)
    return start


def fully_shrunk(table: ExampleTable, make: Make, effort: Effort, start: Example) -> Steps[Example]:
    """An example of an earlier run, shrunk until nothing changes: on another model or under another profile it may not be minimal.

    Each pass starts from what was known before, as the next run will.
    """
    known = dict(table.known)
    while True:
        scratch = replace(table, known=dict(known))
        shrunk = yield from shrunk_example(scratch, make, effort, start)
        table.known.update(scratch.known)
        if shrunk.size >= start.size:
            return start
        known[shrunk], start = False, shrunk


def database_key(claim: Claim) -> bytes:
    """The key of this claim in hypothesis' example database. It is independent of the weights, so failing examples are tried on the next
    release too.
    """
    p: ForAll = claim.parameters
    parameters = p.model_dump_json(exclude={"examples", "seed", "explicit", "confidence", "split_seed"})
    tasks = sorted((name, source.kind, source.target, source.parameters) for name, source in claim.tasks.items())
    return b"pytest-circuits.for_all." + sha256(repr((claim.model.name, parameters, tasks)).encode()).hexdigest().encode()
