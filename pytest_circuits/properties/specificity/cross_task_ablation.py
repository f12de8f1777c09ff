"""One entry of the cross-task ablation matrix: what removing the shared set of one task costs another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import Universe
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.driver import together
from ...measurement.requests import Steps, ask_all
from ..parameters import TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.controls import OtherCircuit
from ..steps.examples import describe, set_details
from ..steps.removal import (
    CompetentTask,
    DiscoveredTask,
    Interval,
    RemovalParameters,
    Step,
    able,
    apart,
    attempt,
    discovered,
    drop,
    removal,
    set_overlap,
    shown,
    unseen,
)

if TYPE_CHECKING:
    from ...core.results import Outcome


class CrossTaskAblation(RemovalParameters):
    """drop(B | S_A) = acc(B) − acc(B, S_A removed), on the evaluation examples of task B.

    S_A is the shared set of the discovery examples of task A (`circuit: {task: A}`; without it A is B, the plain cost of removing a
    task's own set). `definition: absolute` is in accuracy points, in [−1, 1]; `relative` divides by acc(B), at most 1.
    `normalised: row` divides by drop(A | S_A): how much of the damage to its own task the set does to the other. It runs along a row
    of the matrix (one ablated set, all tasks), unlike `specificity`, which runs along a column. No control is counted: see
    `necessity` for what a random set costs. Invalid: an empty S_A, an accuracy of A or B below the gate, prompts of B on which S_A was
    found, and `row` where drop(A | S_A) is not clearly above 0 or A and B share prompts. Source: arXiv 2605.08348. Interval:
    betting, over groups, of the paired differences (exact); `relative`: a contrast tested by betting (exact); `row`: a contrast
    of two betting intervals of independent examples, joined by MOVER (approximate). Conditional on the sets.
    """

    task: TaskName
    circuit: Annotated[OtherCircuit | None, Field(description="whose shared set is removed: {task: …}; by default its own")] = None
    definition: Annotated[Literal["absolute", "relative"], Field(description="accuracy points, or a share of the intact accuracy")] = (
        "absolute"
    )
    normalised: Annotated[
        Literal["row"] | None, Field(description="row: divided by what removing the set costs its own task, along a row of the matrix")
    ] = None

    @model_validator(mode="after")
    def _row_fits(self) -> CrossTaskAblation:
        if self.normalised and self.definition == "relative":
            raise ValueError("normalised: row divides drops in accuracy points; leave out definition: relative")
        if self.normalised and (self.circuit is None or self.circuit.task == self.task):
            raise ValueError("normalised: row divides by the drop on the set's own task, which gives 1 there; name another task in circuit")
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find both shared sets, remove that of A, look at B; that of B is removed too, to compare with."""
    p: CrossTaskAblation = claim.parameters
    source = p.circuit.task if p.circuit else p.task
    universe, there, here = yield from together(describe(claim), discovered(claim, source), _evaluated(claim, source))
    if source == p.task:
        here = there
    else:
        unseen(there, here, p.split)
        if p.normalised:
            apart([there, here])
    own = here.shared if source != p.task and isinstance(here, DiscoveredTask) else ()
    asked = [removal(claim, p.task, [there.shared])]
    asked += [removal(claim, p.task, [own])] if own else []
    asked += [removal(claim, source, [there.shared])] if p.normalised else []
    removed, *rest = yield from ask_all(asked)
    value, interval, kind, parts = _compare(p, here, there, removed, rest[-1] if p.normalised else None)
    accuracy, without = here.base.accuracy, float(removed.correct[0].mean())
    details: dict[str, Any] = {
        "evaluated_on": p.task,
        "circuit_of": source,
        "shared_sets": {source: set_details(there.shared, universe)},
        "accuracy": {p.task: accuracy, source: there.base.accuracy},
        "accuracy_without": without,
        "drop": accuracy - without,
        "relative_drop": 1 - without / accuracy if accuracy else None,
        "normalised": p.normalised,
        "ablation": p.ablation,
        **parts,
        **here.found.as_dict(),
    }
    told = [
        f"removed: shared set of {source} {shown(there.shared)}",
        f"accuracy on {len(here.base.correct)} evaluation examples of {p.task}: intact {accuracy:.3f}, without that set {without:.3f}",
    ]
    if source != p.task:
        told += _compared(details, there, here, rest[0] if own else None, universe)
    if p.normalised:
        told.append(f"row-normalised: removing the set costs its own task {source} {parts['own_drop']:.3f}")
    return Estimate(value, interval, len(here.base.correct), p.confidence, kind, "cross_task_ablation", details | {"notes": told})


def _evaluated(claim: Claim, source: str) -> Step[CompetentTask | None]:
    """The evaluated task, with its own shared set where it has one; None where it is the set's own task."""
    p: CrossTaskAblation = claim.parameters
    if p.task == source:
        return None
    found = yield from attempt(discovered(claim, p.task))
    return (yield from able(claim, p.task)) if isinstance(found, Invalid) else found  # the gate's own refusal is raised here


def _compare(
    p: CrossTaskAblation, here: CompetentTask, there: DiscoveredTask, removed: Outcome, at_home: Outcome | None
) -> tuple[float, tuple[float, float], str, dict[str, Any]]:
    """Value, interval, how it was made, and what else was estimated."""
    from ...stats.betting import grouped_mean_interval
    from ...stats.betting_ratio import betting_ratio
    from ...stats.mover_interval import ratio

    if p.definition == "relative":
        what = f"the intact accuracy on task {p.task!r}"
        kept, (low, high) = betting_ratio(removed.correct[0], here.base.correct, here.groups, p.confidence, what)
        return 1 - kept, (1 - high, 1 - low), "contrast tested by betting over groups", {}

    def interval(side: CompetentTask, outcome: Outcome) -> Interval:
        return grouped_mean_interval(drop(side.base, outcome), side.groups, p.confidence, -1.0, 1.0)[:2]

    value, ends = interval(here, removed)
    if at_home is None:
        return value, ends, "betting interval over groups", {}
    own = interval(there, at_home)
    found, limits = ratio((value, ends), own, f"what removing the set costs its own task {there.task!r}")
    return found, limits, "contrast of two betting intervals over groups", {"own_drop": own[0], "own_drop_interval": list(own[1])}


def _compared(
    details: dict[str, Any], there: DiscoveredTask, here: CompetentTask, removed: Outcome | None, universe: Universe
) -> list[str]:
    """What the task's own shared set is, has in common with the removed one, and costs."""
    task = here.task
    if removed is None or not isinstance(here, DiscoveredTask):
        return [f"{task} has no shared set of its own to compare with"]
    own, found = here.shared, set_overlap(there.shared, here.shared)
    without = float(removed.correct[0].mean())
    details["shared_sets"][task] = set_details(own, universe)
    details["overlap"] = found
    details["own_set"] = {"accuracy_without": without, "drop": here.base.accuracy - without}
    return [
        f"shared set of {task} {shown(own)}: {len(found['both'])} in common (Jaccard {found['jaccard']:.2f}); "
        f"without it accuracy is {without:.3f}"
    ]


def _limits(p: CrossTaskAblation) -> tuple[float | None, float | None]:
    if p.normalised:
        return None, None
    return (None, 1.0) if p.definition == "relative" else (-1.0, 1.0)


CROSS_TASK_ABLATION = Property(
    "cross_task_ablation",
    CrossTaskAblation,
    estimate,
    None,
    None,
    "what removing the shared set of one task costs another: an entry of the cross-task matrix",
    "accuracy points",
    limits=_limits,
    preflight=lambda p, context: () if p.normalised else best_case(-1, 1)(p, context),
)
