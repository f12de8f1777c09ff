"""Ratios of means, tested as linear contrasts (Fieller, Some problems in interval estimation, 1954).

A quotient of two noisy means has no useful distribution; the contrast mean(numerator − b·denominator) has. The interval is the set of all
b whose contrast is not significantly different from zero. Approximate: group sums are taken to be roughly normal, by Student's t with
one degree of freedom less than there are groups. Groups without any variation give an interval of no width.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from ..errors import Invalid, OptionError, ReasonCode
from .distributions import t_quantile
from .groups import Array, Ints, group_sums


def fieller(
    numerator: ArrayLike, denominator: ArrayLike, groups: Sequence[str], confidence: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """`(value, (low, high))` of mean(numerator) / mean(denominator), means over examples; both [n], paired, clustered in groups.

    Solves (x̄ − b·ȳ)² = t²·(s_xx − 2b·s_xy + b²·s_yy)/G for b, where x and y are the sums of the G groups and s their sample
    (co)variances. The interval need not be symmetric. Neither the sign of the denominator nor that of the ratio is tested here.
    Raises `Invalid`, with the numbers, when there are fewer than 2 groups or when the denominator's own interval contains 0:
    the ratio could then be anything.
    """
    x, y, sizes = _pair(numerator, denominator, groups)
    count = len(sizes)
    t2 = t_quantile(confidence, count - 1) ** 2 / count
    (sxx, sxy), (_, syy) = np.cov(x, y)
    mx, my = float(x.mean()), float(y.mean())
    square = my * my - t2 * syy
    if square <= 0:
        per = float(sizes.mean())
        half = sqrt(t2 * syy) / per
        raise Invalid(
            f"the ratio's denominator is {my / per:.4g} with {confidence:.0%} interval [{my / per - half:.4g}, {my / per + half:.4g}], "
            f"which contains 0: the ratio could be anything (n = {int(sizes.sum())} in {count} groups)",
            {"denominator": my / per, "denominator_interval": [my / per - half, my / per + half], "groups": count},
            code=ReasonCode.ZERO_DENOMINATOR,
        )
    middle = mx * my - t2 * sxy
    root = sqrt(max(0.0, middle * middle - square * (mx * mx - t2 * sxx)))
    value = mx / my
    return value, (min(value, (middle - root) / square), max(value, (middle + root) / square))


def _pair(numerator: ArrayLike, denominator: ArrayLike, groups: Sequence[str]) -> tuple[Array, Array, Ints]:
    if np.shape(numerator) != np.shape(denominator) or np.ndim(numerator) != 1:
        raise OptionError(f"two vectors over the same examples are needed, got shapes {np.shape(numerator)} and {np.shape(denominator)}")
    x, sizes = group_sums(numerator, groups)
    y, _ = group_sums(denominator, groups)
    if len(sizes) < 2:
        raise Invalid(
            f"{int(sizes.sum())} examples form {len(sizes)} group; an interval needs at least 2",
            {"groups": len(sizes)},
            code=ReasonCode.TOO_FEW_GROUPS,
        )
    return x, y, sizes
