"""How much sparser is a circuit in MLP activations than in MLP outputs?"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import TYPE_CHECKING

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from ..steps.curves import CurveParameters, UnitSpace
from .neurons_to_reach import Reach
from .size_search import Reached, reaching, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..steps.curves import Array


class SparsityRatio(CurveParameters):
    """neurons_to_reach(`reach`) at site mlp_output ÷ neurons_to_reach(`reach`) at site mlp_activation.

    Above 1 when it takes fewer coordinates of the down projection's input than of its output to reach the same
    faithfulness; about 100 on subject-verb agreement in the paper. Counts of `neurons_to_reach`, from the same examples;
    the two universes differ in size, so the report also gives the ratio of shares. Range above 0. Invalid when either
    count is. Source: Language model circuits are sparse in the neuron basis. Interval: those of the two counts combined in
    quadrature on a logarithmic scale (Zou & Donner 2008), wider where the counts vary against each other; approximate
    (in simulations 95% intervals held the truth in 93–100%), and about the rankings that were found.
    """

    reach: Reach = 0.9


def estimate(claim: Claim) -> Steps[Estimate]:
    """Both counts, from the same probes as `neurons_to_reach`."""
    p: SparsityRatio = claim.parameters
    activations = yield from reaching(claim, UnitSpace("neuron", "mlp_activation"), p.reach, p.confidence)
    outputs = yield from reaching(claim, UnitSpace("neuron", "mlp_output"), p.reach, p.confidence)
    correlation = correlated(outputs.contrast, activations.contrast, outputs.ground.groups)
    value = outputs.value / activations.value
    interval = quotient(_ends(outputs), _ends(activations), correlation)
    shares = outputs.details["share"] / activations.details["share"]
    details = {
        "mlp_output": outputs.details | {"interval": [outputs.low, outputs.high]},
        "mlp_activation": activations.details | {"interval": [activations.low, activations.high]},
        "ratio_of_shares": shares,
        "correlation_of_counts": correlation,
        **outputs.found.as_dict(),
        "notes": [
            *told(activations),
            *told(outputs),
            f"{outputs.value} / {activations.value} = {value:.3g} times as many outputs as activations; as shares of their universes "
            f"{shares:.3g} times",
        ],
    }
    n = len(outputs.ground.groups)
    kind = "two inverted Fieller intervals over groups, in quadrature"
    return Estimate(value, interval, n, p.confidence, kind, "sparsity_ratio", details, shrinks=False)


def quotient(above: tuple[float, float, float], below: tuple[float, float, float], correlation: float = 0.0) -> tuple[float, float]:
    """The interval of above/below, each (low, value, high) and positive, from distances of the ends on a logarithmic scale.

    Method of variance estimates recovery (Zou & Donner, Construction of confidence limits about effect measures, 2008). A negative
    `correlation` of the two widens it; a positive one is not counted: how two counts move together is too coarsely known for that.
    """
    (low_a, a, high_a), (low_b, b, high_b) = above, below
    r = min(0.0, correlation)

    def distance(x: float, y: float) -> float:
        return sqrt(x * x + y * y - 2 * r * x * y)

    middle = log(a / b)
    return (
        min(a / b, exp(middle - distance(log(a / low_a), log(high_b / b)))),
        max(a / b, exp(middle + distance(log(high_a / a), log(b / low_b)))),
    )


def correlated(one: Array, other: Array, groups: Sequence[str]) -> float:
    """How two counts vary together over resampled groups: by the sums over groups of how far each example is from the level, [n] each.

    −1, the most cautious, where one does not vary.
    """
    import numpy as np

    from ...stats.groups import group_sums

    sums = np.stack([group_sums(contrast, groups)[0] for contrast in (one, other)])
    if (sums.std(1) <= 1e-12 * np.abs(sums).max(1)).any():
        return -1.0
    return float(np.asarray(np.corrcoef(sums))[0, 1])


def _ends(reached: Reached) -> tuple[float, float, float]:
    return float(reached.low), float(reached.value), float(reached.high)


SPARSITY_RATIO = Property(
    "sparsity_ratio",
    SparsityRatio,
    estimate,
    0.0,
    None,
    "how many times more MLP outputs than MLP activations it takes to reach a given faithfulness",
    "ratio of counts",
)
