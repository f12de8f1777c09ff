"""How closely do circuits of growing size behave like the model? CMD of the Mechanistic Interpretability Benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..parameters import BootstrapParameters
from ..protocol import Claim, Property
from .curve_area import AreaParameters, area_estimate, measure_curves
from .curve_grid import trapezoid

if TYPE_CHECKING:
    import numpy as np

    from ..steps.curves import Array


class Cmd(BootstrapParameters, AreaParameters):
    """CMD = ∫ |1 − f| dp: the area between 1 and the faithfulness f over the share p of units kept. The lower the better.

    f(p) = (F(keep C) − F(∅)) / (F(M) − F(∅)) with F the mean metric on evaluation examples, C the first int(p·n) of n units ranked by
    *absolute* mean score over discovery examples. Trapezoid rule in linear p over MIB's grid .001 .002 .005 .01 .02 .05 .1 .2 .5 1. At
    least 0. A share of less than one unit has f = 0, so small universes cannot reach 0; the report gives the lowest possible CMD. CMD + CPR
    of one curve is 0.999 if f is at most 1. Also reported: the curve, and the CMD of random rankings. Invalid: if F(M) − F(∅) is not
    clearly away from zero, if all scores are zero, and below the accuracy gate. Source: MIB (Mueller et al. 2025).

    Interval: bias-corrected bootstrap over evaluation groups, the curve recomputed as a ratio of means in each resample; approximate, and
    given the ranking.
    """


def distance(gains: Array, whole: Array) -> Array:
    """∫ |1 − f| from mean gains [..., grid] and the mean F(M) − F(∅) [...]; NaN where the latter is not above 0."""
    import numpy as np

    weights = np.array([float(w) for w in trapezoid()])
    with np.errstate(invalid="ignore", divide="ignore"):
        f = gains / np.where(whole > 0, whole, np.nan)[..., None]
    area: Array = np.abs(1 - f) @ weights
    return area


def estimate(claim: Claim) -> Steps[Estimate]:
    """Bootstrap the area over the groups of the evaluation examples."""
    from ...stats.bootstrap import bootstrap_interval
    from ...stats.groups import group_sums

    p: Cmd = claim.parameters
    curves = yield from measure_curves(claim, signed=False)
    gains, _ = group_sums(curves.gains.T, curves.effect.groups)
    whole, sizes = group_sums(curves.effect.whole, curves.effect.groups)

    def statistic(counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Array:
        return distance(counts @ gains, counts @ whole)

    value, interval, parts = bootstrap_interval(statistic, [len(sizes)], p.confidence, 0, p.resamples, lowest=0.0)
    random_areas = distance(curves.chance.mean(-1), curves.effect.whole.mean())
    grid = curves.details["grid"]
    lowest = grid["total"] - grid["reachable"]
    area = value, interval, "bias-corrected bootstrap over groups"
    extra = {"lowest": lowest, "bootstrap": parts}
    return area_estimate(p, curves, "cmd", area, random_areas, f"no CMD below {lowest:.3f} is possible", extra)


CMD = Property(
    "cmd",
    Cmd,
    estimate,
    0.0,
    None,
    "circuits of growing size behave like the model: area between the faithfulness curve and 1 (MIB)",
    "area between faithfulness and 1",
)
