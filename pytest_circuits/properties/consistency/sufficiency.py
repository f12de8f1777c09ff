"""Sufficiency: is the shared set enough on its own, and more so than a random set of the same capacity?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps, ask, ask_all
from ..parameters import AblationName, AccuracyScaleParameters, ControlParameters, OtherCircuit, RemovalParameters, TaskName
from ..payload import per_draw, per_group
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.controls import (
    NO_CONTROL,
    ControlledSet,
    Interval,
    control_contrast,
    control_details,
    control_rank,
    discover_controlled_set,
    draw_control_sets,
    format_rank,
    optional_control,
    relative_to_accuracy,
)
from ..steps.removal import ablation_request
from ..steps.shared_sets import set_details

if TYPE_CHECKING:
    from ...core.results import Outcome


class Sufficiency(ControlParameters, AccuracyScaleParameters, RemovalParameters):
    """sufficiency = acc(only S_P kept) − acc(only a control kept), on evaluation examples; all other components are ablated.

    S_P is the shared set of the discovery examples; controls are random sets of the same size, drawn as for necessity. `control: none`
    gives acc(only S_P kept) itself, which includes correct guesses. `definition: absolute` (default) is in accuracy points, range [−1, 1],
    without a control [0, 1]; `relative` divides by the intact accuracy. Invalid: an empty S_P, an S_P of all components, a control that
    cannot be drawn, an accuracy below the gate. Without a control, inconclusive if the set does not clearly beat keeping nothing at all.
    Interval: examples (betting, over groups) and draws (t) both counted, approximate; without a control betting over groups, a ratio as
    a linear contrast. Whether a set is sufficient depends on the ablation: compare several kinds.
    """

    task: TaskName
    ablation: Annotated[AblationName, Field(description="what all other components are replaced with")] = "zero"
    control: Annotated[
        str,
        AfterValidator(optional_control),
        Field(description="c3, c3_parity, c3_any, c3_typed_layer or c3_matched; none: no comparison"),
    ] = "c3"
    circuit: Annotated[OtherCircuit | None, Field(description="keep another task's shared set: {task: …}")] = None


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find S_P, draw the controls, keep each on its own, compare accuracies."""
    parameters: Sufficiency = claim.parameters
    target = yield from discover_controlled_set(claim)
    size, components = len(target.units), target.universe.components
    if size == components:
        raise Invalid(
            f"the shared set is all {components} components: keeping it ablates nothing; raise p or lower size",
            {"size": size},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    alone = ablation_request(claim, parameters.task, [target.units, ()], "keep")
    if parameters.control == NO_CONTROL:
        only = yield from ask(alone)
        return _accuracy_alone(parameters, target, only)
    controls = yield from draw_control_sets(claim, target.units, target.universe)
    only, control = yield from ask_all([alone, ablation_request(claim, parameters.task, controls.sets, "keep")])
    drawn = control_details(parameters.control, target.units, target.universe, controls, control)
    return _accuracy_over_control(parameters, target, only, control, drawn)


def _accuracy_over_control(
    parameters: Sufficiency, target: ControlledSet, only: Outcome, control: Outcome, drawn: dict[str, Any]
) -> Estimate:
    value, (low, high), parts = control_contrast(parameters, control, only, target.task.intact, target.groups)
    details = _details(parameters, target, only)
    accuracies = control.correct.mean(1)
    rank = control_rank(float(only.correct[0].mean()), accuracies, drawn["distinct_sets"])
    details |= {"accuracy_keeping_control": float(accuracies.mean()), "control": drawn, **rank, "control_minus_shared": parts}
    details["notes"] += [
        f"only a control kept ({parameters.control}, {drawn['draws']} draws): {accuracies.mean():.3f} on average, "
        f"{accuracies.max():.3f} at most; {format_rank(rank)}"
    ]
    kind = "betting interval over groups and t interval over draws, in quadrature"
    payload = dict(target.payload)
    if parameters.definition != "relative":
        payload = {**per_draw(only.correct[0].astype(float) - control.correct, target.groups, parts), **payload}
    interval = (0.0 - high, 0.0 - low)
    return Estimate(0.0 - value, interval, len(target.groups), parameters.confidence, kind, "sufficiency", details, payload=payload)


def _accuracy_alone(parameters: Sufficiency, target: ControlledSet, only: Outcome) -> Estimate:
    """The accuracy with only the set kept, compared with keeping nothing."""
    from ...stats.betting import grouped_mean_interval

    correct, nothing = only.correct.astype(float)
    value, interval, _ = grouped_mean_interval(correct, target.groups, parameters.confidence)
    kind = "betting interval over groups"
    if parameters.definition == "relative":
        whole = target.task.intact.correct.astype(float)

        def contrast(b: float) -> Interval:
            return grouped_mean_interval(correct - b * whole, target.groups, parameters.confidence, -max(b, 0.0), 1 + max(-b, 0.0))[1]

        value, (low, high) = relative_to_accuracy(value, whole, target.groups, contrast)
        interval, kind = (max(0.0, low), high), f"{kind} of a linear contrast"
    gained, above, _ = grouped_mean_interval(correct - nothing, target.groups, parameters.confidence, -1, 1)
    details = _details(parameters, target, only) | {"over_nothing": gained, "over_nothing_interval": list(above)}
    unsettled = None
    if above[0] <= 0 and nothing.any():
        unsettled = (
            f"keeping nothing at all answers {int(nothing.sum())} of {len(nothing)} examples correctly and keeping the shared set "
            f"{int(correct.sum())}, which is not clearly more, so the number says nothing about the set; "
            "compare it with random sets (control: c3)"
        )
    payload = dict(target.payload)
    if parameters.definition != "relative":
        payload = {**per_group(correct, target.groups, 0.0, 1.0), **payload}
    return Estimate(value, interval, len(correct), parameters.confidence, kind, "sufficiency", details, unsettled, payload)


def _details(parameters: Sufficiency, target: ControlledSet, only: Outcome) -> dict[str, Any]:
    shared, (accuracy, nothing) = set_details(target.units, target.universe), only.correct.mean(1)
    intact, examples, components = target.task.intact, target.task.examples, target.universe.components
    chance = examples.encoded.chance
    return {
        "shared_set": shared,
        "circuit_of": target.source,
        "accuracy": intact.accuracy,
        "accuracy_kept": float(accuracy),
        "accuracy_keeping_nothing": float(nothing),
        "chance": chance,
        "ablation": parameters.ablation,
        "universe": components,
        "notes": [
            f"kept: shared set of {target.source}, {shared['heads']} heads and {shared['mlps']} MLPs; the other "
            f"{components - shared['size']} components under {parameters.ablation} ablation",
            f"accuracy: intact {intact.accuracy:.3f}, only the shared set kept {accuracy:.3f}, nothing kept {nothing:.3f}; "
            f"chance {chance:.3f}",
        ],
        **examples.as_dict(),
    }


def _limits(parameters: Sufficiency) -> tuple[float | None, float | None]:
    if parameters.definition == "relative":
        return (0.0, None) if parameters.control == NO_CONTROL else (None, None)
    return 0.0 if parameters.control == NO_CONTROL else -1.0, 1.0


SUFFICIENCY = Property(
    "sufficiency",
    Sufficiency,
    estimate,
    -1.0,
    1.0,
    "the shared set on its own does the task, and better than a random set of the same capacity",
    "accuracy points",
    limits=_limits,
    preflight=lambda parameters, context: best_case(0 if parameters.control == NO_CONTROL else -1, 1)(parameters, context),
)
