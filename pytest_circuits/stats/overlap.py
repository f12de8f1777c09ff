"""Overlap of sets of units, its chance level, and its noise ceiling. Sets are bool masks over the same units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.shares import needed, share
from ..errors import Invalid, OptionError, ReasonCode
from .groups import Array, Ints, group_codes

Bools = NDArray[np.bool_]


def jaccard(a: ArrayLike, b: ArrayLike) -> float:
    """|A∩B| / |A∪B|. Raises `Invalid` when both sets are empty, which shows no agreement."""
    x, y = _masks(a, b)
    return _ratio(int((x & y).sum()), int((x | y).sum()), "both sets are empty, so their overlap is undefined")


def overlap_coefficient(a: ArrayLike, b: ArrayLike) -> float:
    """|A∩B| / min(|A|, |B|). Raises `Invalid` when a set is empty."""
    x, y = _masks(a, b)
    return _ratio(int((x & y).sum()), min(int(x.sum()), int(y.sum())), "a set is empty, so the overlap coefficient is undefined")


def containment(a: ArrayLike, b: ArrayLike) -> float:
    """|A∩B| / |A|: the share of A that lies in B. Raises `Invalid` when A is empty."""
    x, y = _masks(a, b)
    return _ratio(int((x & y).sum()), int(x.sum()), "the first set is empty, so its containment is undefined")


def jaccard_rows(a: Bools, b: Bools) -> Array:
    """Jaccard of each row of a with the same row of b, [B, N] → [B]; NaN where both are empty."""
    union = (a | b).sum(-1)
    return np.where(union > 0, (a & b).sum(-1) / np.maximum(union, 1), np.nan)


@dataclass(frozen=True)
class Null:
    """The Jaccard of two random sets of given sizes: mean, central 95% range, and the chance of at least the observed overlap.

    `smallest` is the least Jaccard that counting alone allows.
    """

    mean: float
    low: float
    high: float
    p_at_least: float
    smallest: float


def typed_null(a: ArrayLike, b: ArrayLike, labels: Sequence[str]) -> Null:
    """Chance level of the Jaccard of A and B: random sets with as many members of every label as A and B have.

    `labels` [N] gives each unit's stratum: its type ("head", "mlp"), or type and layer. Within a stratum of N_s units the size of the
    intersection of independent uniform sets of a_s and b_s is hypergeometric; strata are independent, so the whole intersection is the
    convolution, and J = I/(|A|+|B|−I). Exact up to rounding. Raises `Invalid` when both sets are empty.
    """
    x, y = _masks(a, b)
    if len(labels) != len(x):
        raise OptionError(f"{len(labels)} labels for {len(x)} units: each unit needs exactly one")
    codes, names = group_codes(labels)
    sizes, in_a, in_b = (np.bincount(codes, weights=w, minlength=len(names)).astype(int) for w in (None, x, y))
    chances, start = np.ones(1), 0
    for n, size_a, size_b in zip(sizes, in_a, in_b, strict=True):
        part, least = _hypergeometric(int(n), int(size_a), int(size_b))
        chances, start = np.convolve(chances, part), start + least
    total = int(x.sum() + y.sum())
    if total == 0:
        raise Invalid("both sets are empty, so their overlap has no chance level", {"sizes": [0, 0]}, code=ReasonCode.EMPTY_SET)
    shared = start + np.arange(len(chances))
    values = shared / (total - shared)
    upto = np.cumsum(chances)
    from_on = np.cumsum(chances[::-1])[::-1]
    observed = int((x & y).sum())
    return Null(
        mean=float(chances @ values),
        low=float(values[np.searchsorted(upto, 0.025 - 1e-12)]),
        high=float(values[len(values) - 1 - np.searchsorted(from_on[::-1], 0.025 - 1e-12)]),
        p_at_least=min(1.0, float(from_on[observed - start])),
        smallest=float(values[0]),
    )


def chance_rows(a: Bools, b: Bools, labels: Sequence[str]) -> Array:
    """The mean of `typed_null` for each row of a with the same row of b, [B, N] → [B]; NaN where both are empty.

    It depends only on how many members of each label the sets have, so rows with equal counts are computed once.
    """
    codes, names = group_codes(labels)
    if a.shape != b.shape or a.shape[-1] != len(codes):
        raise OptionError(f"two masks over {len(codes)} labelled units are needed, got {a.shape} and {b.shape}")
    kinds = np.eye(len(names), dtype=np.int64)[codes]
    counts = np.concatenate([a.astype(np.int64) @ kinds, b.astype(np.int64) @ kinds], axis=1)
    distinct, which = np.unique(counts, axis=0, return_inverse=True)
    means = np.full(len(distinct), np.nan)
    for i, row in enumerate(distinct):
        if row.any():
            x, y = (_set_of_counts(kinds, part) for part in np.split(row, 2))
            means[i] = typed_null(x, y, labels).mean
    return means[which.reshape(-1)]


def _set_of_counts(kinds: Ints, counts: Ints) -> Bools:
    """A set with these numbers of members of each label."""
    return np.asarray(((np.cumsum(kinds, axis=0) <= counts) & (kinds > 0)).any(1), dtype=bool)


def group_tallies(members: Bools, groups: Sequence[str]) -> tuple[Ints, Ints]:
    """`(tallies [G, N], sizes [G])`: in how many examples of each group a unit is a member, and how many examples it has."""
    codes, names = group_codes(groups)
    if len(codes) != len(members):
        raise OptionError(f"{len(codes)} group names for {len(members)} circuits: each needs exactly one")
    tallies = np.zeros((len(names), members.shape[1]), np.int64)
    np.add.at(tallies, codes, members.astype(np.int64))
    return tallies, np.bincount(codes, minlength=len(names)).astype(np.int64)


def shared_rows(counts: Ints, tallies: Ints, sizes: Ints, p: float) -> Bools:
    """S_P of resampled groups: counts [B, G], tallies [G, N], sizes [G] → masks [B, N]. In exact arithmetic, as `CircuitSet.shared_mask`.

    A row without examples has an empty set.
    """
    ratio = share(p)
    examples = counts @ sizes
    times = (counts.astype(np.float64) @ tallies.astype(np.float64)).astype(np.int64)  # exact below 2^53, and BLAS is much faster
    return np.asarray((times * ratio.denominator >= examples[:, None] * ratio.numerator) & (examples > 0)[:, None], dtype=bool)


def split_half(members: Bools, groups: Sequence[str], p: float, seed: int = 0, repeats: int = 100) -> tuple[float, Array]:
    """Noise ceiling: `(mean, values [repeats])`, the Jaccard between the sets S_P of two random disjoint halves of the groups.

    Two tasks with the same set would score no more than about this. It is biased downwards, because each half has only half of the
    examples. With an odd number of groups one half has a group more. NaN in `values`: both halves had an empty set; the mean leaves
    those out.
    Raises `Invalid` for fewer than 2 groups, or when every repeat gave two empty sets.
    """
    tallies, sizes = group_tallies(members, groups)
    count = len(sizes)
    if count < 2 or repeats < 1:
        raise Invalid(
            f"two halves need at least 2 groups and 1 repeat, got {count} and {repeats}", {"groups": count}, code=ReasonCode.TOO_FEW_GROUPS
        )
    first = halves(count, repeats, seed)
    values = jaccard_rows(shared_rows(first, tallies, sizes, p), shared_rows(1 - first, tallies, sizes, p))
    if np.isnan(values).all():
        raise Invalid(
            f"no unit is in {p:.0%} of the examples of either half in any of {repeats} splits, so there is no noise ceiling",
            {"repeats": repeats, "needed_of": needed(p, max(1, len(members) // 2))},
            code=ReasonCode.EMPTY_SHARED_SET,
        )
    return float(np.nanmean(values)), values


def halves(groups: int, repeats: int, seed: int = 0) -> Ints:
    """Random halves of the groups, int64 [repeats, groups]: 1 for those in the first half, which has half of them, rounded down."""
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(groups) for _ in range(repeats)])
    first = np.zeros((repeats, groups), np.int64)
    np.put_along_axis(first, orders[:, : groups // 2], 1, axis=1)
    return first


def agreement_rows(a: Bools, b: Bools, labels: Sequence[str] | None = None) -> Array:
    """Jaccard of each row of a with the same row of b, [B, N] → [B]; 0 where both are empty, since they share nothing.

    With `labels` the chance level of every row is subtracted.
    """
    overlaps = np.nan_to_num(jaccard_rows(a, b), nan=0.0)
    return overlaps if labels is None else overlaps - np.nan_to_num(chance_rows(a, b, labels), nan=0.0)


def half_rows(counts: Ints, tallies: Ints, sizes: Ints, p: float, first: Ints, labels: Sequence[str] | None = None) -> Array:
    """Mean over splits of the agreement of both halves' sets S_P, for resampled groups: counts [B, G], first [R, G] → [B]."""
    each = [
        agreement_rows(shared_rows(counts * half, tallies, sizes, p), shared_rows(counts * (1 - half), tallies, sizes, p), labels)
        for half in first
    ]
    return np.asarray(np.mean(each, axis=0), dtype=np.float64)


def alone_rows(counts: Ints, tallies: Ints, sizes: Ints, p: float, which: Sequence[int], labels: Sequence[str] | None = None) -> Array:
    """Mean over groups of the agreement of a group's set S_P with that of all other groups, for resampled groups: counts [B, G] → [B].

    `which` are the groups that are compared with the rest; a group that was drawn twice counts twice. NaN where none was drawn.
    """
    total = np.zeros(len(counts))
    for g in which:
        rest = counts.copy()
        rest[:, g] = 0
        single = np.broadcast_to(shared_rows(np.eye(len(sizes), dtype=np.int64)[[g]], tallies, sizes, p), (len(counts), tallies.shape[1]))
        total += counts[:, g] * agreement_rows(single, shared_rows(rest, tallies, sizes, p), labels)
    drawn = counts[:, list(which)].sum(1)
    return np.where(drawn > 0, total / np.maximum(drawn, 1), np.nan)


def _hypergeometric(n: int, a: int, b: int) -> tuple[Array, int]:
    """`(chances, least)` of |A∩B| = least, least+1, … for independent uniform sets of a and b out of n; by ratios of neighbours."""
    least, most = max(0, a + b - n), min(a, b)
    k = np.arange(least, most, dtype=np.float64)
    steps = np.log(a - k) + np.log(b - k) - np.log(k + 1) - np.log(n - a - b + k + 1)
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    chances = np.exp(logs - logs.max())
    return chances / chances.sum(), least


def _masks(a: ArrayLike, b: ArrayLike) -> tuple[Bools, Bools]:
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != bool or y.dtype != bool or x.shape != y.shape or x.ndim != 1:
        raise OptionError(f"two bool masks over the same units are needed, got {x.dtype} {x.shape} and {y.dtype} {y.shape}")
    return x, y


def _ratio(above: int, below: int, problem: str) -> float:
    if below == 0:
        raise Invalid(problem, {"size": 0}, code=ReasonCode.EMPTY_SET)
    return above / below
