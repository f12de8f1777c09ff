"""Intervals for the difference of two measurements of a quantity: on the same examples, or from an interval of each."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt

from numpy.typing import ArrayLike

from ..errors import OptionError
from .betting import betting_interval, shuffled
from .distributions import normal_quantile, t_quantile
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


def share_difference(now: float, then: float, counts: tuple[int, int], confidence: float) -> Interval:
    """Interval of the difference of two shares seen in `counts` groups each, now and then: Newcombe's, from Wilson intervals.

    Approximate, and too wide where both were seen on the same examples (Newcombe, Interval estimation for the difference between
    independent proportions, 1998).
    """
    (a, b), (c, d) = (_wilson(share, count, confidence) for share, count in zip((now, then), counts, strict=True))
    return now - then - hypot(now - a, d - then), now - then + hypot(b - now, then - c)


def _wilson(share: float, count: int, confidence: float) -> Interval:
    z = normal_quantile((1 + confidence) / 2)
    centre, half = share + z * z / (2 * count), z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return (centre - half) / (1 + z * z / count), (centre + half) / (1 + z * z / count)


def simultaneous_difference(now: Interval, then: Interval) -> Interval:
    """Now − then from an interval of each: (l − u', u − l'). It holds when both do, whatever their dependence."""
    return now[0] - then[1], now[1] - then[0]
