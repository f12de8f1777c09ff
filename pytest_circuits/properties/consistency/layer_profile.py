"""Layer profile: in which layers do circuits lie?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ...attribution import METHODS
from ...core.units import layer_of
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.circuits import EvaluationCircuits, find_evaluation_circuits

PARTS = ("early", "middle", "late")


class LayerProfile(CircuitParameters):
    """The share of an example's circuit that lies in certain layers, mean over evaluation examples.

    `part: early`, `middle` or `late` are thirds of the depth: layer ℓ of L belongs to the third that contains its middle, (2ℓ+1)/2L,
    which never lies on a border. Early and late thus have the same number of layers, and L = 4 is 1 + 2 + 1. `layers: [a, b]` are layers
    a to b, counted from 0, both included. `weight: count` counts components, `attribution` weights each by its |score|. Range [0, 1];
    for a random circuit, the share of layers. Scores of `eap` are sums over readers, which favours early layers; the report says so.
    Examples without a circuit are left out and counted. Invalid: a part without layers, all layers, an accuracy below the gate.
    Source: arXiv 2605.08348. Interval: betting, over groups.
    """

    task: TaskName
    part: Annotated[Literal["early", "middle", "late"] | None, Field(description="a third of the layers")] = None
    layers: Annotated[
        list[Annotated[int, Field(ge=0)]] | None, Field(min_length=2, max_length=2, description="first and last layer, counted from 0")
    ] = None
    weight: Annotated[Literal["count", "attribution"], Field(description="components, or their absolute scores")] = "count"

    @model_validator(mode="after")
    def _one_range(self) -> LayerProfile:
        if (self.part is None) == (self.layers is None):
            raise ValueError("give one of part (early, middle, late) and layers ([first, last])")
        if self.layers is not None and self.layers[0] > self.layers[1]:
            raise ValueError(f"layers are given as [first, last], got {list(self.layers)}")
        return self


def third(layer: int, layers: int) -> str:
    """The third of the depth that holds the middle of a layer."""
    middle = 3 * (2 * layer + 1)  # in units of 1/(6·layers): odd, while the borders, 2·layers and 4·layers, are even
    return PARTS[0] if middle < 2 * layers else PARTS[2] if middle > 4 * layers else PARTS[1]


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the circuits of the evaluation examples; average the share of these layers over the evaluation examples."""
    from ...stats.betting import grouped_mean_interval

    parameters: LayerProfile = claim.parameters
    evaluation = yield from find_evaluation_circuits(claim, parameters.task)
    total = evaluation.universe.layers
    inside = _layers(parameters, total)
    profiles = _profiles(evaluation)
    value, interval, groups = grouped_mean_interval(profiles[parameters.weight][:, inside].sum(1), evaluation.groups, parameters.confidence)
    mean = {weight: [round(float(x), 6) for x in profile.mean(0)] for weight, profile in profiles.items()}
    chance = len(inside) / total
    thirds = {name: sum(x for i, x in enumerate(mean[parameters.weight]) if third(i, total) == name) for name in PARTS}
    biased = METHODS.fact(parameters.attribution, "sums_readers")
    bias = [f"scores of {parameters.attribution} are sums over readers, which favours early layers"] if biased else []
    details = {
        "layers": inside,
        "weight": parameters.weight,
        "chance": chance,
        "thirds": thirds,
        "share_per_layer": mean,
        "count_per_layer": [round(float(x), 4) for x in _counts(evaluation).mean(0)],
        "groups_evaluated": groups,
        "notes": [
            f"{'components' if parameters.weight == 'count' else '|score| of the components'} of circuits in {_range(inside)} of "
            f"layers 0–{total - 1}: {value:.3f}; of random circuits: {chance:.3f}",
            "per layer: " + ", ".join(f"{x:.0%}" for x in mean[parameters.weight]),
            *bias,
        ],
        **evaluation.details,
    }
    return Estimate(
        value, interval, len(evaluation.groups), parameters.confidence, "betting interval over groups", "layer_profile", details
    )


def _layers(parameters: LayerProfile, total: int) -> list[int]:
    """The layers of the claim, by number. Raises `Invalid` for none, all, or layers that the model does not have."""
    if parameters.layers is not None:
        if parameters.layers[1] >= total:
            raise Invalid(
                f"the claim is about layers {parameters.layers[0]}–{parameters.layers[1]}, and this model has layers 0–{total - 1}",
                {"layers": total},
                code=ReasonCode.NO_LAYERS,
            )
        inside = list(range(parameters.layers[0], parameters.layers[1] + 1))
    else:
        inside = [layer for layer in range(total) if third(layer, total) == parameters.part]
    if not inside:
        raise Invalid(
            f"a model of {total} layers has none in its {parameters.part} third; name layers: [first, last] instead",
            {"layers": total},
            code=ReasonCode.NO_LAYERS,
        )
    if len(inside) == total:
        raise Invalid(
            f"these are all {total} layers of the model: every circuit lies in them", {"layers": total}, code=ReasonCode.NO_LAYERS
        )
    return inside


def _range(inside: list[int]) -> str:
    return f"layer {inside[0]}" if len(inside) == 1 else f"layers {inside[0]}–{inside[-1]}"


def _counts(evaluation: EvaluationCircuits) -> Any:
    """How many components of each layer are in each circuit; [n, L]."""
    return _by_layer(evaluation, evaluation.circuits.members.astype(float))


def _profiles(evaluation: EvaluationCircuits) -> dict[str, Any]:
    """The share of each layer in each circuit, by count and by |score|; [n, L], rows sum to 1."""
    import numpy as np

    counts = _counts(evaluation)
    scores = _by_layer(evaluation, np.where(evaluation.circuits.members, np.abs(evaluation.scores).astype(float), 0.0))
    return {"count": counts / counts.sum(1, keepdims=True), "attribution": scores / scores.sum(1, keepdims=True)}


def _by_layer(evaluation: EvaluationCircuits, values: Any) -> Any:
    import numpy as np

    sums = np.zeros((len(values), evaluation.universe.layers))
    np.add.at(sums.T, [layer_of(unit) for unit in evaluation.circuits.units], values.T)
    return sums


LAYER_PROFILE = Property(
    "layer_profile", LayerProfile, estimate, 0.0, 1.0, "in which layers circuits lie", "share of a circuit", preflight=best_case(0, 1)
)
