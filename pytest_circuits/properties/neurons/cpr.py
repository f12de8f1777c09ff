"""How much of the behaviour do circuits of growing size carry? CPR of the Mechanistic Interpretability Benchmark."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from ...attribution import METHODS
from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..parameters import MethodName
from ..protocol import Claim, Property
from .curve_area import AreaParameters, area_estimate, measure_curves
from .curve_grid import trapezoid


class Cpr(AreaParameters):
    """CPR = ∫ f dp: the area under faithfulness f over the share p of units kept. The higher the better.

    f(p) = (F(keep C) − F(∅)) / (F(M) − F(∅)) with F the mean metric on evaluation examples, C the first int(p·n) of n units ranked by
    *signed* mean score over discovery examples, those that help the metric most first. Trapezoid rule in linear p over MIB's grid
    .001 .002 .005 .01 .02 .05 .1 .2 .5 1. f ≡ 1 has CPR 0.999. A share of less than one unit has f = 0, so small universes reach less; the
    report gives the largest CPR of such a curve. Unbounded: f can be above 1 or below 0. Also reported: the curve, and the CPR of random
    rankings. Invalid: if F(M) − F(∅) is not clearly away from zero, if all scores are zero, and below the accuracy gate. Source: MIB
    (Mueller et al. 2025).

    Interval: CPR is a ratio of two means over examples, so Fieller's (a linear contrast) over groups, given the ranking.
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
                f"{self.attribution} scores of {self.level}s are magnitudes, which do not separate units that help from units that hurt: "
                f"use cmd, or one of {', '.join(able)}"
            )
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """The area is the weighted sum of the gains of the grid's circuits, divided by F(M) − F(∅)."""
    import numpy as np

    p: Cpr = claim.parameters
    curves = yield from measure_curves(claim, signed=True)
    weights = np.array([float(w) for w in trapezoid()])
    area = *curves.effect.ratio(weights @ curves.gains), "Fieller interval over groups"
    grid = curves.details["grid"]
    largest = f"a curve of 1 everywhere else has CPR {grid['reachable']:.3f} instead of {grid['total']:.3f}"
    return area_estimate(p, curves, "cpr", area, curves.at_random @ weights, largest, {})


CPR = Property(
    "cpr",
    Cpr,
    estimate,
    summary="circuits of growing size carry the behaviour: area under the faithfulness curve (MIB)",
    unit="area under faithfulness; 0.999 for f = 1",
)
