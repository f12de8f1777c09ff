"""Bootstrap intervals by group, vectorised, for statistics that noise biases: rank correlations and overlaps of sets.

A resample is a row of counts: how often each group was drawn. A statistic takes count matrices, one for each independent sample, and
returns one number per row, so 2000 resamples are a few matrix products. Everything that is computed from the
examples (sets, ranks, means) belongs inside the statistic.

BCa (Efron, Better bootstrap confidence intervals, 1987) is right for smooth statistics of many groups, such as means and their ratios.
Correlations of noisy rankings and overlaps of noisy sets are another matter: noise pulls them towards chance, resampling adds the same
noise again, and BCa's correction is one step of a series. Its 95% interval contained the truth in 66–87% of simulated studies, and in none
when nearly every resample fell below the estimate. `bootstrap_interval` corrects for this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import Invalid, OptionError, ReasonCode
from .distributions import normal_cdf, normal_quantile, t_quantile
from .groups import Array, Ints, level

Statistic = Callable[..., Array]
IntervalWithParts = tuple[float, tuple[float, float], dict[str, Any]]
MAX_UNDEFINED = 0.05
"""Largest share of resamples in which the statistic may be undefined (NaN)."""
MAX_UNDEFINED_TWICE = 0.25
"""The same for resamples of resamples, which only serve to see how the bias changes."""
_CHUNK = 500


@dataclass(frozen=True)
class _Resampled:
    """The statistic on the data, on resamples [B], and on one resample of each of these [B]; NaN where undefined."""

    value: float
    once: Array
    twice: Array


def bootstrap_interval(
    statistic: Statistic,
    sizes: Sequence[int],
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = 2000,
    lowest: float = -inf,
    highest: float = inf,
) -> IntervalWithParts:
    """`(value, (low, high), parts)` for statistics that noise biases: rank correlations, overlaps of thresholded sets.

    `sizes` holds the number of groups of each sample. `statistic(c_1, …, c_k)` gets int64 counts c_i [rows, sizes[i]] and returns
    [rows]; NaN marks a row in which it is undefined. All ones is the data as they are; deleting a group sets its count to 0, so the
    statistic must divide by what was drawn. The value is that of the data; samples are resampled independently of each other.
    [lowest, highest] is the statistic's range, to which the interval is clipped. The result is the smallest interval that contains two
    others:

    1. BCa. Bias: z0 = Φ⁻¹ of the share of resamples below the value, ties counting half, kept away from 0 and 1 by half a resample.
       Acceleration: a = Σ_i Σ_j u_ij³/n_i³ / (6·(Σ_i Σ_j u_ij²/n_i²)^{3/2}) with u_ij the deviation, times n_i − 1, of sample i's
       jackknife value j from their mean; 0 when all are equal. The ends are the quantiles Φ(z0 + (z0 + z)/(1 − a·(z0 + z))) of the
       resampled values, extended to the value where they exclude it. z is t·√(n/(n−1)), t with n − 1 degrees of freedom and n the
       fewest groups of a sample (Hesterberg, What teachers should know about the bootstrap, 2015), because bootstrap
       distributions of few groups are too narrow;
    2. one centred on the bias-corrected value. Let m1 be the mean over resamples and m2 that over one resample of each of them (Hall, The
       bootstrap and Edgeworth expansion, 1992, on iterating). The centre is value + (value − m1); the half-width is the same
       multiple of the resamples' standard deviation times 1 + (1−s) + (1−s)², where s, the slope of the twice on the once resampled
       values, says how much noise shrinks differences, which correcting for it magnifies again; and the end on the side of the
       remaining bias is moved out by its estimate, (value − m1) − (m1 − m2).

    Approximate. For statistics without bias it is about BCa. Coverage of 95% intervals in 500 simulated studies of each kind:
    Spearman's ρ of noisy rankings, 16 to 128 groups, 93–99%; Jaccard of shared sets with P = 50–95%, 64 to 128 groups, 95%; mean of
    exponential values, 20 groups, 95%. The price is the width: BCa's times 1.4 to 1.9 for ρ, 2.6 for Jaccard. The value itself is not
    corrected and can lie near an end. No bootstrap helps for sets with P = 100% (coverage 66%): whether a unit is in every example
    of the population cannot be learnt by resampling examples that all have it.
    `parts`: bias (z0), acceleration, resamples, undefined (how many were NaN, and left out), distinct (1: resampling cannot move the
    statistic, which does not mean that it is known without error), corrected (the centre), m1, m2, slope, bca (that interval).
    Raises `Invalid` when the value is undefined, when a sample has fewer than 2 groups, when more than 5% of the resamples or of
    the jackknife values are undefined, or more than a quarter of the resamples of resamples.
    """
    alpha, fewest = level(confidence), min(sizes, default=0)
    drawn = _resample(statistic, sizes, seed, resamples)
    once = _defined(drawn.once, "resamples")
    _defined(drawn.twice, "resamples of resamples", MAX_UNDEFINED_TWICE)
    z = sqrt(fewest / (fewest - 1)) * t_quantile(1 - alpha, fewest - 1)
    bca, parts = _bca(statistic, sizes, drawn.value, once, z)
    both = np.isfinite(drawn.once) & np.isfinite(drawn.twice)
    first, second = drawn.once[both], drawn.twice[both]
    m1, m2, slope = float(first.mean()), float(second.mean()), _slope(first, second)
    bias = drawn.value - m1
    left, half = bias - (m1 - m2), z * (3 - 3 * slope + slope**2) * float(once.std(ddof=1))
    centre = drawn.value + bias
    low, high = min(bca[0], centre - half + min(left, 0.0)), max(bca[1], centre + half + max(left, 0.0))
    details = {**parts, "method": "bootstrap", "resamples": resamples, "undefined": len(drawn.once) - len(once),
               "corrected": centre, "m1": m1, "m2": m2, "slope": slope, "bca": list(bca)}  # fmt: skip
    return drawn.value, (min(drawn.value, max(lowest, low)), max(drawn.value, min(highest, high))), details


def weighted_means(counts: Ints, sums: ArrayLike, sizes: ArrayLike) -> Array:
    """Means over the examples of resampled groups: counts [B, G], sums [G, k] or [G] and sizes [G] of the groups → [B, k] or [B].

    NaN where a row has no example.
    """
    totals = counts @ np.asarray(sums, dtype=np.float64)
    examples = counts @ np.asarray(sizes, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(totals / (examples if totals.ndim == 1 else examples[:, None]), dtype=np.float64)


def _resample(statistic: Statistic, sizes: Sequence[int], seed: int, resamples: int) -> _Resampled:
    if resamples < 100:
        raise OptionError(f"a bootstrap interval needs at least 100 resamples, got {resamples}")
    if not sizes or min(sizes) < 2:
        raise Invalid(
            f"a bootstrap needs at least 2 groups in every sample, got {list(sizes)}",
            {"groups": list(sizes)},
            code=ReasonCode.TOO_FEW_GROUPS,
        )
    value = float(_evaluate(statistic, [np.ones((1, g), np.int64) for g in sizes])[0])
    if not np.isfinite(value):
        raise Invalid("the statistic is undefined on the data themselves", {"groups": list(sizes)}, code=ReasonCode.UNDEFINED_STATISTIC)
    streams = [(np.random.default_rng([seed, i, 0]), np.random.default_rng([seed, i, 1])) for i in range(len(sizes))]
    once, again = [], []
    for start in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - start)
        picked = [outer.integers(0, g, size=(rows, g)) for g, (outer, _) in zip(sizes, streams, strict=True)]
        once.append(_evaluate(statistic, [_counts(p) for p in picked]))
        places = [inner.integers(0, g, size=(rows, g)) for g, (_, inner) in zip(sizes, streams, strict=True)]
        again.append(_evaluate(statistic, [_counts(np.take_along_axis(p, q, 1)) for p, q in zip(picked, places, strict=True)]))
    return _Resampled(value, np.concatenate(once), np.concatenate(again))


def _counts(picked: Ints) -> Ints:
    """How often each group was picked; [rows, G] picks → [rows, G] counts."""
    rows, groups = picked.shape
    places = picked + np.arange(rows)[:, None] * groups
    return np.bincount(places.ravel(), minlength=rows * groups).reshape(rows, groups).astype(np.int64)


def _evaluate(statistic: Statistic, counts: list[Ints]) -> Array:
    values = np.asarray(statistic(*counts), dtype=np.float64)
    if values.shape != (len(counts[0]),):
        raise OptionError(f"the statistic must return one number a row, [{len(counts[0])}], got shape {values.shape}")
    return values


def _defined(values: Array, what: str, allowed: float = MAX_UNDEFINED) -> Array:
    defined = values[np.isfinite(values)]
    missing = len(values) - len(defined)
    if missing > allowed * len(values):
        raise Invalid(f"the statistic is undefined in {missing} of {len(values)} {what}, so no interval can be formed",
                      {"undefined": missing, "of": len(values)}, code=ReasonCode.UNDEFINED_STATISTIC)  # fmt: skip
    return defined


def _bca(
    statistic: Statistic, sizes: Sequence[int], value: float, resampled: Array, z: float
) -> tuple[tuple[float, float], dict[str, Any]]:
    below = ((resampled < value).mean() + (resampled <= value).mean()) / 2
    bias = normal_quantile(float(np.clip(below, 0.5 / len(resampled), 1 - 0.5 / len(resampled))))
    acceleration = _acceleration(statistic, sizes)
    low, high = (float(q) for q in np.quantile(resampled, [_adjusted(bias, acceleration, side) for side in (-z, z)]))
    parts = {"method": "bca", "bias": bias, "acceleration": acceleration, "distinct": len(np.unique(resampled))}
    return (min(low, value), max(high, value)), parts


def _acceleration(statistic: Statistic, sizes: Sequence[int]) -> float:
    cubes = squares = 0.0
    for i, n in enumerate(sizes):
        counts = [np.ones((n, g), np.int64) for g in sizes]
        counts[i] -= np.eye(n, dtype=np.int64)
        jackknife = _defined(_evaluate(statistic, counts), "leave-one-group-out values")
        influence = (n - 1) * (jackknife.mean() - jackknife)
        cubes += float((influence**3).sum()) / n**3
        squares += float((influence**2).sum()) / n**2
    return cubes / (6 * squares**1.5) if squares > 1e-200 else 0.0


def _adjusted(bias: float, acceleration: float, z: float) -> float:
    """The quantile to read in place of Φ(z); 0 or 1 where the correction runs off its end."""
    shifted = bias + z
    scale = 1 - acceleration * shifted
    return normal_cdf(bias + shifted / scale) if scale > 0 else float(shifted > 0)


def _slope(first: Array, second: Array) -> float:
    """Least-squares slope of second on first, within [0, 1]; 1 when first does not vary."""
    spread = first - first.mean()
    square = float((spread**2).sum())
    return float(np.clip((spread * second).sum() / square, 0, 1)) if square > 1e-200 else 1.0
