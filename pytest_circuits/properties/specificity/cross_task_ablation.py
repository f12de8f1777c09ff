"""One entry of the cross-task ablation matrix: what removing the shared set of one task costs another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import Universe
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.driver import catch_invalid, gather
from ...measurement.requests import Steps, ask_all
from ..parameters import AccuracyScaleParameters, OtherCircuit, RemovalParameters, TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.examples import CompetentTask, competent_task, describe_model
from ..steps.removal import (
    ablation_request,
    accuracy_drop,
    check_distinct_prompts,
    check_unseen_prompts,
    discover_removable_set,
)
from ..steps.shared_sets import SharedSetTask, format_set, set_details, set_overlap

if TYPE_CHECKING:
    from ...core.results import Outcome


class CrossTaskAblation(AccuracyScaleParameters, RemovalParameters):
    """drop(B | S_A) = acc(B) − acc(B, S_A removed), on the evaluation examples of task B.

    S_A is the shared set of the discovery examples of task A (`circuit: {task: A}`; by default A is B, and the drop is the cost of a
    task's own set). `definition: absolute` is in accuracy points, in [−1, 1]; `relative` divides by acc(B), at most 1. `normalised: row`
    divides by drop(A | S_A), along a row of the matrix (one ablated set, all tasks), while `specificity` runs along a column. There is no
    control; `necessity` measures what a random set costs. Invalid: an empty S_A, an accuracy of A or B below the gate, evaluation prompts
    of B among the discovery prompts of A; for `row` also a drop(A | S_A) not clearly above 0, or prompts in common. Source: arXiv
    2605.08348. Interval: betting, over groups, of the paired differences (exact); `relative`: a contrast tested by betting (exact);
    `row`: a contrast of two betting intervals of independent examples, joined by MOVER (approximate). Conditional on the sets.
    """

    task: TaskName
    circuit: Annotated[OtherCircuit | None, Field(description="whose shared set is removed: {task: …}; by default its own")] = None
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
    """Find both shared sets, remove that of A on the examples of B, and that of B too for comparison."""
    parameters: CrossTaskAblation = claim.parameters
    name, source_name = parameters.task, parameters.circuit.task if parameters.circuit else parameters.task
    universe, source, task = yield from gather(
        describe_model(claim), discover_removable_set(claim, source_name), _evaluated_task(claim, source_name)
    )
    if source_name == name:
        task = source
    else:
        check_unseen_prompts(source, task, parameters.split)
        if parameters.normalised:
            check_distinct_prompts([source, task])
    own_set = task.shared if source_name != name and isinstance(task, SharedSetTask) else ()
    requests = [ablation_request(claim, name, [source.shared])]
    requests += [ablation_request(claim, name, [own_set])] if own_set else []
    requests += [ablation_request(claim, source_name, [source.shared])] if parameters.normalised else []
    removed, *rest = yield from ask_all(requests)
    value, interval, kind, parts = _drop(parameters, task, source, removed, rest[-1] if parameters.normalised else None)
    accuracy, without = task.intact.accuracy, float(removed.correct[0].mean())
    details: dict[str, Any] = {
        "evaluated_on": name,
        "circuit_of": source_name,
        "shared_sets": {source_name: set_details(source.shared, universe)},
        "accuracy": {name: accuracy, source_name: source.intact.accuracy},
        "accuracy_without": without,
        "drop": accuracy - without,
        "relative_drop": 1 - without / accuracy if accuracy else None,
        "normalised": parameters.normalised,
        "ablation": parameters.ablation,
        **parts,
        **task.examples.as_dict(),
    }
    n = len(task.intact.correct)
    notes = [
        f"removed: shared set of {source_name} {format_set(source.shared)}",
        f"accuracy on {n} evaluation examples of {name}: intact {accuracy:.3f}, without that set {without:.3f}",
    ]
    if source_name != name:
        notes += _own_set(details, source, task, rest[0] if own_set else None, universe)
    if parameters.normalised:
        notes.append(f"row-normalised: removing the set costs its own task {source_name} {parts['own_drop']:.3f}")
    return Estimate(value, interval, n, parameters.confidence, kind, "cross_task_ablation", details | {"notes": notes})


def _evaluated_task(claim: Claim, source: str) -> Steps[CompetentTask | None]:
    """The evaluated task, with its own shared set where it has one; None where it is the set's own task."""
    parameters: CrossTaskAblation = claim.parameters
    if parameters.task == source:
        return None
    task = yield from catch_invalid(discover_removable_set(claim, parameters.task))
    if isinstance(task, Invalid):
        return (yield from competent_task(claim, parameters.task))  # raises where it was the accuracy gate that refused
    return task


def _drop(
    parameters: CrossTaskAblation, task: CompetentTask, source: SharedSetTask, removed: Outcome, removed_at_source: Outcome | None
) -> tuple[float, tuple[float, float], str, dict[str, Any]]:
    """Value, interval, kind of interval, and what else was estimated."""
    from ...stats.betting import grouped_mean_interval
    from ...stats.betting_ratio import betting_ratio
    from ...stats.mover_interval import ratio

    if parameters.definition == "relative":
        what = f"the intact accuracy on task {parameters.task!r}"
        remaining, (low, high) = betting_ratio(removed.correct[0], task.intact.correct, task.groups, parameters.confidence, what)
        return 1 - remaining, (1 - high, 1 - low), "contrast tested by betting over groups", {}

    def interval(measured: CompetentTask, outcome: Outcome) -> tuple[float, tuple[float, float]]:
        drop = accuracy_drop(measured.intact, outcome)
        return grouped_mean_interval(drop, measured.groups, parameters.confidence, -1.0, 1.0)[:2]

    value, ends = interval(task, removed)
    if removed_at_source is None:
        return value, ends, "betting interval over groups", {}
    drop = interval(source, removed_at_source)
    normalised, limits = ratio((value, ends), drop, f"what removing the set costs its own task {source.name!r}")
    return (
        normalised,
        limits,
        "contrast of two betting intervals over groups",
        {"own_drop": drop[0], "own_drop_interval": list(drop[1])},
    )


def _own_set(details: dict[str, Any], source: SharedSetTask, task: CompetentTask, removed: Outcome | None, universe: Universe) -> list[str]:
    """The evaluated task's own shared set: its overlap with the removed one, and what removing it costs."""
    if removed is None or not isinstance(task, SharedSetTask):
        return [f"{task.name} has no shared set of its own to compare with"]
    overlap = set_overlap(source.shared, task.shared)
    without = float(removed.correct[0].mean())
    details["shared_sets"][task.name] = set_details(task.shared, universe)
    details["overlap"] = overlap
    details["own_set"] = {"accuracy_without": without, "drop": task.intact.accuracy - without}
    return [
        f"shared set of {task.name} {format_set(task.shared)}: {len(overlap['both'])} in common (Jaccard {overlap['jaccard']:.2f}); "
        f"without it accuracy is {without:.3f}"
    ]


def _limits(parameters: CrossTaskAblation) -> tuple[float | None, float | None]:
    if parameters.normalised:
        return None, None
    return (None, 1.0) if parameters.definition == "relative" else (-1.0, 1.0)


CROSS_TASK_ABLATION = Property(
    "cross_task_ablation",
    CrossTaskAblation,
    estimate,
    None,
    None,
    "what removing the shared set of one task costs another: an entry of the cross-task matrix",
    "accuracy points",
    limits=_limits,
    preflight=lambda parameters, context: () if parameters.normalised else best_case(-1, 1)(parameters, context),
)
