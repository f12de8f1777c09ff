"""Intervals for means of unbounded, skewed values, such as rises of a loss, and for the order of several means.

A loss rises a lot on few examples, so Student's interval is too short above and too long below. Hall's transformation (On the removal
of skewness by transformation, 1992) corrects it by the sample's skewness γ: with T = (mean − μ)/se of G groups,
g(T) = T + γT²/(3√G) + γ²T³/(27G) + γ/(6√G) is nearly normal, and rises in T, so that it can be inverted at both quantiles. Quantiles
are those of Student's t, for few groups. Means are over examples, standard errors and skewness over groups (cluster-robust).

Approximate. Coverage of 95% intervals in simulations: tests/stats/test_hall_interval.py. An interval cannot reflect what no example showed:
values that are all equal give one of width 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import Invalid, OptionError, ReasonCode
from .distributions import t_quantile
from .groups import Array, Ints, finite, group_sums, level
from .ranks import ROUNDING

_SAME = 1e-12  # variances of differences below this share of the variances are rounding


def mean_bounds(sums: ArrayLike, sizes: ArrayLike, confidence: float = 0.95) -> tuple[Array, Array, Array]:
    """`(means, low, high)` [k] of k quantities from sums [G, k] and sizes [G] of groups; each interval on its own has the confidence.

    For all to hold at once, ask for 1 − α/k (`simultaneous`). Approximate. Raises `Invalid` for fewer than 2 groups.
    """
    total, count = _checked(sums, sizes)
    means, rests = _residuals(total, count)
    groups = len(count)
    variance = (rests**2).mean(0)
    # values that are all equal differ from their mean by rounding
    variance = np.where(variance <= _SAME * (total**2).mean(0), 0.0, variance)
    below, above = _half_widths((rests**3).mean(0), variance, groups, confidence)
    error = np.sqrt(variance * groups * groups / (groups - 1)) / count.sum()
    return means, means - error * above, means + error * below


def smaller_counts(sums: ArrayLike, sizes: ArrayLike, confidence: float = 0.95) -> tuple[Ints, Ints]:
    """`(surely, possibly)` [k]: bounds on how many of the other quantities have a smaller mean, for all k at once with the confidence.

    From intervals of all k(k−1)/2 differences of two means, paired, each at 1 − α/(k(k−1)/2), as `mean_bounds`. Differences of at
    most a millionth of the largest mean are ties. Approximate. Raises `Invalid` for fewer than 2 groups.
    """
    total, count = _checked(sums, sizes)
    means, r = _residuals(total, count)
    groups, k = len(count), total.shape[1]
    product = r.T @ r / groups
    variances = np.diag(product)
    variance = variances[:, None] + variances[None, :] - 2 * product
    variance = np.where(variance <= _SAME * (variances[:, None] + variances[None, :]), 0.0, variance)
    mixed = (r * r).T @ r / groups  # E r_i² r_j
    cubes = np.diag(mixed)
    third = cubes[:, None] - 3 * mixed + 3 * mixed.T - cubes[None, :]
    below, above = _half_widths(third, variance, groups, simultaneous(confidence, k * (k - 1) // 2))
    error = np.sqrt(variance * groups * groups / (groups - 1)) / count.sum()
    difference, tie = means[:, None] - means[None, :], ROUNDING * float(np.abs(means).max())
    surely, possibly = difference - error * above > tie, difference + error * below > tie
    return surely.sum(1).astype(np.int64), possibly.sum(1).astype(np.int64)


def crossed_bounds(
    values: ArrayLike, reference: ArrayLike, groups: Sequence[str], confidence: float = 0.95
) -> tuple[float, tuple[float, float], dict[str, Any]]:
    """`(value, (low, high), parts)` of the mean of values − reference over random draws and examples, for values without a range.

    values [n_draws, n_examples], reference [n_examples]. Examples: `mean_bounds` over groups of the difference averaged over the draws;
    draws: Student's t over their means; the distances of the ends from the value are added in quadrature, as `crossed.crossed_interval`
    does for bounded values. Approximate. Raises `Invalid` for fewer than 2 draws or 2 groups.
    """
    table, base = finite(values), finite(reference, "reference values")
    if table.ndim != 2 or base.shape != table.shape[1:]:
        raise OptionError(f"values [n_draws, n_examples] and reference [n_examples] are needed, got {table.shape} and {base.shape}")
    draws = len(table)
    if draws < 2:
        raise Invalid(f"the variance between draws cannot be estimated from {draws} draw; draw at least 2", {"draws": draws})
    differences = table - base
    sums, sizes = group_sums(differences.mean(0)[:, None], groups)
    means, low, high = (float(x[0]) for x in mean_bounds(sums, sizes, confidence))
    spread = float(np.std(differences.mean(1), ddof=1))
    half = t_quantile(confidence, draws - 1) * spread / sqrt(draws)
    parts = {"examples": [low, high], "draws": [means - half, means + half], "draw_sd": spread, "n_draws": draws, "n_groups": len(sizes)}
    return means, (means - hypot(means - low, half), means + hypot(high - means, half)), parts


def simultaneous(confidence: float, many: int) -> float:
    """The confidence that each of `many` intervals needs for all to hold at once: 1 − α/many (Bonferroni)."""
    return 1 - level(confidence) / max(1, many)


def _checked(sums: ArrayLike, sizes: ArrayLike) -> tuple[Array, Array]:
    total, count = finite(sums), finite(sizes, "group sizes")
    if total.ndim != 2 or count.shape != total.shape[:1]:
        raise OptionError(f"sums [groups, k] and sizes [groups] are needed, got shapes {total.shape} and {count.shape}")
    if len(count) < 2:
        raise Invalid(
            f"{int(count.sum())} examples form {len(count)} group; an interval needs at least 2",
            {"groups": len(count)},
            code=ReasonCode.TOO_FEW_GROUPS,
        )
    return total, count


def _residuals(total: Array, count: Array) -> tuple[Array, Array]:
    """Means over examples [k], and each group's sum minus its expected share [G, k]."""
    means = total.sum(0) / count.sum()
    return means, total - means * count[:, None]


def _half_widths(third: Array, variance: Array, groups: int, confidence: float) -> tuple[Array, Array]:
    """How many standard errors an interval reaches above and below the mean: `(below, above)`, −T at −q and T at q; ≥ 0."""
    q = t_quantile(confidence, groups - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(variance > 0, third / variance**1.5, 0.0) / sqrt(groups)
    plain: NDArray[np.bool_] = np.abs(skew) < 1e-6
    safe = np.where(plain, 1.0, skew)
    ends = [np.where(plain, y, 3 / safe * (np.cbrt(1 + safe * (y - safe / 6)) - 1)) for y in (-q, q)]
    return np.maximum(-ends[0], 0.0), np.maximum(ends[1], 0.0)
