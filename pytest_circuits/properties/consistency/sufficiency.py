"""Sufficiency: is the shared set enough on its own, and more so than a random set of the same capacity?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps, ask, ask_all
from ..parameters import AblationName, CircuitParameters, Options, Share, TaskName, check_ablation
from ..payload import per_draw, per_group
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.controls import (
    ControlledSet,
    Interval,
    OtherCircuit,
    ablation,
    compare,
    control_details,
    drawn,
    known_control,
    rank_told,
    ranked,
    relative,
    shared_set,
)
from ..steps.examples import set_details

if TYPE_CHECKING:
    from ...core.results import Outcome

NO_CONTROL = "none"


def _control(name: str) -> str:
    return name if name == NO_CONTROL else known_control(name)


class Sufficiency(CircuitParameters):
    """sufficiency = acc(only S_P kept) − acc(only a control kept), on evaluation examples; all other components are ablated.

    S_P is the shared set of the discovery examples; controls are random sets of the same size, drawn as for necessity.
    `control: none` gives the bare accuracy kept, acc(only S_P kept), in which guessing counts too. `definition: absolute`
    (default) is in accuracy points, range [−1, 1] and [0, 1] without a control; `relative` divides by the intact accuracy. Invalid:
    empty S_P, S_P of all components, a control that cannot be drawn, an accuracy below the gate. Without a control, a set that does
    not clearly beat keeping nothing at all settles nothing. Interval: examples (betting, over groups) and draws (t) both counted,
    approximate; without a control betting over groups, a ratio as a linear contrast. Whether a set is sufficient depends on the ablation:
    compare several kinds.
    """

    task: TaskName
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    ablation: Annotated[AblationName, Field(description="what all other components are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts, positions")] = Field(
        default_factory=dict
    )
    control: Annotated[
        str,
        AfterValidator(_control),
        Field(description="c3, c3_parity, c3_any, c3_typed_layer or c3_matched; none: no comparison"),
    ] = "c3"
    draws: Annotated[int, Field(ge=20, description="random control sets")] = 49
    control_seed: Annotated[int, Field(ge=0)] = 0
    definition: Annotated[Literal["absolute", "relative"], Field(description="accuracy points, or a share of the intact accuracy")] = (
        "absolute"
    )
    circuit: Annotated[OtherCircuit | None, Field(description="keep another task's shared set: {task: …}")] = None

    @model_validator(mode="after")
    def _ablation_fits(self) -> Sufficiency:
        check_ablation(self.ablation, self.ablation_options)
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find S_P, draw the controls, keep each on its own, compare accuracies."""
    p: Sufficiency = claim.parameters
    found = yield from shared_set(claim)
    size, everything = len(found.units), found.universe.components
    if size == everything:
        raise Invalid(f"the shared set is all {everything} components: keeping it ablates nothing; raise p or lower size", {"size": size})
    if p.control == NO_CONTROL:
        kept = yield from ask(ablation(claim, [found.units, ()], "keep"))
        return _alone(p, found, kept)
    draws = yield from drawn(claim, found.units, found.universe)
    kept, control = yield from ask_all([ablation(claim, [found.units, ()], "keep"), ablation(claim, draws.sets, "keep")])
    return _compared(p, found, kept, control, control_details(p.control, found.units, found.universe, draws, control))


def _compared(p: Sufficiency, found: ControlledSet, kept: Outcome, control: Outcome, about: dict[str, Any]) -> Estimate:
    value, (low, high), parts = compare(p, control, kept, found.intact, found.groups)
    details = _details(p, found, kept)
    accuracies = control.correct.mean(1)
    rank = ranked(float(kept.correct[0].mean()), accuracies, about["distinct_sets"])
    details |= {"accuracy_keeping_control": float(accuracies.mean()), "control": about, **rank, "control_minus_shared": parts}
    details["notes"] += [
        f"only a control kept ({p.control}, {about['draws']} draws): {accuracies.mean():.3f} on average, {accuracies.max():.3f} at most; "
        f"{rank_told(rank)}"
    ]
    kind = "betting interval over groups and t interval over draws, in quadrature"
    gains = kept.correct[0].astype(float) - control.correct
    keep = {} if p.definition == "relative" else per_draw(gains, found.groups, parts)
    return Estimate(
        0.0 - value, (0.0 - high, 0.0 - low), len(found.groups), p.confidence, kind, "sufficiency", details, kept={**keep, **found.kept}
    )


def _alone(p: Sufficiency, found: ControlledSet, kept: Outcome) -> Estimate:
    """The accuracy kept, with nothing to compare it with but the empty set."""
    from ...stats.betting import grouped_mean_interval

    one, nothing = kept.correct.astype(float)
    value, interval, _ = grouped_mean_interval(one, found.groups, p.confidence)
    kind = "betting interval over groups"
    if p.definition == "relative":
        whole = found.intact.correct.astype(float)

        def contrast(b: float) -> Interval:
            return grouped_mean_interval(one - b * whole, found.groups, p.confidence, -max(b, 0.0), 1 + max(-b, 0.0))[1]

        value, (low, high) = relative(value, whole, found.groups, contrast)
        interval, kind = (max(0.0, low), high), f"{kind} of a linear contrast"
    gained, above, _ = grouped_mean_interval(one - nothing, found.groups, p.confidence, -1, 1)
    details = _details(p, found, kept) | {"over_nothing": gained, "over_nothing_interval": list(above)}
    unsettled = None
    if above[0] <= 0 and nothing.any():
        unsettled = (
            f"keeping nothing at all answers {int(nothing.sum())} of {len(nothing)} examples correctly and keeping the shared set "
            f"{int(one.sum())}, which is not clearly more, so the number says nothing about the set; "
            "compare it with random sets (control: c3)"
        )
    keep = {} if p.definition == "relative" else per_group(one, found.groups, 0.0, 1.0)
    return Estimate(value, interval, len(one), p.confidence, kind, "sufficiency", details, unsettled, {**keep, **found.kept})


def _details(p: Sufficiency, found: ControlledSet, kept: Outcome) -> dict[str, Any]:
    shared, (one, nothing), chance = set_details(found.units, found.universe), kept.correct.mean(1), found.examples.encoded.chance
    return {
        "shared_set": shared,
        "circuit_of": found.source,
        "accuracy": found.intact.accuracy,
        "accuracy_kept": float(one),
        "accuracy_keeping_nothing": float(nothing),
        "chance": chance,
        "ablation": p.ablation,
        "universe": found.universe.components,
        "notes": [
            f"kept: shared set of {found.source}, {shared['heads']} heads and {shared['mlps']} MLPs; the other "
            f"{found.universe.components - shared['size']} components under {p.ablation} ablation",
            f"accuracy: intact {found.intact.accuracy:.3f}, only the shared set kept {one:.3f}, nothing kept {nothing:.3f}; "
            f"chance {chance:.3f}",
        ],
        **found.examples.as_dict(),
    }


def _limits(p: Sufficiency) -> tuple[float | None, float | None]:
    if p.definition == "relative":
        return (0.0, None) if p.control == NO_CONTROL else (None, None)
    return 0.0 if p.control == NO_CONTROL else -1.0, 1.0


SUFFICIENCY = Property(
    "sufficiency",
    Sufficiency,
    estimate,
    -1.0,
    1.0,
    "the shared set on its own does the task, and better than a random set of the same capacity",
    "accuracy points",
    limits=_limits,
    preflight=lambda p, context: best_case(0 if p.control == NO_CONTROL else -1, 1)(p, context),
)
