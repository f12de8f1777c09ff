"""Disjoint discovery and evaluation examples, by group."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..core.shares import exact
from ..errors import Invalid, OptionError, ReasonCode
from .groups import Ints, group_codes

MIN_GROUPS = 5
"""Fewest groups on a side. Five groups have 126 different bootstrap resamples and four have 35; with fewer, the tail of a 95%
interval is the single most extreme resample, and an exact interval for a bounded mean covers most of the range whatever the data."""


def split_by_group(groups: Sequence[str], share: float, seed: int, minimum: int = MIN_GROUPS) -> tuple[Ints, Ints]:
    """Sorted row numbers `(discovery, evaluation)`; no group is on both sides.

    The assignment depends on the seed, the set of group names and their sizes, not on the order of the examples
    nor on Python's hashing: groups are put in the order of a SHA-256 digest of seed and name. Among all sets of whole groups,
    one whose number of examples is nearest to `share` of all is chosen (subset sum; ties go to fewer discovery examples), by
    preferring groups that come first in that order. Where this would leave fewer than `minimum` groups on a side, the
    smallest groups are first assigned to both sides in turn, `minimum` to each, and the rest is chosen as before.

    Raises `Invalid`, with the count, when there are fewer than 2·minimum groups; `OptionError` for a share outside (0, 1).
    """
    if not 0 < share < 1:
        raise OptionError(f"the discovery share must lie between 0 and 1, got {share!r}")
    discovery, evaluation = _split(tuple(groups), share, seed, minimum)
    return discovery.copy(), evaluation.copy()


def split_first(groups: Sequence[str], first: int | None, share: float, seed: int) -> tuple[Ints, Ints]:
    """`split_by_group` of the first examples alone; None: of all.

    Further examples are evaluation examples, so that discovery stays what it was; those of a discovery group are on neither side.
    Raises as `split_by_group`.
    """
    if first is None:
        return split_by_group(groups, share, seed)
    discovery, evaluation = split_by_group(groups[:first], share, seed)
    closed = {groups[int(i)] for i in discovery}
    further = [i for i in range(first, len(groups)) if groups[i] not in closed]
    return discovery, np.concatenate([evaluation, np.asarray(further, dtype=np.int64)])


@lru_cache(maxsize=64)
def _split(groups: tuple[str, ...], share: float, seed: int, minimum: int) -> tuple[Ints, Ints]:
    """Cached, since every claim on a task needs the same split."""
    codes, names = group_codes(groups)
    if len(names) < 2 * max(1, minimum):
        raise Invalid(
            f"{len(groups)} examples form {len(names)} groups (templates, entities), and each side of the split needs at least {minimum}: "
            f"give the task at least {2 * max(1, minimum)} groups, or use split: in_sample",
            {"n": len(groups), "groups": len(names), "groups_needed": 2 * max(1, minimum)},
            code=ReasonCode.TOO_FEW_GROUPS,
        )
    sizes = np.bincount(codes)
    order = sorted(range(len(names)), key=lambda g: _digest(seed, names[g]))
    target = exact(float(share)) * len(groups)
    chosen = _nearest(order, sizes, target)
    if not minimum <= len(chosen) <= len(names) - minimum:
        dealt = sorted(order, key=lambda g: int(sizes[g]))[: 2 * minimum]
        seated = dealt[0::2]
        rest = [g for g in order if g not in set(dealt)]
        chosen = {*seated, *_nearest(rest, sizes, target - int(sizes[seated].sum()))}
    discovery = np.isin(codes, sorted(chosen))
    return np.flatnonzero(discovery).astype(np.int64), np.flatnonzero(~discovery).astype(np.int64)


def _digest(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).digest()


def _nearest(order: list[int], sizes: Ints, target: object) -> set[int]:
    """The groups, early ones of `order` preferred, whose sizes add up as nearly as possible to `target`."""
    if not order:
        return set()
    reachable = [1]  # bit t of reachable[i]: some of the first i groups have t examples together
    for g in order:
        reachable.append(reachable[-1] | reachable[-1] << int(sizes[g]))
    totals = [t for t in range(reachable[-1].bit_length()) if reachable[-1] >> t & 1]
    total = min(totals, key=lambda t: (abs(t - target), t))  # type: ignore[operator]
    chosen: set[int] = set()
    for i in range(len(order) - 1, -1, -1):
        if not reachable[i] >> total & 1:
            chosen.add(order[i])
            total -= int(sizes[order[i]])
    return chosen
