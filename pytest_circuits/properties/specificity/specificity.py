"""Specificity: does removing a task's own shared set cost it more than removing those of other tasks?"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from ...core.verdict import Estimate
from ...measurement.driver import together
from ...measurement.requests import Steps, ask_all
from ..parameters import TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.examples import describe, set_details
from ..steps.removal import DiscoveredTask, RemovalParameters, apart, discovered, removal, set_overlap, shown


class Specificity(RemovalParameters):
    """specificity(A) = drop(A | S_A) − mean over B ≠ A of drop(A | S_B), with drop(A | S) = acc(A) − acc(A, S removed).

    Down a column of the cross-task matrix: one evaluated task (`task`, A), and the shared sets of several (`tasks`: the others),
    each removed from the same evaluation examples of A. In accuracy points, range [−1, 1]; 0 when the other sets cost A as much as its
    own, in particular when they are the same sets, which the report names. Sets are compared as they are: a larger one costs
    more whatever it is for, so their sizes are reported. Invalid: an empty shared set, a task below the accuracy gate, tasks that
    have prompts in common. Source: cross-task ablation in arXiv 2605.08348. Interval: betting, over groups, of the paired
    differences; exact, conditional on the sets.
    """

    task: TaskName
    tasks: Annotated[list[TaskName], Field(min_length=1, description="the other tasks, whose shared sets are removed as well")]

    @model_validator(mode="after")
    def _others(self) -> Specificity:
        if self.task in self.tasks:
            raise ValueError(f"tasks are the others, and {self.task!r} is the task itself; leave it out")
        if len(set(self.tasks)) < len(self.tasks):
            raise ValueError(f"tasks names a task twice: {', '.join(self.tasks)}")
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find all shared sets, remove each from the examples of A, compare A's own with the others."""
    from ...stats.betting import grouped_mean_interval

    p: Specificity = claim.parameters
    universe, own, *others = yield from together(describe(claim), *(discovered(claim, task) for task in (p.task, *p.tasks)))
    apart([own, *others], "so a set of one was found on prompts of the other")
    outcomes = yield from ask_all([removal(claim, p.task, [side.shared]) for side in (own, *others)])
    correct = [outcome.correct[0].astype(float) for outcome in outcomes]
    contrast = sum(correct[1:]) / len(others) - correct[0]
    value, interval, _ = grouped_mean_interval(contrast, own.groups, p.confidence, -1.0, 1.0)
    accuracy = own.base.accuracy
    column = {side.task: _entry(accuracy, float(c.mean())) for side, c in zip((own, *others), correct, strict=True)}
    equal = [side.task for side in others if side.shared == own.shared]
    details: dict[str, Any] = {
        "evaluated_on": p.task,
        "axis": "column: one evaluated task, the shared sets of several removed",
        "column": column,
        "shared_sets": {side.task: set_details(side.shared, universe) for side in (own, *others)},
        "overlap": {side.task: set_overlap(own.shared, side.shared) for side in others},
        "equal_sets": equal,
        "accuracy": {side.task: side.base.accuracy for side in (own, *others)},
        "ablation": p.ablation,
        **own.found.as_dict(),
    }
    told = _told(own, others, column, equal)
    return Estimate(value, interval, len(contrast), p.confidence, "betting interval over groups", "specificity", details | {"notes": told})


def _entry(accuracy: float, without: float) -> dict[str, float | None]:
    return {"accuracy_without": without, "drop": accuracy - without, "relative_drop": 1 - without / accuracy if accuracy else None}


def _told(own: DiscoveredTask, others: list[DiscoveredTask], column: dict[str, Any], equal: list[str]) -> list[str]:
    costs = ", ".join(f"of {side.task} ({len(side.shared)}) {column[side.task]['drop']:.3f}" for side in others)
    lines = [
        f"shared set of {own.task} {shown(own.shared)}",
        f"accuracy on {own.task} {own.base.accuracy:.3f}; removing its own set costs {column[own.task]['drop']:.3f}, the set {costs}",
    ]
    if equal:
        lines.append(f"the set of {', '.join(equal)} is the very same set, so it costs the same by definition")
    sizes = {len(side.shared) for side in (own, *others)}
    if len(sizes) > 1:
        lines.append("the sets differ in size (in brackets); a larger set costs more whatever it is for")
    return lines


SPECIFICITY = Property(
    "specificity",
    Specificity,
    estimate,
    -1.0,
    1.0,
    "removing a task's own shared set costs it more than removing those of other tasks",
    "accuracy points",
    preflight=best_case(-1, 1),
)
