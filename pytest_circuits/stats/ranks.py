"""Ranks and rank correlations, over rows so that a bootstrap is one call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..errors import Invalid, OptionError, ReasonCode
from .groups import Array, Ints, finite

_PAIRS_AT_ONCE = 4_000_000
ROUNDING = 1e-6  # float32 results that differ by less than this share of the largest are equal


def ranks(values: ArrayLike) -> Array:
    """Average ranks along the last axis, the smallest value having rank 1 and ties the mean of their ranks; [..., k]. No NaN."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape[-1] == 0:
        return array.copy()
    order = np.argsort(array, axis=-1, kind="stable")
    ordered = np.take_along_axis(array, order, axis=-1)
    differs = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones((*array.shape[:-1], 1), dtype=bool)
    place = np.arange(array.shape[-1])
    first = np.maximum.accumulate(np.where(np.concatenate([edge, differs], -1), place, 0), axis=-1)
    last_edge = np.where(np.concatenate([differs, edge], -1), place, array.shape[-1])
    last = np.minimum.accumulate(last_edge[..., ::-1], axis=-1)[..., ::-1]
    out = np.empty_like(array)
    np.put_along_axis(out, order, (first + last) / 2 + 1, axis=-1)
    return out


def spearman_rows(a: ArrayLike, b: ArrayLike) -> Array:
    """Spearman's ρ of each row of a with the same row of b, [B, k] → [B]: Pearson's correlation of average ranks.

    NaN for a row with a NaN, or in which a or b is constant: equal values have no ranking.
    """
    x, y = _rows(a), _rows(b)
    known = np.isfinite(x).all(-1) & np.isfinite(y).all(-1)
    middle = (x.shape[-1] + 1) / 2
    rx, ry = ranks(x) - middle, ranks(y) - middle
    below = np.sqrt((rx * rx).sum(-1) * (ry * ry).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = np.clip((rx * ry).sum(-1) / below, -1, 1)
    return np.where(known & (below > 0), rho, np.nan)


def kendall_tau_b_rows(a: ArrayLike, b: ArrayLike) -> Array:
    """Kendall's τ-b of each row of a with the same row of b, [B, k] → [B]; NaN as in `spearman_rows`.

    (concordant − discordant) / √((pairs − ties in a)·(pairs − ties in b)).
    """
    x, y = _rows(a), _rows(b)
    first, second = np.triu_indices(x.shape[-1], 1)
    step = max(1, _PAIRS_AT_ONCE // max(1, len(first)))
    out = np.full(len(x), np.nan)
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        with np.errstate(invalid="ignore", divide="ignore"):
            sx, sy = np.sign(x[part][:, first] - x[part][:, second]), np.sign(y[part][:, first] - y[part][:, second])
            below = np.sqrt(np.abs(sx).sum(-1) * np.abs(sy).sum(-1))
            out[part] = np.clip((sx * sy).sum(-1) / below, -1, 1)
    return np.where(np.isfinite(x).all(-1) & np.isfinite(y).all(-1), out, np.nan)


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's ρ of two vectors [k]. Raises `Invalid` for fewer than 2 values, NaN, or constant input, where ρ does not exist."""
    x, y = _pair(a, b)
    return float(spearman_rows(x[None], y[None])[0])


def kendall_tau_b(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's τ-b of two vectors [k]. Raises `Invalid` for fewer than 2 values, NaN, or constant input, where τ does not exist."""
    x, y = _pair(a, b)
    return float(kendall_tau_b_rows(x[None], y[None])[0])


def chance_of_gap(k: int, gap: int) -> float:
    """P(|Δ| ≥ gap) of one of k items when the two rankings are independent: (k−gap)(k−gap+1)/k², for gap ≥ 1.

    Times k is the number of such items expected by chance. Exact for rankings without ties: 0.525 for k = 20 and a gap of 6.
    """
    if k < 1 or gap < 1:
        raise OptionError(f"a rank gap of at least 1 among at least 1 items is needed, got a gap of {gap} among {k}")
    return max(0, k - gap) * (k - gap + 1) / k**2


def coarse(values: ArrayLike) -> Array:
    """Values as whole multiples of a millionth of their largest magnitude along the last axis; [..., k].

    Values that differ by float32 rounding alone, such as gradients of saturated units, which are 0 in theory, then tie.
    """
    array = np.asarray(values, dtype=np.float64)
    unit = ROUNDING * np.abs(array).max(-1, keepdims=True)
    return np.asarray(np.round(array / np.where(unit > 0, unit, 1.0)), dtype=np.float64)


def gap_rows(a: ArrayLike, b: ArrayLike) -> Array:
    """Δ = rank(a) − rank(b) along rows, of values rounded by `coarse`; [B, k] each → [B, k]."""
    return ranks(coarse(_rows(a))) - ranks(coarse(_rows(b)))


def chance_gaps(a: ArrayLike, b: ArrayLike, gap: float, seed: int = 0, draws: int = 2000) -> tuple[float, Array]:
    """How many items have Δ = rank(a) − rank(b) ≥ gap when the two rankings, ties and all, are matched at random.

    `(expected, counts [draws])`: the exact expectation Σ_i Σ_j [rank(a_i) − rank(b_j) ≥ gap]/k, and counts of random matchings. Without
    ties the expectation is (k−gap)(k−gap+1)/(2k): 5.25 for k = 20 and a gap of 6. Exchange a and b for Δ ≤ −gap.
    """
    x, y = (ranks(coarse(side)) for side in _pair(a, b, constant=True))
    far = x[:, None] - y[None, :] >= gap
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(len(x)), (draws, 1)), axis=1)
    return float(far.sum() / len(x)), far[np.arange(len(x)), order].sum(1).astype(np.float64)


def split_half(sums: ArrayLike, sizes: ArrayLike, correlate: Callable[[Array, Array], Array], seed: int = 0, repeats: int = 100) -> Array:
    """Noise ceiling of a ranking: its correlation between two random disjoint halves of the groups; [repeats].

    sums [G, k] and sizes [G] of the groups' examples; `correlate` gets rows [repeats, k] of the halves' means. With an odd number of
    groups one half has a group more. NaN where a half's values are all equal. Raises `Invalid` for fewer than 2 groups.
    """
    from .bootstrap import weighted_means

    count = len(np.asarray(sizes))
    if count < 2:
        raise Invalid(f"two halves need at least 2 groups, got {count}", {"groups": count}, code=ReasonCode.TOO_FEW_GROUPS)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(count) for _ in range(repeats)])
    first: Ints = np.zeros((repeats, count), np.int64)
    np.put_along_axis(first, orders[:, : count // 2], 1, axis=1)
    return correlate(weighted_means(first, sums, sizes), weighted_means(1 - first, sums, sizes))


def reliability(halves: ArrayLike) -> float | None:
    """The expected correlation of a repetition with all groups, from r of the halves: 2r/(1+r) of their mean (Spearman–Brown).

    NaN are left out; None when all are; 0 for a mean that is not positive. Approximate for rank correlations.
    """
    known = np.asarray(halves, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    mean = max(0.0, float(known.mean()))
    return 2 * mean / (1 + mean)


def _rows(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2:
        raise OptionError(f"rows of values [B, k] are needed, got shape {array.shape}")
    return array


def _pair(a: ArrayLike, b: ArrayLike, constant: bool = False) -> tuple[Array, Array]:
    x, y = finite(a), finite(b)
    if x.shape != y.shape or x.ndim != 1:
        raise OptionError(f"two vectors of equal length are needed, got shapes {x.shape} and {y.shape}")
    if constant:
        return x, y
    if len(x) < 2:
        raise Invalid("a rank correlation needs at least 2 items, got 1", {"items": len(x)}, code=ReasonCode.TOO_FEW_UNITS)
    for name, side in (("first", x), ("second", y)):
        if (side == side[0]).all():
            raise Invalid(
                f"all {len(side)} values of the {name} ranking are equal ({side[0]:g}), so they have no ranking and no correlation",
                {"items": len(side), "constant": name},
                code=ReasonCode.CONSTANT_RANKING,
            )
    return x, y
