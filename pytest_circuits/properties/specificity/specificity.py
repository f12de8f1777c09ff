"""Specificity: does removing a task's own shared set cost it more than removing those of other tasks?"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from ...core.verdict import Estimate
from ...measurement.driver import gather
from ...measurement.requests import Steps, ask_all
from ..parameters import RemovalParameters, TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.examples import describe_model
from ..steps.removal import ablation_request, check_distinct_prompts, discover_removable_set
from ..steps.shared_sets import SharedSetTask, format_set, set_details, set_overlap


class Specificity(RemovalParameters):
    """specificity(A) = drop(A | S_A) − mean over B ≠ A of drop(A | S_B), with drop(A | S) = acc(A) − acc(A, S removed).

    A column of the cross-task matrix: one evaluated task A (`task`), and the shared sets of A and of other tasks (`tasks`), each removed
    on the same evaluation examples of A. In accuracy points, range [−1, 1]; 0 if the other sets cost A as much as its own, for example
    because they are the same sets, which the report says. Larger sets cost more whatever they do, so the report shows their sizes. Invalid:
    an empty shared set, a task below the accuracy gate, tasks with prompts in common. Source: cross-task ablation in arXiv 2605.08348.
    Interval: betting, over groups, of the paired differences; exact, conditional on the sets.
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
    """Find all shared sets, remove each on the evaluation examples of A, compare A's own with the others."""
    from ...stats.betting import grouped_mean_interval

    parameters: Specificity = claim.parameters
    names = (parameters.task, *parameters.tasks)
    universe, task, *others = yield from gather(describe_model(claim), *(discover_removable_set(claim, name) for name in names))
    tasks: list[SharedSetTask] = [task, *others]
    check_distinct_prompts(tasks, "so a set of one was found on prompts of the other")
    outcomes = yield from ask_all([ablation_request(claim, parameters.task, [source.shared]) for source in tasks])
    correct = [outcome.correct[0].astype(float) for outcome in outcomes]
    contrast = sum(correct[1:]) / len(others) - correct[0]
    value, interval, _ = grouped_mean_interval(contrast, task.groups, parameters.confidence, -1.0, 1.0)
    accuracy = task.intact.accuracy
    column = {source.name: _entry(accuracy, float(right.mean())) for source, right in zip(tasks, correct, strict=True)}
    equal = [other.name for other in others if other.shared == task.shared]
    details: dict[str, Any] = {
        "evaluated_on": parameters.task,
        "axis": "column: one evaluated task, the shared sets of several removed",
        "column": column,
        "shared_sets": {source.name: set_details(source.shared, universe) for source in tasks},
        "overlap": {other.name: set_overlap(task.shared, other.shared) for other in others},
        "equal_sets": equal,
        "accuracy": {source.name: source.intact.accuracy for source in tasks},
        "ablation": parameters.ablation,
        **task.examples.as_dict(),
    }
    notes = _notes(task, others, column, equal)
    return Estimate(
        value, interval, len(contrast), parameters.confidence, "betting interval over groups", "specificity", details | {"notes": notes}
    )


def _entry(accuracy: float, without: float) -> dict[str, float | None]:
    return {"accuracy_without": without, "drop": accuracy - without, "relative_drop": 1 - without / accuracy if accuracy else None}


def _notes(task: SharedSetTask, others: list[SharedSetTask], column: dict[str, Any], equal: list[str]) -> list[str]:
    costs = ", ".join(f"of {other.name} ({len(other.shared)}) {column[other.name]['drop']:.3f}" for other in others)
    lines = [
        f"shared set of {task.name} {format_set(task.shared)}",
        f"accuracy on {task.name} {task.intact.accuracy:.3f}; removing its own set costs {column[task.name]['drop']:.3f}, the set {costs}",
    ]
    if equal:
        lines.append(f"the set of {', '.join(equal)} is the very same set, so it costs the same by definition")
    sizes = {len(source.shared) for source in (task, *others)}
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
