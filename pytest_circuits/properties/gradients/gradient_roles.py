"""Hidden heroes and gradient bloats, by two rules: one with bounds that hold at once, and the published one.

A hero matters and has a low gradient; a bloat has a high gradient and does not matter.

`certified`: with m(share) = floor(share·N) and s the number of components with a strictly smaller mean gradient,
    hero:  C > delta    and  s < m(low)         (its gradient is among the lowest)
    bloat: C < epsilon  and  s ≥ N − m(high)    (its gradient is among the highest)
Intervals for all C (α/2, Bonferroni over N) and for all differences of two mean gradients (α/2, Bonferroni over N(N−1)/2 pairs) hold at
once. A component is surely in a role if it meets the rule everywhere inside these intervals, possibly if it does somewhere. The number of
components that truly have the role then lies between the two counts, with the given confidence. Tied gradients (heads that share a value
head, units without any gradient) are not smaller than each other.

`rank_gap`: Δ = rank(G) − rank(C), hero Δ ≤ −gap, bloat Δ ≥ gap. Random rankings of 20 components have 5.25 heroes and 5.25 bloats by a gap
of 6, so the number expected by chance is always reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Any, Literal

from ...core.shares import exact
from ...errors import Invalid, ReasonCode
from .gradient_vs_causal import GradientVsCausal
from .parameters import EFFECT_UNITS

Role = Literal["heroes", "bloats"]


@dataclass(frozen=True)
class RoleMembers:
    """The components that surely have a role, those that possibly have it (including the sure ones), and the evidence."""

    sure: list[str]
    possible: list[str]
    details: dict[str, Any]


def certified(sides: GradientVsCausal, role: Role, threshold: float, portion: float, confidence: float) -> RoleMembers:
    """Members of a role by rule `certified`; `threshold` is delta or epsilon, `portion` low or high.

    The intervals of C are betting intervals for accuracy (exact; every group counts the same) and skewness-corrected otherwise
    (approximate). Raises `Invalid` if the portion is less than one component.
    """
    from ...stats.hall_interval import simultaneous, smaller_counts

    n = len(sides.units)
    share = floor(exact(portion) * n)
    if share < 1:
        raise Invalid(
            f"{'low' if role == 'heroes' else 'high'}: {portion:g} of {n} components is less than one, so no gradient could count",
            {"components": n, "share": portion},
            code=ReasonCode.EMPTY_SET,
        )
    half = simultaneous(confidence, 2)
    value, low, high = _effects(sides, simultaneous(half, n))
    surely, possibly = smaller_counts(*sides.sums[0], half)
    if role == "heroes":
        in_place, maybe_in_place = possibly < share, surely < share
        matters, maybe_matters = low > threshold, high > threshold
        condition = f"C > {threshold:g} {EFFECT_UNITS[sides.effect]} and fewer than {share} of {n} components with a smaller gradient"
    else:
        in_place, maybe_in_place = surely >= n - share, possibly >= n - share
        matters, maybe_matters = high < threshold, low < threshold
        condition = f"C < {threshold:g} {EFFECT_UNITS[sides.effect]} and at least {n - share} of {n} components with a smaller gradient"
    sure, possible = in_place & matters, maybe_in_place & maybe_matters
    return RoleMembers(
        _named(sides, sure),
        _named(sides, possible),
        {
            "rule": condition,
            "causal": {u: [float(value[i]), float(low[i]), float(high[i])] for i, u in enumerate(sides.units)},
            "smaller_gradients": {u: [int(surely[i]), int(possibly[i])] for i, u in enumerate(sides.units)},
            "undecided": _named(sides, possible & ~sure),
            "undecided_because_of_gradient": _named(sides, possible & ~in_place),
            "undecided_because_of_effect": _named(sides, possible & ~matters),
        },
    )


def by_rank_gap(sides: GradientVsCausal, role: Role, gap: int) -> RoleMembers:
    """Members of a role by the published rule, and the number expected by chance. Raises `Invalid` for constant C or a gap out of reach."""
    from ...stats import ranks

    n = len(sides.units)
    if gap >= n:
        raise Invalid(
            f"the ranks of {n} components differ by at most {n - 1}, so gap: {gap} can never be reached",
            {"components": n},
            code=ReasonCode.GAP_OUT_OF_REACH,
        )
    g, c = sides.means
    ranks.spearman(g, c)  # refuses rankings of equal values
    delta = ranks.gap_rows(g[None], c[None])[0]
    expected, counts = ranks.chance_gaps(c, g, gap) if role == "heroes" else ranks.chance_gaps(g, c, gap)
    names = _named(sides, delta <= -gap if role == "heroes" else delta >= gap)
    return RoleMembers(
        names,
        names,
        {
            "rule": f"rank(G) − rank(C) {'≤ −' if role == 'heroes' else '≥ '}{gap} among {n} components",
            "rank_difference": {u: float(d) for u, d in zip(sides.units, delta, strict=True)},
            "expected_by_chance": expected,
            "chance_of_as_many": (1 + int((counts >= len(names)).sum())) / (1 + len(counts)),
        },
    )


def _effects(sides: GradientVsCausal, confidence: float) -> tuple[Any, Any, Any]:
    """C, and the ends of its intervals; [N] each."""
    import numpy as np

    from ...stats.betting import grouped_mean_interval
    from ...stats.hall_interval import mean_bounds

    if sides.effect != "accuracy":
        return mean_bounds(*sides.sums[1], confidence)
    rows = [grouped_mean_interval(column, sides.groups, confidence, -1.0, 1.0) for column in sides.causal.T]
    return np.array([r[0] for r in rows]), np.array([r[1][0] for r in rows]), np.array([r[1][1] for r in rows])


def _named(sides: GradientVsCausal, mask: Any) -> list[str]:
    return [unit for unit, inside in zip(sides.units, mask, strict=True) if inside]
