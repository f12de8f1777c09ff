"""An interval for a mean over random draws and examples at once, counting the variance of both."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import Invalid, OptionError
from .betting import grouped_mean_interval
from .distributions import t_quantile
from .groups import finite, group_means


def crossed_interval(
    values: ArrayLike,
    reference: ArrayLike,
    groups: Sequence[str],
    confidence: float = 0.95,
    lowest: float = -1.0,
    highest: float = 1.0,
) -> tuple[float, tuple[float, float], dict[str, Any]]:
    """`(value, (low, high), parts)` of the mean of values − reference over draws and groups of examples.

    values [n_draws, n_examples], e.g. correctness under each control; reference [n_examples], e.g. under the shared set; differences
    lie in [lowest, highest]. The mean runs over draws and over groups, every group counting the same.

    Examples: a betting interval (exact) over groups for the difference averaged over the draws. Draws: Student's t over the
    means of the draws. The distances of the two intervals' ends from the value are added in quadrature, below and above separately,
    and clipped to the range. The combination is approximate, rather too wide: the draws' means also carry noise of the examples.
    In simulations with planted effects coverage was at least nominal; it can be less where one control in fifty causes all of the effect.

    `parts`: examples (interval), draws (interval, not clipped), draw_sd (of the draws' means), n_draws, n_groups.
    Raises `Invalid` for fewer than 2 draws, whose variance is unknown.
    """
    table, base = finite(values), finite(reference, "reference values")
    if table.ndim != 2 or base.shape != table.shape[1:]:
        raise OptionError(f"values [n_draws, n_examples] and reference [n_examples] are needed, got {table.shape} and {base.shape}")
    draws = len(table)
    if draws < 2:
        raise Invalid(f"the variance between draws cannot be estimated from {draws} draw; draw at least 2", {"draws": draws})
    differences = table - base
    value, examples, count = grouped_mean_interval(differences.mean(0), groups, confidence, lowest, highest)
    means = group_means(differences.T, groups)[0].mean(0)
    spread = float(np.std(means, ddof=1))
    half = t_quantile(confidence, draws - 1) * spread / sqrt(draws)
    low, high = value - hypot(value - examples[0], half), value + hypot(examples[1] - value, half)
    parts = {"examples": list(examples), "draws": [value - half, value + half], "draw_sd": spread, "n_draws": draws, "n_groups": count}
    return value, (max(lowest, low), min(highest, high)), parts
