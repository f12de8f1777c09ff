"""Necessity: does removing the shared set hurt more than removing a random set of the same capacity?"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ...core.verdict import Estimate
from ...measurement.requests import Steps, ask_all
from ..parameters import AccuracyScaleParameters, ControlParameters, OtherCircuit, RemovalParameters, TaskName
from ..payload import per_draw
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.controls import (
    control_contrast,
    control_details,
    control_rank,
    discover_controlled_set,
    draw_control_sets,
    format_rank,
    known_control,
)
from ..steps.removal import ablation_request
from ..steps.shared_sets import format_set, set_details


class Necessity(ControlParameters, AccuracyScaleParameters, RemovalParameters):
    """necessity = acc(control removed) − acc(S_P removed), on evaluation examples.

    S_P is the shared set of the discovery examples. A control is a random set of the same size, drawn `draws` times: `c3` has as many
    heads and as many MLPs, outside S_P; `c3_parity` may also contain members of S_P; `c3_any` has components of any type, outside S_P;
    `c3_typed_layer` is c3 from the same layers where possible; `c3_matched` also matches activation norms. Positive if the shared set
    matters more. `definition: absolute` is in accuracy points, range [−1, 1]; `relative` divides by the intact accuracy, as the paper
    does. Invalid: an empty S_P, a control that cannot be drawn, an accuracy below the gate. Source: arXiv 2605.08348. Interval: examples
    (betting, over groups) and draws (t) both counted; approximate. The rank of S_P among the draws is reported if at least 20 different
    sets can be drawn. A refuted necessity does not show that the components are unused: others may back them up.
    """

    task: TaskName
    control: Annotated[str, AfterValidator(known_control), Field(description="c3, c3_parity, c3_any, c3_typed_layer or c3_matched")] = "c3"
    circuit: Annotated[OtherCircuit | None, Field(description="remove another task's shared set: {task: …}")] = None


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find S_P, draw the controls, remove each, compare accuracies."""
    parameters: Necessity = claim.parameters
    target = yield from discover_controlled_set(claim)
    controls = yield from draw_control_sets(claim, target.units, target.universe)
    task = parameters.task
    removed, control = yield from ask_all([ablation_request(claim, task, [target.units]), ablation_request(claim, task, controls.sets)])

    intact = target.task.intact
    value, interval, parts = control_contrast(parameters, control, removed, intact, target.groups)
    accuracies = control.correct.mean(1)
    accuracy = float(removed.correct[0].mean())
    drawn = control_details(parameters.control, target.units, target.universe, controls, control)
    details: dict[str, Any] = {
        "shared_set": set_details(target.units, target.universe),
        "circuit_of": target.source,
        "accuracy": intact.accuracy,
        "accuracy_without_shared_set": accuracy,
        "accuracy_without_control": float(accuracies.mean()),
        "control": drawn,
        **control_rank(-accuracy, -accuracies, drawn["distinct_sets"]),
        "interval_parts": parts,
        "ablation": parameters.ablation,
        **target.task.examples.as_dict(),
    }
    details["notes"] = [
        f"removed: shared set of {target.source} {format_set(target.units)}",
        f"accuracy: intact {intact.accuracy:.3f}, without the shared set {accuracy:.3f}, without a control "
        f"({parameters.control}, {drawn['draws']} draws) {accuracies.mean():.3f} on average, {accuracies.min():.3f} at least",
        format_rank(details),
    ]
    kind = "betting interval over groups and t interval over draws, in quadrature"
    payload = dict(target.payload)
    if parameters.definition != "relative":
        payload = {**per_draw(control.correct - removed.correct[0].astype(float), target.groups, parts), **payload}
    return Estimate(value, interval, len(target.groups), parameters.confidence, kind, "necessity", details, payload=payload)


NECESSITY = Property(
    "necessity",
    Necessity,
    estimate,
    -1.0,
    1.0,
    "removing the shared set hurts more than removing a random set of the same capacity",
    "accuracy points",
    preflight=best_case(-1, 1),
)
