"""Necessity: does removing the shared set hurt more than removing a random set of the same capacity?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ...core.verdict import Estimate
from ...measurement.requests import Steps, ask_all
from ..parameters import AblationName, CircuitParameters, Options, Share, TaskName, check_ablation
from ..payload import per_draw
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.controls import OtherCircuit, ablation, compare, control_details, drawn, known_control, rank_told, ranked, shared_set
from ..steps.examples import set_details
from ..steps.removal import shown


class Necessity(CircuitParameters):
    """necessity = acc(control removed) − acc(S_P removed), on evaluation examples.

    S_P is the shared set of the discovery examples; a control is a random set of the same size (`c3`: as many heads
    and as many MLPs, outside S_P; `c3_parity`: the same, S_P allowed in the pool; `c3_any`: any type, outside S_P;
    `c3_typed_layer`: as c3, from the same layers where possible; `c3_matched`: and of the nearest activation norm),
    drawn `draws` times. Positive when the shared set matters more. `definition: absolute` is in accuracy points, range
    [−1, 1]; `relative` divides by the intact accuracy, as the paper does. Invalid: empty S_P, a control that cannot be
    drawn, an accuracy below the gate. Source: arXiv 2605.08348. Interval: examples (betting, over groups) and draws (t)
    both counted; approximate. The rank of S_P among the draws is reported where at least 20 different sets could be drawn.
    A refuted necessity does not say that the components are unused: others may back them up.
    """

    task: TaskName
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    ablation: Annotated[AblationName, Field(description="what removed components are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts, positions")] = Field(
        default_factory=dict
    )
    control: Annotated[str, AfterValidator(known_control), Field(description="c3, c3_parity, c3_any, c3_typed_layer or c3_matched")] = "c3"
    draws: Annotated[int, Field(ge=20, description="random control sets")] = 49
    control_seed: Annotated[int, Field(ge=0)] = 0
    definition: Annotated[Literal["absolute", "relative"], Field(description="accuracy points, or a share of the intact accuracy")] = (
        "absolute"
    )
    circuit: Annotated[OtherCircuit | None, Field(description="remove another task's shared set: {task: …}")] = None

    @model_validator(mode="after")
    def _ablation_fits(self) -> Necessity:
        check_ablation(self.ablation, self.ablation_options)
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find S_P, draw the controls, remove each, compare accuracies."""
    p: Necessity = claim.parameters
    found = yield from shared_set(claim)
    draws = yield from drawn(claim, found.units, found.universe)
    removed, control = yield from ask_all([ablation(claim, [found.units], "remove"), ablation(claim, draws.sets, "remove")])

    value, interval, parts = compare(p, control, removed, found.intact, found.groups)
    accuracies = control.correct.mean(1)
    accuracy = float(removed.correct[0].mean())
    about = control_details(p.control, found.units, found.universe, draws, control)
    details: dict[str, Any] = {
        "shared_set": set_details(found.units, found.universe),
        "circuit_of": found.source,
        "accuracy": found.intact.accuracy,
        "accuracy_without_shared_set": accuracy,
        "accuracy_without_control": float(accuracies.mean()),
        "control": about,
        **ranked(-accuracy, -accuracies, about["distinct_sets"]),
        "interval_parts": parts,
        "ablation": p.ablation,
        **found.examples.as_dict(),
    }
    details["notes"] = [
        f"removed: shared set of {found.source} {shown(found.units)}",
        f"accuracy: intact {found.intact.accuracy:.3f}, without the shared set {accuracy:.3f}, without a control "
        f"({p.control}, {about['draws']} draws) {accuracies.mean():.3f} on average, {accuracies.min():.3f} at least",
        rank_told(details),
    ]
    kind = "betting interval over groups and t interval over draws, in quadrature"
    kept = {} if p.definition == "relative" else per_draw(control.correct - removed.correct[0].astype(float), found.groups, parts)
    return Estimate(value, interval, len(found.groups), p.confidence, kind, "necessity", details, kept={**kept, **found.kept})


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
