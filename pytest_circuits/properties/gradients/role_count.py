"""The number of components in a role, as an estimate: what `hidden_heroes` and `gradient_bloats` have in common."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps
from ..protocol import Claim
from .gradient_roles import Role, RoleMembers, by_rank_gap, certified
from .gradient_vs_causal import GradientVsCausal, listed, measure_sides, tied
from .parameters import GradientParameters

ROLE_NAMES: dict[Role, str] = {"heroes": "hidden heroes", "bloats": "gradient bloats"}


def role_thresholds(p: Any, role: Role) -> tuple[float, float]:
    """The effect and the portion of gradients that define a role by rule `certified`."""
    return (p.delta, p.low) if role == "heroes" else (p.epsilon, p.high)


def count_role(claim: Claim, role: Role) -> Steps[Estimate]:
    """Measure both sides, and count the components that have a role by the rule of the claim."""
    p = claim.parameters
    sides = yield from measure_sides(claim)
    n = len(sides.units)
    published = by_rank_gap(sides, role, p.gap) if p.gap < n or p.rule == "rank_gap" else None
    details: dict[str, Any] = {**sides.as_dict(p), "correlations": _correlations(sides)}
    if p.rule == "certified":
        members = certified(sides, role, *role_thresholds(p, role), p.confidence)
        interval = (float(len(members.sure)), float(len(members.possible)))
        kind, unsettled = "surely to possibly, by simultaneous bounds on effects and on the order of gradients", None
    else:
        assert published is not None
        members = published
        interval, details["bootstrap"] = _bootstrapped(sides, role, p)
        kind, unsettled = "bias-corrected bootstrap over groups", tied(sides)
    details |= {role: members.sure, "possible": members.possible, **members.details}
    details["rank_gap"] = None if published is None else {role: published.sure, **published.details}
    details["notes"] = _notes(sides, role, p, members, published)
    name = ROLE_NAMES[role].replace(" ", "_")
    return Estimate(float(len(members.sure)), interval, len(sides.causal), p.confidence, kind, name, details, unsettled)


def _bootstrapped(sides: GradientVsCausal, role: Role, p: Any) -> tuple[tuple[float, float], dict[str, Any]]:
    """The interval of the published count, everything recomputed; ends are rounded outwards to whole components."""
    from ...stats.ranks import gap_rows

    def counts(g: Any, c: Any) -> Any:
        delta = gap_rows(g, c)
        return (delta <= -p.gap if role == "heroes" else delta >= p.gap).sum(-1).astype(float)

    _, (low, high), parts = sides.bootstrap(counts, p.confidence, p.resamples, 0.0, float(len(sides.units)))
    return (float(floor(low)), float(ceil(high))), parts


def _correlations(sides: GradientVsCausal) -> dict[str, float] | None:
    """ρ and τ-b between G and C; None if C is constant."""
    from ...stats import ranks

    try:
        return {"spearman": ranks.spearman(*sides.means), "kendall_tau_b": ranks.kendall_tau_b(*sides.means)}
    except Invalid:
        return None


def _notes(sides: GradientVsCausal, role: Role, p: GradientParameters, members: RoleMembers, published: RoleMembers | None) -> list[str]:
    measured = f"G: {p.gradient} on {len(sides.gradient)} examples; C: {sides.effect} under {p.ablation} ablation on {len(sides.causal)}"
    notes = [f"{measured} in {len(set(sides.groups))} groups; {len(sides.units)} components"]
    if "undecided" in members.details:
        sure, undecided = listed(members.sure), listed(members.details["undecided"])
        notes.append(f"{ROLE_NAMES[role]}: {sure} for sure, {undecided} undecided; {members.details['rule']}")
    if published is not None:
        chance = f"random rankings have {published.details['expected_by_chance']:.1f} on average"
        notes.append(f"{ROLE_NAMES[role]} by the published rule: {listed(published.sure)}, {published.details['rule']}; {chance}")
    return notes + sides.caveats()
