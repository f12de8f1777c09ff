"""Parameters of `trajectory`: the property that is measured along a series, and the shape of its curve."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ..nested import PropertyOf
from ..parameters import AnyParameters

SHAPES_AT = ("emerges_by", "peaks_before")
"""Shapes that need `at`."""


class Trajectory(AnyParameters):
    """Shape of the curve v(a) of another property over the models of a series; a is the models' `at` (a training step, a seed).

    The value is in the units of the property in `of`, whose range is [lo, hi]. It depends on `shape`:

    - `non_decreasing`: the largest drop from a model to the next, max v_i − v_{i+1}; negative where every step rises.
    - `no_drop`: the largest drop from a model to any later one, max over i < j of v_i − v_j, which also adds up small steps; negative
      where every later value lies above every earlier one. Both drops are claimed with `at_most`, the tolerated drop. In
      [lo − hi, hi − lo].
    - `emerges_by`: the smallest value of the models from `at` on, min over a ≥ at of v. `at_least: x` claims that the property has reached
      x by then, and stays there. In [lo, hi].
    - `peaks_before`: the highest value before `at` minus the highest from `at` on. `at_least: 0` claims that the curve peaks before `at`,
      `at_least: d` that no later value comes within d of the peak. In [lo − hi, hi − lo].
    - `spread`: the highest minus the lowest value, max v − min v, claimed with `at_most`; for seeds as well as for steps. In [0, hi − lo].

    A model for which the property in `of` is invalid (early in training the task may be below the accuracy gate) is left out, and reported
    with the reason: `invalid: early` (the default) leaves out models before the first that could be measured, and a later one makes the
    claim invalid; `skip` leaves out any model, `fail` none. Other errors (a model that cannot be opened) make the claim invalid.
    `drift` in `of` needs `against: NAME`, one model that every model of the series is compared with.

    Also invalid: fewer than two models that could be measured, none before or from `at` on, or an invalid one from `at` on (emerges_by).

    Interval: simultaneous. Each of the m models that the value depends on is measured with confidence 1 − (1 − confidence)/m (Bonferroni),
    so all m intervals [l_i, u_i] hold together. The ends are the smallest and the largest value of any curve inside them, such as
    max l_i − u_j and max u_i − l_j for `no_drop`. The interval is exact if those of the inner property are. It is wide, since it ignores
    that all models saw the same prompts. Source: simultaneous inference by Bonferroni's inequality.
    """

    of: Annotated[PropertyOf, Field(description="the property, with its parameters: {reuse: {task: addition, p: 0.8}}")]
    shape: Annotated[
        Literal["non_decreasing", "no_drop", "emerges_by", "peaks_before", "spread"], Field(description="the claim about the curve")
    ]
    at: Annotated[
        float | None, Field(allow_inf_nan=False, description="for emerges_by and peaks_before: where in the series, e.g. the step")
    ] = None
    invalid: Annotated[
        Literal["early", "skip", "fail"],
        Field(description="models for which the property is invalid: leave out those at the start, any of them, or none"),
    ] = "early"

    @model_validator(mode="after")
    def _fits(self) -> Trajectory:
        inner: Any = self.of.parameters
        if self.of.name == "drift" and inner.against is None:
            raise ValueError("drift inside a trajectory needs against: NAME, one model that every model of the series is compared with")
        if self.of.name == "drift" and (inner.within is not None or inner.no_worse_by is not None):
            raise ValueError("within and no_worse_by are bounds of drift, and this claim is about the trajectory: give its bound instead")
        if self.shape in SHAPES_AT and self.at is None:
            raise ValueError(f"shape {self.shape!r} needs 'at', a place in the series")
        if self.shape not in SHAPES_AT and self.at is not None:
            raise ValueError(f"shape {self.shape!r} is about the whole series: leave 'at' out, or use {' or '.join(SHAPES_AT)}")
        return self
