"""How much of the behaviour do circuits of growing size carry? CPR of the Mechanistic Interpretability Benchmark."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ...attribution import METHODS
from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..parameters import MethodName
from ..protocol import Claim, Property
from .curve_area import AreaParameters, chance_level, curves, told, trapezoid


class Cpr(AreaParameters):
    """CPR = ∫ f dp: the area under faithfulness f over the share p of units kept. The higher the better.

    f(p) = (F(keep C) − F(∅)) / (F(M) − F(∅)) with F the mean metric on evaluation examples, C the first int(p·n) of n
    units ranked by *signed* mean score over discovery examples, those that help the metric most first. Trapezoid rule in
    linear p over MIB's grid .001 .002 .005 .01 .02 .05 .1 .2 .5 1. f ≡ 1 scores 0.999; a share of less than one unit
    has f = 0, so small universes can reach less: the report says how much. Unbounded: f may be above 1 or below 0.
    Beside it: the curve, and what random rankings score. Invalid when F(M) − F(∅) is not clearly away from zero, when all
    scores are zero, and below the accuracy gate. Source: MIB (Mueller et al. 2025). Interval: CPR is a ratio of two
    means over examples, so Fieller's, a linear contrast, over groups; it is about the ranking that was found.
    """

    attribution: Annotated[MethodName, Field(description="attribution method that ranks units; its scores must have signs")] = "relp"

    @model_validator(mode="after")
    def _scores_have_signs(self) -> Cpr:
        if self.level in METHODS.fact(self.attribution, "nonnegative", ()):
            able = [
                method
                for method in METHODS
                if self.level in METHODS.fact(method, "levels", ()) and self.level not in METHODS.fact(method, "nonnegative", ())
            ]
            raise ValueError(
                f"{self.attribution} scores of {self.level}s are magnitudes, which cannot tell units that help from units that hurt: "
                f"use cmd, or one of {', '.join(able)}"
            )
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """The area is the weighted sum of the gains of the grid's circuits, over what there is to gain."""
    import numpy as np

    p: Cpr = claim.parameters
    curve = yield from curves(claim, signed=True)
    weights = np.array([float(w) for w in trapezoid()])
    value, interval = curve.ground.ratio(weights @ curve.gains)
    chance = chance_level(curve.at_random @ weights)
    details = {**curve.details, "chance": chance}
    grid = curve.details["grid"]
    small = f"a curve of 1 everywhere else has CPR {grid['reachable']:.3f} instead of {grid['total']:.3f}"
    details["notes"] = told(curve, "CPR", value, chance, small)
    n = len(curve.ground.groups)
    return Estimate(value, interval, n, p.confidence, "Fieller interval over groups", "cpr", details)


CPR = Property(
    "cpr",
    Cpr,
    estimate,
    summary="circuits of growing size carry the behaviour: area under the faithfulness curve (MIB)",
    unit="area under faithfulness; 0.999 for f = 1",
)
