"""Matching the heads of two models: similarity of profiles, and the best one-to-one assignment."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from .groups import Array, Ints, finite


def concordance(a: ArrayLike, b: ArrayLike) -> Array:
    """Lin's concordance correlation of every column of a [n, k] with every column of b [n, m]: [k, m], in [−1, 1].

    2·cov / (var + var' + (mean − mean')²) (Lin, A concordance correlation coefficient to evaluate reproducibility, 1989): 1 only for
    equal profiles, so that heads of the same shape but another size differ. Two constant equal columns are 1, by definition.
    """
    x, y = finite(a, "scores"), finite(b, "scores")
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise OptionError(f"profiles over the same examples are needed, got {x.shape} and {y.shape}")
    mx, my = x.mean(0), y.mean(0)
    covariance = (x - mx).T @ (y - my) / len(x)
    spread = x.var(0)[:, None] + y.var(0)[None, :] + (mx[:, None] - my[None, :]) ** 2
    return np.where(spread > 0, 2 * covariance / np.where(spread > 0, spread, 1), 1.0)


def best_assignment(gain: ArrayLike) -> Ints:
    """The column assigned to each row of a square matrix so that the sum of gains is largest; [k].

    Raises `OptionError` for a matrix that is not square.
    """
    table = finite(gain, "similarities")
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise OptionError(f"a square matrix is needed, got shape {table.shape}")
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]  # late: slow to import

    _, columns = linear_sum_assignment(table, maximize=True)
    return np.asarray(columns, dtype=np.int64)
