"""Betting intervals for means of bounded values (Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting, 2024).

Scale values to [0, 1]. A gambler who bets λ_t on "the mean is above m", λ_t chosen before x_t is seen, has the capital
K_t(m) = ∏_{i≤t} (1 + λ_i(m)·(x_i − m)), which is not expected to grow when m is the mean; by Ville's inequality it ever reaches
2/α with probability at most α/2. Every m at which it did is below the interval; the mirror image gives the upper end.

Bets are the predictable plug-in ones for n observations, λ_t = √(2·ln(2/α) / (v_{t−1}·n)) with v the running variance started at 1/4,
truncated at ¾/m so that capital stays positive.
K_t(m) falls in m, hence the set of m that were never ruled out is an interval whose ends are found by bisection.

Exact: coverage is at least the confidence for every n and every distribution on [lowest, highest], provided that each
observation has the same mean given those before it (independent observations do).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from .groups import Array, finite, group_means, level

TRUNCATION = 0.75
_SLACK = 1e-6  # float32 averages may overshoot the range by this much of its width
_STEP = 1e-9
_HALVINGS = 50


def betting_interval(values: ArrayLike, confidence: float = 0.95, lowest: float = 0.0, highest: float = 1.0) -> tuple[float, float]:
    """Interval for the mean of [n] values in [lowest, highest], for an n that was fixed beforehand; n = 1 and constant values too.

    Observations are taken in the given order, so a sorted file gives a bad interval; see `grouped_mean_interval`. The sample
    mean is always inside: where all m below it were ruled out, the interval is extended to it.
    Raises `Invalid` for no or non-finite values, `OptionError` for values outside the range.
    """
    x = _scaled(values, lowest, highest)
    alpha = level(confidence)
    low = _lower(x, _bets(x, alpha), log(2 / alpha))
    high = 1 - _lower(1 - x, _bets(1 - x, alpha), log(2 / alpha))
    return _unscaled(low, high, float(x.mean()), lowest, highest)


def grouped_mean_interval(
    values: ArrayLike, groups: Sequence[str], confidence: float = 0.95, lowest: float = 0.0, highest: float = 1.0
) -> tuple[float, tuple[float, float], int]:
    """`(value, (low, high), n_groups)` for per-example values [n] in [lowest, highest] whose groups are independent.

    What is estimated is the mean over groups of the group's mean: every group counts the same, however many examples it has (it
    equals the mean over examples when groups have equal sizes). One observation a group. The groups are
    taken in a fixed shuffled order that depends on their number alone, so that a file sorted by difficulty does no harm.
    Exact if groups are independent and their means have a common expectation.
    """
    means, _ = group_means(values, groups)
    return float(means.mean()), betting_interval(means[shuffled(len(means))], confidence, lowest, highest), len(means)


def shuffled(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A fixed permutation of n things, the same in every run."""
    return np.random.default_rng([n, 0x5EED]).permutation(n).astype(np.int64)


def _scaled(values: ArrayLike, lowest: float, highest: float) -> Array:
    if not lowest < highest:
        raise OptionError(f"the range [{lowest}, {highest}] is empty")
    raw = finite(values)
    if raw.ndim != 1:
        raise OptionError(f"values must be one-dimensional, got shape {raw.shape}")
    x = (raw - lowest) / (highest - lowest)
    if x.min() < -_SLACK or x.max() > 1 + _SLACK:
        raise OptionError(f"values must lie in [{lowest:g}, {highest:g}], got {raw.min():g} to {raw.max():g}")
    return np.clip(x, 0, 1)


def _unscaled(low: float, high: float, mean: float, lowest: float, highest: float) -> tuple[float, float]:
    width = highest - lowest
    return max(lowest, lowest + min(low, mean) * width), min(highest, lowest + max(high, mean) * width)


def _bets(x: Array, alpha: float) -> Array:
    """λ_t of each observation, from those before it; [n]."""
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2 * log(2 / alpha) / (before * len(x))), dtype=np.float64)


def _ruled_out(x: Array, bets: Array, m: float, threshold: float) -> bool:
    """Whether the capital against "the mean is m" ever reached the threshold (in nats)."""
    return bool(np.cumsum(np.log1p(np.minimum(bets, TRUNCATION / m) * (x - m))).max() >= threshold)


def _lower(x: Array, bets: Array, threshold: float) -> float:
    """The largest m that is ruled out from above, by bisection; 0 if there is none."""
    low, high = 0.0, 1.0
    if not _ruled_out(x, bets, _STEP, threshold):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _ruled_out(x, bets, middle, threshold) else (low, middle)
    return low
