"""Groups: the units of independent evidence. Examples of one template or one entity share a group.

Groups are kept in the order in which they first appear, so results do not depend on how groups are named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import Invalid, OptionError, ReasonCode

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def finite(values: ArrayLike, what: str = "values") -> Array:
    """`values` as float64. Raises `Invalid` when there are none or when one is NaN or infinite."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise Invalid(f"there are no {what}, so nothing can be estimated", {"n": 0}, code=ReasonCode.TOO_FEW_GROUPS)
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise Invalid(
            f"{bad} of {array.size} {what} are NaN or infinite, so they cannot be averaged",
            {"not_finite": bad, "n": array.size},
            code=ReasonCode.NOT_FINITE,
        )
    return array


def level(confidence: float) -> float:
    """α = 1 − confidence. Raises `OptionError` unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise OptionError(f"a confidence must lie between 0 and 1, got {confidence!r}")
    return 1 - confidence


def group_codes(groups: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """`(codes [n], names [n_groups])`: example i belongs to group `names[codes[i]]`; names in order of first appearance."""
    place: dict[str, int] = {}
    codes = np.fromiter((place.setdefault(g, len(place)) for g in groups), dtype=np.int64, count=len(groups))
    return codes, tuple(place)


def group_sums(values: ArrayLike, groups: Sequence[str]) -> tuple[Array, Ints]:
    """`(sums [n_groups, …], sizes [n_groups])` of per-example values [n, …], groups in order of first appearance.

    Raises `OptionError` when there is not exactly one group name for each example, `Invalid` for values that are not finite.
    """
    array = finite(values)
    if array.ndim == 0 or len(array) != len(groups):
        raise OptionError(f"{len(groups)} group names for values of shape {array.shape}: each example needs exactly one")
    codes, names = group_codes(groups)
    sums = np.zeros((len(names), *array.shape[1:]))
    np.add.at(sums, codes, array)
    return sums, np.bincount(codes, minlength=len(names)).astype(np.int64)


def group_means(values: ArrayLike, groups: Sequence[str]) -> tuple[Array, Array]:
    """`(means [n_groups, …], weights [n_groups])`: the mean of each group's examples, and its share of all examples.

    `weights @ means` is the mean over examples; `means.mean(0)` is the mean over groups, in which every group counts the same.
    """
    sums, sizes = group_sums(values, groups)
    return sums / sizes.reshape(-1, *[1] * (sums.ndim - 1)), sizes / sizes.sum()
