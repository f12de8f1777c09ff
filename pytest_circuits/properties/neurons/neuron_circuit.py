"""A neuron circuit of a given size, kept and removed: its faithfulness and its completeness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ...core.shares import Size
from ...core.units import per_layer
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps, ask_all
from ..parameters import CircuitSize, CurveParameters, SiteName
from ..protocol import Claim
from ..steps.curves import (
    SHOWN,
    NormalizedEffect,
    Ranking,
    UnitSpace,
    empty_circuit_request,
    mean_metric,
    normalize_effect,
    rank_units,
    ranking_details,
    unit_ablation_request,
    unit_plural,
)
from ..steps.examples import describe_model, measure_intact, split_examples

if TYPE_CHECKING:
    from ..steps.curves import Array


class NeuronCircuit(CurveParameters):
    """Parameters of a circuit of the strongest MLP neurons."""

    neurons: Annotated[CircuitSize, Field(description="number of neurons in the circuit: a count, or a share of all")]
    site: SiteName = "mlp_activation"


@dataclass(frozen=True)
class CircuitEffects:
    """F(keep C) − F(∅) and F(remove C) − F(∅) for each evaluation example, [n], and details for the report."""

    effect: NormalizedEffect
    keep: Array
    remove: Array
    details: dict[str, Any]


def measure_circuit(claim: Claim) -> Steps[CircuitEffects]:
    """Rank neurons on discovery examples; measure the circuit, its complement and nothing on evaluation examples."""
    p: NeuronCircuit = claim.parameters
    space = UnitSpace("neuron", p.site)
    split = yield from split_examples(claim, p.task)
    base = yield from measure_intact(claim, p.task, split)
    universe = yield from describe_model(claim)
    ranked = yield from rank_units(claim, space)
    names = ranked.top(_size(p, ranked))
    nothing, keep, remove = yield from ask_all(
        [
            empty_circuit_request(claim, space),
            unit_ablation_request(claim, space, [names]),
            unit_ablation_request(claim, space, [names], "remove"),
        ]
    )
    effect = normalize_effect(claim, space, split, base, nothing)
    details = {
        "neurons": len(names),
        **ranking_details(claim, ranked),
        "per_layer": per_layer(names, universe.layers),
        "strongest": list(names[:SHOWN]),
        "mean_metric": {
            "intact": mean_metric(base),
            "kept": mean_metric(keep),
            "removed": mean_metric(remove),
            "nothing": mean_metric(nothing),
        },
        "accuracy": base.accuracy,
        "accuracy_kept": float(keep.correct.mean()),
        "accuracy_removed": float(remove.correct.mean()),
        "accuracy_nothing": float(nothing.correct.mean()),
        **split.as_dict(),
    }
    return CircuitEffects(effect, effect.gains(keep)[0], effect.gains(remove)[0], details)


def circuit_ratio(claim: Claim, quantity: Literal["faithfulness", "completeness"]) -> Steps[Estimate]:
    """The estimate of one quantity of the circuit; the other one, from the same measurements, is in the details."""
    measured = yield from measure_circuit(claim)
    value, interval = measured.effect.ratio(measured.keep if quantity == "faithfulness" else measured.remove)
    other_value, other_interval = measured.effect.ratio(measured.remove if quantity == "faithfulness" else measured.keep)
    other = "completeness" if quantity == "faithfulness" else "faithfulness"
    details = {**measured.details, quantity: value, other: other_value, f"{other}_interval": list(other_interval)}
    details["notes"] = _notes(details, other)
    n, name = len(measured.effect.groups), f"neuron_{quantity}"
    return Estimate(value, interval, n, claim.parameters.confidence, "Fieller interval over groups", name, details)


def _notes(details: dict[str, Any], other: str) -> list[str]:
    d, m = details, details["mean_metric"]
    return [
        f"{d['neurons']} of {d['universe']} {unit_plural(d)} ({d['attribution']}, {d['site']}, {d['ablation']} ablation); "
        f"{other} {d[other]:.2f}; attention stays live",
        f"mean metric: intact {m['intact']:.3g}, circuit kept {m['kept']:.3g}, circuit removed {m['removed']:.3g}, "
        f"all neurons ablated {m['nothing']:.3g}",
    ]


def _size(p: NeuronCircuit, ranked: Ranking) -> int:
    """The number of neurons in the circuit. Raises `Invalid` for all neurons, and for more than have a score."""
    units = len(ranked.units)
    k = Size.parse(p.neurons).of(units)
    if Size.parse(p.neurons).count is not None and k < int(p.neurons):
        raise Invalid(
            f"the claim needs {p.neurons} neurons, but the model has {units} at site {p.site}",
            {"universe": units},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    if k == units:
        raise Invalid(
            f"{p.neurons} neurons are all {units} neurons of the model: nothing is left to ablate",
            {"universe": units},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    if k > ranked.scored:
        raise Invalid(
            f"only {ranked.scored} of {units} neurons have a {p.attribution} score other than zero, and the claim needs {k}",
            {"scored": ranked.scored, "asked": k},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    return k
