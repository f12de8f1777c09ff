"""How far two measurements of the same quantity lie apart: on the same examples, or from an interval of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from numpy.typing import ArrayLike

from ..errors import OptionError
from .betting import betting_interval, shuffled
from .distributions import t_quantile
from .groups import finite

Interval = tuple[float, float]
Draws = tuple[float, int]
"""The standard error of a mean over random draws, and its degrees of freedom."""


def paired_difference(
    now: ArrayLike, then: ArrayLike, confidence: float, lowest: float, highest: float, draws: Sequence[Draws] = ()
) -> tuple[float, Interval]:
    """`(value, (low, high))` of the mean of now − then over groups, each [n_groups] with values in [lowest, highest].

    An interval inside (−m, m) is two one-sided tests at half the error each. The betting interval of the differences is exact if groups
    are independent; sources of error in `draws` are added to it in quadrature (approximate). Raises `OptionError` unless there
    is one value of each side for every group.
    """
    a, b = finite(now), finite(then)
    if a.shape != b.shape or a.ndim != 1:
        raise OptionError(f"one value of each side for every group is needed, got {a.shape} and {b.shape}")
    difference, width = a - b, highest - lowest
    value = float(difference.mean())
    low, high = betting_interval(difference[shuffled(len(difference))], confidence, -width, width)
    more = [error * t_quantile(confidence, freedom) for error, freedom in draws]
    return value, (max(-width, value - hypot(value - low, *more)), min(width, value + hypot(high - value, *more)))


def simultaneous_difference(now: Interval, then: Interval) -> Interval:
    """Now − then from an interval of each: (l − u', u − l'). It holds when both do, however they depend on each other."""
    return now[0] - then[1], now[1] - then[0]
