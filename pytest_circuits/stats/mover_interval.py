"""Intervals for sums and ratios of independent estimates, made from an interval of each.

MOVER, the method of variance estimates recovery (Zou & Donner, Construction of confidence limits about effect measures, 2008): the
distance of an end from its estimate measures the uncertainty in that direction, and distances of independent estimates add in
quadrature. The result need not be symmetric. Approximate: the coverage is about that of the intervals that go in; wide ones stay wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, inf

from ..errors import Invalid, OptionError, ReasonCode

Part = tuple[float, tuple[float, float]]
"""An estimate and its interval."""


def weighted_sum(parts: Sequence[Part], weights: Sequence[float], also: float = 0.0, lowest: float = -inf, highest: float = inf) -> Part:
    """`(value, (low, high))` of Σ w_i·θ_i for independent estimates of θ_i.

    `also` is the half-width of a further source of error of the sum, added in quadrature on both sides. The interval is clipped to
    [lowest, highest]. Raises `OptionError` unless there is one weight for each estimate.
    """
    if len(parts) != len(weights) or not parts:
        raise OptionError(f"one weight for each estimate is needed, got {len(weights)} for {len(parts)}")
    value = sum(w * v for (v, _), w in zip(parts, weights, strict=True))
    down = [w * (v - (low if w > 0 else high)) for (v, (low, high)), w in zip(parts, weights, strict=True)]
    up = [w * ((high if w > 0 else low) - v) for (v, (low, high)), w in zip(parts, weights, strict=True)]
    low, high = value - hypot(*down, also), value + hypot(*up, also)
    return value, (min(value, max(lowest, low)), max(value, min(highest, high)))


def ratio(numerator: Part, denominator: Part, what: str = "the denominator") -> Part:
    """`(value, (low, high))` of a ratio of two independent estimates: all b for which the contrast numerator − b·denominator may be 0.

    Its interval is that of `weighted_sum`; both its ends fall as b grows, so that each passes 0 once. Raises `Invalid`, naming `what`,
    unless the denominator's whole interval is above 0, since the ratio could then be anything.
    """
    value, (low, high) = denominator
    if low <= 0:
        raise Invalid(
            f"{what} is {value:.3f} with interval [{low:.3f}, {high:.3f}], which is not clearly above 0: a ratio to it could be anything",
            {"denominator": value, "denominator_interval": [low, high]},
            code=ReasonCode.ZERO_DENOMINATOR,
        )
    quotient = numerator[0] / value
    return quotient, (min(quotient, _crossing(numerator, denominator, 0)), max(quotient, _crossing(numerator, denominator, 1)))


def _crossing(numerator: Part, denominator: Part, end: int) -> float:
    """Where an end of the contrast's interval passes 0."""

    def contrast(b: float) -> float:
        return weighted_sum([numerator, denominator], [1.0, -b])[1][end]

    step = 1.0
    while contrast(-step) <= 0 or contrast(step) >= 0:  # ends grow without bound on both sides, since the denominator is above 0
        step *= 2
    low, high = -step, step
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if contrast(middle) > 0 else (low, middle)
    return (low + high) / 2
