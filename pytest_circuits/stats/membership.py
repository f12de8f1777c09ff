"""Whether named units are in a set that is estimated from examples (yes, no, or unknown), and what a random set would score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.shares import share
from ..errors import Invalid, OptionError, ReasonCode
from .betting import grouped_mean_interval
from .groups import Array, Ints, level

Between = tuple[float, float]
Bools = NDArray[np.bool_]
_SLACK = 1e-9  # rounding of a mean
YES, NO, UNKNOWN = (1.0, 1.0), (0.0, 0.0), (0.0, 1.0)


def frequent(members: ArrayLike, groups: Sequence[str], p: float, confidence: float = 0.95, inside: bool = True) -> tuple[Between, Array]:
    """Whether all of m units belong (`inside`), or none of them, to the population's S_P: `(interval, frequencies [m, 3])`.

    members bool [n, m]: in which circuits each unit is. A unit belongs to S_P when its frequency in the population, groups counting the
    same, is at least P; each has a betting interval (rows of the second result: mean, low, high at `confidence`). The interval is (1, 1)
    when the interval of every unit is on the right side of P. This needs no correction for m: the chance that the least convincing unit is
    wrongly on that side is at most (1 − confidence)/2. It is (0, 0) when one unit's is on the wrong side at confidence
    1 − (1 − confidence)/m (Bonferroni), and (0, 1) otherwise. Exact if groups are independent. Raises `Invalid` without examples.
    """
    table = np.asarray(members)
    if table.dtype != bool or table.ndim != 2 or not table.shape[1]:
        raise OptionError(f"a bool table [n_examples, n_units] of at least one unit is needed, got {table.dtype} {table.shape}")
    bound, m, alpha = float(share(p)), table.shape[1], level(confidence)
    rows, wrong = [], False
    for column in table.T:
        mean, (low, high), _ = grouped_mean_interval(column, groups, confidence)
        rows.append((mean, low, high))
        _, (least, most), _ = grouped_mean_interval(column, groups, 1 - alpha / m)
        wrong |= most < bound if inside else least >= bound
    right = all(low >= bound if inside else high < bound for _, low, high in rows)
    return YES if right else NO if wrong else UNKNOWN, np.array(rows)


def possible(tallies: ArrayLike, sizes: ArrayLike, p: float, confidence: float = 0.95) -> Bools:
    """Which units may belong to the population's S_P: a mask [N], which includes the sample's own S_P.

    tallies [G, N]: in how many examples of each group a unit is a member; sizes [G]. A unit may belong where the upper end of the
    skewness-corrected t interval of its frequency over groups is at least P, each unit by itself. Approximate. Raises `Invalid` for fewer
    than 2 groups.
    """
    from .hall_interval import mean_bounds

    bound = float(share(p)) - _SLACK
    means, _, high = mean_bounds(tallies, sizes, confidence)
    return (means >= bound) | (high >= bound)


def support(
    holds: Callable[[Ints], ArrayLike], groups: int, confidence: float = 0.95, seed: int = 0, resamples: int = 2000
) -> tuple[Between, float]:
    """Percentile bootstrap of a yes-or-no statistic: `(interval, share)`; `share` of the resamples of `groups` groups say yes.

    `holds` takes counts [rows, groups] and returns bool [rows]. (1, 1) when fewer than (1 − confidence)/2 of the resamples say no,
    (0, 0) when fewer say yes, else (0, 1). Approximate: resampling shows how stable an answer is, not whether it is right.
    Raises `Invalid` for fewer than 2 groups.
    """
    if groups < 2:
        raise Invalid(f"a bootstrap needs at least 2 groups, got {groups}", {"groups": groups}, code=ReasonCode.TOO_FEW_GROUPS)
    counts = np.random.default_rng(seed).multinomial(groups, np.full(groups, 1 / groups), size=resamples).astype(np.int64)
    yes = float(np.asarray(holds(counts), dtype=bool).mean())
    tail = level(confidence) / 2
    return YES if 1 - yes < tail else NO if yes < tail else UNKNOWN, yes


def random_match(circuit: ArrayLike, known: ArrayLike, labels: Sequence[str]) -> dict[str, Any]:
    """The scores of a random set with as many members of every label as `circuit`; masks [N], labels [N] such as head and mlp.

    `overlap`: the expected number of known units in it; `recall`, `precision`: the same divided by either size; `contains`, `excludes`: the
    chance that it has all known units, or none; `p_at_least`: the chance of at least the observed overlap. Exact (hypergeometric).
    Raises `Invalid` for an empty set.
    """
    x, y = np.asarray(circuit, bool), np.asarray(known, bool)
    if not x.any() or not y.any():
        raise Invalid("an empty set overlaps with nothing", {"found": int(x.sum()), "known": int(y.sum())}, code=ReasonCode.EMPTY_SET)
    if len(labels) != len(x) or len(x) != len(y):
        raise OptionError(f"{len(labels)} labels for {len(x)} and {len(y)} units: each unit needs exactly one")
    chances = [Fraction(1)]
    for label in dict.fromkeys(labels):
        of_label = np.array([name == label for name in labels])
        n, size, wanted = int(of_label.sum()), int(x[of_label].sum()), int(y[of_label].sum())
        chances_of_label = [Fraction(comb(wanted, i) * comb(n - wanted, size - i), comb(n, size)) for i in range(min(size, wanted) + 1)]
        chances = [
            sum((chances[j] * chances_of_label[i - j] for j in range(len(chances)) if 0 <= i - j < len(chances_of_label)), Fraction(0))
            for i in range(len(chances) + len(chances_of_label) - 1)
        ]
    expected = sum(i * chance for i, chance in enumerate(chances))
    total, wanted, hits = int(x.sum()), int(y.sum()), int((x & y).sum())
    return {
        "overlap": float(expected),
        "recall": float(expected / wanted),
        "precision": float(expected / total),
        "jaccard": float(sum(Fraction(i, total + wanted - i) * chance for i, chance in enumerate(chances))),
        "contains": float(chances[wanted]) if wanted < len(chances) else 0.0,
        "excludes": float(chances[0]),
        "p_at_least": float(sum(chances[hits:])),
    }
