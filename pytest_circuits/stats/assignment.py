"""Which of one model's heads is which of another's: similarity of profiles, and the best one-to-one assignment."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError
from .groups import Array, Ints, finite


def concordance(a: ArrayLike, b: ArrayLike) -> Array:
    """Lin's concordance correlation of every column of a [n, k] with every column of b [n, m]: [k, m], in [−1, 1].

    2·cov / (var + var' + (mean − mean')²) (Lin, A concordance correlation coefficient to evaluate reproducibility, 1989): 1 for equal
    profiles only, so that heads of the same shape and another size are told apart. Two constant equal columns are 1, by definition.
    """
    x, y = finite(a, "scores"), finite(b, "scores")
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise OptionError(f"profiles over the same examples are needed, got {x.shape} and {y.shape}")
    mx, my = x.mean(0), y.mean(0)
    covariance = (x - mx).T @ (y - my) / len(x)
    spread = x.var(0)[:, None] + y.var(0)[None, :] + (mx[:, None] - my[None, :]) ** 2
    return np.where(spread > 0, 2 * covariance / np.where(spread > 0, spread, 1), 1.0)


def best_assignment(gain: ArrayLike) -> Ints:
    """For each row of a square matrix the column of its own, such that the sum of gains is the largest possible; [k].

    The Hungarian method with potentials (Kuhn 1955; Munkres 1957), O(k³). Raises `OptionError` for a matrix that is not square.
    """
    table = finite(gain, "similarities")
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise OptionError(f"a square matrix is needed, got shape {table.shape}")
    size = len(table)
    cost = np.zeros((size + 1, size + 1))
    cost[1:, 1:] = -table
    rows, columns = np.zeros(size + 1), np.zeros(size + 1)
    owner = np.zeros(size + 1, np.int64)  # of each column, its row; 0: none. Column 0 holds the row that is being placed
    for row in range(1, size + 1):
        owner[0], at = row, 0
        slack, before = np.full(size + 1, np.inf), np.zeros(size + 1, np.int64)
        done = np.zeros(size + 1, bool)
        while owner[at]:
            done[at] = True
            reduced = cost[owner[at]] - rows[owner[at]] - columns
            closer = ~done & (reduced < slack)
            slack[closer], before[closer] = reduced[closer], at
            nearest = int(np.where(done, np.inf, slack)[1:].argmin()) + 1
            step = slack[nearest]
            rows[owner[done]] += step
            columns[done] -= step
            slack[~done] -= step
            at = nearest
        while at:
            owner[at], at = owner[before[at]], int(before[at])
    found = np.zeros(size, np.int64)
    found[owner[1:] - 1] = np.arange(size)
    return found
