"""The ratio of two means of bounded, paired values, as a contrast that is tested by betting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

from numpy.typing import ArrayLike

from ..errors import Invalid, ReasonCode
from .betting import _STEP, _bets, _ruled_out, grouped_mean_interval, shuffled
from .groups import Array, group_means, level

_GRID = 12
_FAR = 1e6


def betting_ratio(
    numerator: ArrayLike, denominator: ArrayLike, groups: Sequence[str], confidence: float = 0.95, what: str = "the denominator"
) -> tuple[float, tuple[float, float]]:
    """`(value, (low, high))` of mean(numerator) / mean(denominator), paired values [n] in [0, 1] whose groups are independent.

    Means are over groups, every group counting the same. The interval holds all r for which a betting interval of the mean of
    numerator − r·denominator, which lies in [−r, 1], contains 0; gaps between such r are filled. Every r is tested by an exact interval,
    so coverage is at least the confidence. Unlike Fieller's it has a width even where all groups are equal. Raises
    `Invalid`, naming `what`, when the denominator is not clearly above 0.
    """
    below, (least, most), _ = grouped_mean_interval(denominator, groups, confidence)
    if least <= 0:
        raise Invalid(
            f"{what} is {below:.3f} with interval [{least:.3f}, {most:.3f}], which is not clearly above 0: a ratio to it could be anything",
            {"denominator": below, "denominator_interval": [least, most]},
            code=ReasonCode.ZERO_DENOMINATOR,
        )
    x, y = group_means(numerator, groups)[0], group_means(denominator, groups)[0]
    order = shuffled(len(x))
    x, y = x[order], y[order]
    value = float(x.mean() / y.mean())

    def possible(r: float) -> bool:
        return _may_be_zero(x - r * y, -r, level(confidence))

    ceiling = max(1.0, 2 * value)
    while ceiling < _FAR and possible(ceiling):
        ceiling *= 2
    low = _outermost([value * i / _GRID for i in range(_GRID + 1)], possible)
    high = _outermost([value + (ceiling - value) * (_GRID - i) / _GRID for i in range(_GRID + 1)], possible)
    return value, (min(low, value), max(high, value))


def _may_be_zero(values: Array, lowest: float, alpha: float) -> bool:
    """Whether a betting interval for the mean of values in [lowest, 1] contains 0, without finding its ends."""
    x, m = (values - lowest) / (1 - lowest), -lowest / (1 - lowest)
    return not any(
        _ruled_out(side, _bets(side, alpha), min(max(mean, _STEP), 1 - _STEP), log(2 / alpha)) for side, mean in ((x, m), (1 - x, 1 - m))
    )


def _outermost(grid: Sequence[float], possible: Callable[[float], bool]) -> float:
    """The first possible value from the outside in, refined between it and its outer neighbour."""
    first = next((i for i, r in enumerate(grid) if possible(r)), len(grid) - 1)
    if first == 0:
        return grid[0]
    outside, inside = grid[first - 1], grid[first]
    for _ in range(22):
        middle = (outside + inside) / 2
        outside, inside = (outside, middle) if possible(middle) else (middle, inside)
    return outside
