"""How much sparser is a circuit in MLP activations than in MLP outputs?"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import TYPE_CHECKING

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..parameters import CurveParameters
from ..protocol import Claim, Property
from ..steps.curves import UnitSpace
from .neurons_to_reach import Reach
from .size_search import SmallestCircuit, search_notes, smallest_circuit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..steps.curves import Array


class SparsityRatio(CurveParameters):
    """neurons_to_reach(`reach`) at site mlp_output ÷ neurons_to_reach(`reach`) at site mlp_activation.

    Above 1 if fewer coordinates of the down projection's input than of its output are needed to reach the same faithfulness; about 100 on
    subject-verb agreement in the paper. The two counts come from the same examples. Their universes differ in size, so the report also
    gives the ratio of shares. Range above 0. Invalid if either count is. Source: Language model circuits are sparse in the neuron basis.

    Interval: those of the two counts, combined in quadrature on a logarithmic scale (Zou & Donner 2008), and wider if the counts are
    negatively correlated; approximate (in simulations, 95% intervals covered the truth in 93–100% of cases), given the rankings.
    """

    reach: Reach = 0.9


def estimate(claim: Claim) -> Steps[Estimate]:
    """Compute both counts, from the same probes as `neurons_to_reach`."""
    p: SparsityRatio = claim.parameters
    activations = yield from smallest_circuit(claim, UnitSpace("neuron", "mlp_activation"), p.reach, p.confidence)
    outputs = yield from smallest_circuit(claim, UnitSpace("neuron", "mlp_output"), p.reach, p.confidence)
    correlation = count_correlation(outputs.contrast, activations.contrast, outputs.effect.groups)
    value = outputs.value / activations.value
    interval = quotient(_ends(outputs), _ends(activations), correlation)
    shares = outputs.details["share"] / activations.details["share"]
    details = {
        "mlp_output": outputs.details | {"interval": [outputs.low, outputs.high]},
        "mlp_activation": activations.details | {"interval": [activations.low, activations.high]},
        "ratio_of_shares": shares,
        "correlation_of_counts": correlation,
        **outputs.examples.as_dict(),
        "notes": [
            *search_notes(activations),
            *search_notes(outputs),
            f"{outputs.value} / {activations.value} = {value:.3g} times as many outputs as activations; as shares of their universes "
            f"{shares:.3g} times",
        ],
    }
    n = len(outputs.effect.groups)
    kind = "two inverted Fieller intervals over groups, in quadrature"
    return Estimate(value, interval, n, p.confidence, kind, "sparsity_ratio", details, shrinks=False)


def quotient(above: tuple[float, float, float], below: tuple[float, float, float], correlation: float = 0.0) -> tuple[float, float]:
    """The interval of above/below, each (low, value, high) and positive, from distances of the ends on a logarithmic scale.

    Method of variance estimates recovery (Zou & Donner, Construction of confidence limits about effect measures, 2008). A negative
    `correlation` of the two widens it. A positive one is ignored, since the correlation of two counts is only roughly known.
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


def count_correlation(first: Array, second: Array, groups: Sequence[str]) -> float:
    """The correlation of two counts over resampled groups, from the distance of each example from the level, [n] each.

    −1, the most cautious value, if either does not vary.
    """
    import numpy as np

    from ...stats.groups import group_sums

    sums = np.stack([group_sums(contrast, groups)[0] for contrast in (first, second)])
    if (sums.std(1) <= 1e-12 * np.abs(sums).max(1)).any():
        return -1.0
    return float(np.asarray(np.corrcoef(sums))[0, 1])


def _ends(circuit: SmallestCircuit) -> tuple[float, float, float]:
    return float(circuit.low), float(circuit.value), float(circuit.high)


SPARSITY_RATIO = Property(
    "sparsity_ratio",
    SparsityRatio,
    estimate,
    0.0,
    None,
    "how many times more MLP outputs than MLP activations are needed to reach a given faithfulness",
    "ratio of counts",
)
