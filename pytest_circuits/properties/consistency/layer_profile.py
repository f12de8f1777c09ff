"""Layer profile: in which layers do circuits lie?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ...attribution import METHODS
from ...core.units import layer_of
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.evaluated import EvaluatedCircuits, evaluated

PARTS = ("early", "middle", "late")


class LayerProfile(CircuitParameters):
    """Mean over evaluation examples of the share of the example's circuit that lies in some of the layers.

    `part: early`, `middle` or `late`: thirds of the depth. Layer ℓ of L belongs to the third that holds its middle,
    (2ℓ+1)/2L, in whole numbers; it never lies on a border. So early and late are equally many, and L = 4 is 1 + 2 + 1.
    `layers: [a, b]`: layers a to b, counted from 0, both included. `weight: count` counts components,
    `attribution` weighs each by its |score|. Range [0, 1]; a random circuit has the share of layers. Scores of `eap` are sums
    over readers, which favours early layers; the report says so. Examples without a circuit are left out and counted. Invalid: a
    part without layers, all layers, below the accuracy gate. Source: arXiv 2605.08348. Interval: betting, over groups.
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
    """Ask for the attribution; average the share of these layers over the evaluation examples."""
    from ...stats.betting import grouped_mean_interval

    p: LayerProfile = claim.parameters
    found = yield from evaluated(claim, p.task)
    total = found.universe.layers
    inside = _layers(p, total)
    profiles = _profiles(found)
    value, interval, groups = grouped_mean_interval(profiles[p.weight][:, inside].sum(1), found.groups, p.confidence)
    mean = {weight: [round(float(x), 6) for x in profile.mean(0)] for weight, profile in profiles.items()}
    chance = len(inside) / total
    thirds = {name: sum(x for i, x in enumerate(mean[p.weight]) if third(i, total) == name) for name in PARTS}
    biased = METHODS.fact(p.attribution, "sums_readers")
    bias = [f"scores of {p.attribution} are sums over readers, which favours early layers"] if biased else []
    details = {
        "layers": inside,
        "weight": p.weight,
        "chance": chance,
        "thirds": thirds,
        "share_per_layer": mean,
        "count_per_layer": [round(float(x), 4) for x in _counts(found).mean(0)],
        "groups_evaluated": groups,
        "notes": [
            f"{'components' if p.weight == 'count' else '|score| of the components'} of circuits in {_range(inside)} of "
            f"layers 0–{total - 1}: {value:.3f}; of random circuits: {chance:.3f}",
            "per layer: " + ", ".join(f"{x:.0%}" for x in mean[p.weight]),
            *bias,
        ],
        **found.common,
    }
    return Estimate(value, interval, len(found.groups), p.confidence, "betting interval over groups", "layer_profile", details)


def _layers(p: LayerProfile, total: int) -> list[int]:
    """The numbers of the layers that the claim is about. Raises `Invalid` for none, all, or those that the model does not have."""
    if p.layers is not None:
        if p.layers[1] >= total:
            raise Invalid(f"layers {p.layers[0]}–{p.layers[1]} are asked for, but this model has layers 0–{total - 1}", {"layers": total})
        inside = list(range(p.layers[0], p.layers[1] + 1))
    else:
        inside = [layer for layer in range(total) if third(layer, total) == p.part]
    if not inside:
        raise Invalid(f"a model of {total} layers has none in its {p.part} third; name layers: [first, last] instead", {"layers": total})
    if len(inside) == total:
        raise Invalid(f"these are all {total} layers of the model: every circuit lies in them", {"layers": total})
    return inside


def _range(inside: list[int]) -> str:
    return f"layer {inside[0]}" if len(inside) == 1 else f"layers {inside[0]}–{inside[-1]}"


def _counts(found: EvaluatedCircuits) -> Any:
    """How many components of each layer are in each circuit; [n, L]."""
    return _by_layer(found, found.circuits.members.astype(float))


def _profiles(found: EvaluatedCircuits) -> dict[str, Any]:
    """The share of each layer in each circuit, by count and by |score|; [n, L], rows sum to 1."""
    import numpy as np

    counts = _counts(found)
    scores = _by_layer(found, np.where(found.circuits.members, np.abs(found.scores).astype(float), 0.0))
    return {"count": counts / counts.sum(1, keepdims=True), "attribution": scores / scores.sum(1, keepdims=True)}


def _by_layer(found: EvaluatedCircuits, values: Any) -> Any:
    import numpy as np

    sums = np.zeros((len(values), found.universe.layers))
    np.add.at(sums.T, [layer_of(unit) for unit in found.circuits.units], values.T)
    return sums


LAYER_PROFILE = Property(
    "layer_profile", LayerProfile, estimate, 0.0, 1.0, "in which layers circuits lie", "share of a circuit", preflight=best_case(0, 1)
)
