"""How far from the model do circuits of growing size behave? CMD of the Mechanistic Interpretability Benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .curve_area import AreaParameters, chance_level, curves, told, trapezoid

if TYPE_CHECKING:
    import numpy as np

    from ..steps.curves import Array


class Cmd(AreaParameters):
    """CMD = ∫ |1 − f| dp: the area between faithfulness f over the share p of units kept, and 1. The lower the better.

    f(p) = (F(keep C) − F(∅)) / (F(M) − F(∅)) with F the mean metric on evaluation examples, C the first int(p·n) of n
    units ranked by *absolute* mean score over discovery examples. Trapezoid rule in linear p over MIB's grid
    .001 .002 .005 .01 .02 .05 .1 .2 .5 1. At least 0; a share of less than one unit has f = 0, so in small universes 0 is
    out of reach: the report says how low a CMD can be. CMD + CPR of one curve is 0.999 where f is at most 1. Beside it:
    the curve, and what random rankings score. Invalid when F(M) − F(∅) is not clearly away from zero, when all scores
    are zero, and below the accuracy gate. Source: MIB (Mueller et al. 2025). Interval: bias-corrected bootstrap over
    evaluation groups, the curve recomputed as a ratio of means in each; approximate, and about the ranking that was found.
    """

    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000


def distance(gains: Array, whole: Array) -> Array:
    """∫ |1 − f| from mean gains [..., grid] and what there is to gain [...]; NaN where that is not above 0."""
    import numpy as np

    weights = np.array([float(w) for w in trapezoid()])
    with np.errstate(invalid="ignore", divide="ignore"):
        f = gains / np.where(whole > 0, whole, np.nan)[..., None]
    found: Array = np.abs(1 - f) @ weights
    return found


def estimate(claim: Claim) -> Steps[Estimate]:
    """Bootstrap the area over the groups of the evaluation examples."""
    from ...stats.bootstrap import bootstrap_interval
    from ...stats.groups import group_sums

    p: Cmd = claim.parameters
    curve = yield from curves(claim, signed=False)
    gains, _ = group_sums(curve.gains.T, curve.ground.groups)
    whole, sizes = group_sums(curve.ground.whole, curve.ground.groups)

    def statistic(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Array:
        return distance(counts @ gains, counts @ whole)

    value, interval, parts = bootstrap_interval(statistic, [len(sizes)], p.confidence, 0, p.resamples, lowest=0.0)
    chance = chance_level(distance(curve.chance.mean(-1), curve.ground.whole.mean()))
    grid = curve.details["grid"]
    lowest = grid["total"] - grid["reachable"]
    details = {**curve.details, "lowest": lowest, "chance": chance, "bootstrap": parts}
    details["notes"] = told(curve, "CMD", value, chance, f"no CMD below {lowest:.3f} is possible")
    n = len(curve.ground.groups)
    return Estimate(value, interval, n, p.confidence, "bias-corrected bootstrap over groups", "cmd", details)


CMD = Property(
    "cmd",
    Cmd,
    estimate,
    0.0,
    None,
    "circuits of growing size behave as the model does: area between the faithfulness curve and 1 (MIB)",
    "area between faithfulness and 1",
)
