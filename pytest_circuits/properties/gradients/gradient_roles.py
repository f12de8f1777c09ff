"""Hidden heroes and gradient bloats: two rules, one that is sound and the published one.

A hero matters and has a low gradient; a bloat has a high gradient and does not matter.

`certified`: with m(share) = floor(share·N) and s the number of components with a strictly smaller mean gradient,
    hero:  C > delta    and  s < m(low)         (its gradient is among the lowest)
    bloat: C < epsilon  and  s ≥ N − m(high)    (its gradient is among the highest)
Intervals for all C (α/2, Bonferroni over N) and for all differences of two mean gradients (α/2, Bonferroni over N(N−1)/2 pairs) hold at
once; a component is surely in a role when they leave no doubt, possibly when they do not exclude it. So with the confidence the number
of components that truly have the role lies between the two counts. Tied gradients (heads that share a value head, units without any) are no
smaller than each other.

`rank_gap`: Δ = rank(G) − rank(C), hero Δ ≤ −gap, bloat Δ ≥ gap. For random rankings of 20 components and a gap of 6 that holds for
5.25 heroes and 5.25 bloats, so the number expected by chance is always given.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.shares import exact
from ...core.verdict import Estimate
from ...errors import Invalid
from ..parameters import Parameters
from .gradient_vs_causal import UNITS, GradientAndAblation, GradientVsCausal, listed, tied

Role = Literal["heroes", "bloats"]
Portion = Annotated[float, Field(gt=0, lt=1)]


class RoleRule(Parameters):
    """How roles are told."""

    rule: Annotated[
        Literal["certified", "rank_gap"],
        Field(description="certified: bounds on C and on the place of G; rank_gap: the published difference of ranks"),
    ] = "certified"
    gap: Annotated[int, Field(ge=1, description="rule rank_gap: least difference of ranks; published: 6 of 20")] = 6


class HeroRule(RoleRule):
    """What makes a hero."""

    delta: Annotated[float, Field(ge=0, description="rule certified: what a hero costs at least, in nats, accuracy points or metric")] = 0.1
    low: Annotated[Portion, Field(description="rule certified: share of components whose gradients count as low")] = 0.5


class BloatRule(RoleRule):
    """What makes a bloat."""

    epsilon: Annotated[float, Field(gt=0, description="rule certified: what a bloat costs at most, in nats, accuracy points or metric")] = (
        0.05
    )
    high: Annotated[Portion, Field(description="rule certified: share of components whose gradients count as high")] = 0.5


class BothRules(HeroRule, BloatRule):
    """For properties that know both roles."""

    @model_validator(mode="after")
    def _apart(self) -> BothRules:
        if exact(self.low) + exact(self.high) > 1:
            raise ValueError(f"low {self.low:g} and high {self.high:g} overlap: a gradient would count as low and as high")
        return self


@dataclass(frozen=True)
class RoleCounts:
    """The components that surely have a role and those that possibly have it (the sure ones among them), and the evidence."""

    sure: list[str]
    possible: list[str]
    details: dict[str, Any]


def certified(sides: GradientVsCausal, role: Role, threshold: float, portion: float, confidence: float) -> RoleCounts:
    """Roles by the sound rule; `threshold` is delta or epsilon, `portion` low or high.

    C has betting intervals where it is accuracy (exact; every group counts the same) and skewness-corrected ones otherwise
    (approximate). Raises `Invalid` where the portion is no whole component.
    """
    from ...stats.hall_interval import simultaneous, smaller_counts

    n = len(sides.units)
    share = floor(exact(portion) * n)
    if share < 1:
        raise Invalid(
            f"{'low' if role == 'heroes' else 'high'}: {portion:g} of {n} components is less than one, so no gradient could count",
            {"components": n, "share": portion},
        )
    half = simultaneous(confidence, 2)
    value, low, high = _costs(sides, simultaneous(half, n))
    surely, possibly = smaller_counts(*sides.sums[0], half)
    if role == "heroes":
        in_place, maybe_in_place = possibly < share, surely < share
        matters, maybe_matters = low > threshold, high > threshold
        condition = f"C > {threshold:g} {UNITS[sides.effect]} and fewer than {share} of {n} components with a smaller gradient"
    else:
        in_place, maybe_in_place = surely >= n - share, possibly >= n - share
        matters, maybe_matters = high < threshold, low < threshold
        condition = f"C < {threshold:g} {UNITS[sides.effect]} and at least {n - share} of {n} components with a smaller gradient"
    pick = _picker(sides)
    sure, possible = in_place & matters, maybe_in_place & maybe_matters
    return RoleCounts(
        pick(sure),
        pick(possible),
        {
            "rule": condition,
            "causal": {u: [float(value[i]), float(low[i]), float(high[i])] for i, u in enumerate(sides.units)},
            "smaller_gradients": {u: [int(surely[i]), int(possibly[i])] for i, u in enumerate(sides.units)},
            "undecided": pick(possible & ~sure),
            "undecided_because_of_gradient": pick(possible & ~in_place),
            "undecided_because_of_effect": pick(possible & ~matters),
        },
    )


def by_rank_gap(sides: GradientVsCausal, role: Role, gap: int) -> RoleCounts:
    """Roles by the published rule, with what chance gives. Raises `Invalid` for constant C, or a gap that no component can reach."""
    from ...stats import ranks

    n = len(sides.units)
    if gap >= n:
        raise Invalid(f"the ranks of {n} components differ by at most {n - 1}, so gap: {gap} can never be reached", {"components": n})
    g, c = sides.means
    ranks.spearman(g, c)  # refuses rankings of equal values
    delta = ranks.gap_rows(g[None], c[None])[0]
    expected, counts = ranks.chance_gaps(c, g, gap) if role == "heroes" else ranks.chance_gaps(g, c, gap)
    names = _picker(sides)(delta <= -gap if role == "heroes" else delta >= gap)
    return RoleCounts(
        names,
        names,
        {
            "rule": f"rank(G) − rank(C) {'≤ −' if role == 'heroes' else '≥ '}{gap} among {n} components",
            "rank_difference": {u: float(d) for u, d in zip(sides.units, delta, strict=True)},
            "expected_by_chance": expected,
            "chance_of_as_many": (1 + int((counts >= len(names)).sum())) / (1 + len(counts)),
        },
    )


def count(sides: GradientVsCausal, role: Role, p: Any, threshold: float, portion: float, resamples: int, name: str) -> Estimate:
    """How many components have a role, by the rule of these parameters."""
    n = len(sides.units)
    published = by_rank_gap(sides, role, p.gap) if p.gap < n or p.rule == "rank_gap" else None
    details: dict[str, Any] = {**sides.as_dict(p), "correlations": _correlations(sides)}
    if p.rule == "certified":
        found = certified(sides, role, threshold, portion, p.confidence)
        interval = (float(len(found.sure)), float(len(found.possible)))
        kind, unsettled = "surely to possibly, by simultaneous bounds on effects and on the order of gradients", None
    else:
        assert published is not None
        found = published
        interval, details["bootstrap"] = _bootstrapped(sides, role, p, resamples)
        kind, unsettled = "bias-corrected bootstrap over groups", tied(sides)
    details |= {role: found.sure, "possible": found.possible, **found.details}
    details["rank_gap"] = None if published is None else {role: published.sure, **published.details}
    details["notes"] = _told(sides, role, p, found, published)
    return Estimate(float(len(found.sure)), interval, len(sides.causal), p.confidence, kind, name, details, unsettled)


def _costs(sides: GradientVsCausal, confidence: float) -> tuple[Any, Any, Any]:
    """C with its interval; [N] each."""
    import numpy as np

    from ...stats.betting import grouped_mean_interval
    from ...stats.hall_interval import mean_bounds

    if sides.effect != "accuracy":
        return mean_bounds(*sides.sums[1], confidence)
    rows = [grouped_mean_interval(column, sides.groups, confidence, -1.0, 1.0) for column in sides.causal.T]
    return np.array([r[0] for r in rows]), np.array([r[1][0] for r in rows]), np.array([r[1][1] for r in rows])


def _bootstrapped(sides: GradientVsCausal, role: Role, p: Any, resamples: int) -> tuple[tuple[float, float], dict[str, Any]]:
    """The interval of the published count, everything recomputed; ends are rounded outwards to whole components."""
    from math import ceil

    from ...stats.ranks import gap_rows

    def many(g: Any, c: Any) -> Any:
        delta = gap_rows(g, c)
        return (delta <= -p.gap if role == "heroes" else delta >= p.gap).sum(-1).astype(float)

    _, (low, high), parts = sides.bootstrap(many, p.confidence, resamples, 0.0, float(len(sides.units)))
    return (float(floor(low)), float(ceil(high))), parts


def _correlations(sides: GradientVsCausal) -> dict[str, float] | None:
    """ρ and τ-b between G and C; None where C is constant."""
    from ...stats import ranks

    try:
        return {"spearman": ranks.spearman(*sides.means), "kendall_tau_b": ranks.kendall_tau_b(*sides.means)}
    except Invalid:
        return None


def _picker(sides: GradientVsCausal) -> Any:
    return lambda mask: [u for u, inside in zip(sides.units, mask, strict=True) if inside]


def _told(sides: GradientVsCausal, role: Role, p: GradientAndAblation, found: RoleCounts, published: RoleCounts | None) -> list[str]:
    what = "hidden heroes" if role == "heroes" else "gradient bloats"
    where = f"G: {p.gradient} on {len(sides.gradient)} examples; C: {sides.effect} under {p.ablation} ablation on {len(sides.causal)}"
    lines = [f"{where} in {len(set(sides.groups))} groups; {len(sides.units)} components"]
    if "undecided" in found.details:
        lines.append(f"{what}: {listed(found.sure)} for sure, {listed(found.details['undecided'])} undecided; {found.details['rule']}")
    if published is not None:
        chance = f"{published.details['expected_by_chance']:.1f} expected of random rankings"
        lines.append(f"{what} by the published rule: {listed(published.sure)}, {published.details['rule']}; {chance}")
    return lines + sides.caveats()
