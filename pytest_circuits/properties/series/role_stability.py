"""How stable the roles of components are over models, such as those trained from different seeds."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, hypot
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..gradients.gradient_vs_causal import GradientVsCausal, tied
from ..gradients.parameters import GradientCausalParameters
from ..protocol import Claim, Property
from .series_members import FEWEST, MeasuredMember, Member, comparable, measure_member

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[Any, np.dtype[np.float64]]

ENOUGH = 10  # number of models from which on the published studies draw conclusions
RANKINGS = ("importance", "gap", "gradient")
SHOWN = 5  # components named in the notes


class RoleStability(GradientCausalParameters):
    """Mean over all pairs of the series' M models of Spearman's ρ between their rankings of the N components.

    `ranking: importance` ranks by causal importance C, the mean over evaluation examples of the effect of ablating the component by itself
    (`effect`); `gradient` by G, the mean over discovery examples of the absolute score of `gradient`; `gap` by rank(G) − rank(C), which
    separates hidden heroes from gradient bloats. All three are reported. Unit: rank correlation. Range [−1, 1]; unrelated rankings have 0
    on average, with a standard deviation of 1/√(N−1) for one pair.

    Also reported: the number of models in which each component is a hidden hero (rank gap ≤ −`gap`) or a gradient bloat (≥ `gap`) by the
    published rule, the number expected by chance, and the probability that chance gives a component as many (binomial); and the noise
    ceiling, the mean ρ between the C of two random halves of the evaluation groups of one model. Models that agree as well as these halves
    differ by no more than noise.

    Components are matched by index, so the models must have the same components; training from another seed may permute their roles.
    Invalid: fewer than 3 models (after `invalid: skip` left out those that cannot do the task, or whose rankings are constant), different
    components, or two models with the same weights. Source: The Gradient-Causal Gap.

    Interval: Student's t with M − 1 degrees of freedom on the jackknife over models (pairs share models), combined in quadrature with the
    standard error of a bootstrap over groups of examples; approximate. With fewer than 10 models it is wide, and rare kinds of models may
    be missing: in simulations where one model in seven was of another kind, it covered the truth in 40% (M = 3) to 80% (M = 10) of cases.
    """

    ranking: Annotated[Literal["importance", "gap", "gradient"], Field(description="quantity that ranks the components")] = "importance"
    gap: Annotated[int, Field(ge=1, description="least difference of ranks of heroes and bloats; published: 6 of 20")] = 6
    invalid: Annotated[
        Literal["fail", "skip"], Field(description="models that cannot be measured, e.g. below the accuracy gate: fail, or leave them out")
    ] = "fail"
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples of the examples")] = 1000


def unfit(_: RoleStability, name: str, places: Sequence[float]) -> tuple[str, str] | None:
    """Why this claim cannot be made about a series of models at these places, or None; no parameter can change it."""
    if len(places) >= FEWEST:
        return None
    return "", f"stability over models needs at least {FEWEST}, and {name!r} is a series of {len(places)}: give the model `checkpoints`"


def estimate(claim: Claim) -> Steps[Estimate]:
    """Measure both sides of each model; correlate the rankings of each pair."""
    p: RoleStability = claim.parameters
    misfit = unfit(p, claim.model.name, range(len(claim.series)))
    if misfit is not None:
        raise Invalid(misfit[1], {"models": len(claim.series)}, code=ReasonCode.TOO_FEW_MODELS)
    members: list[Member] = []
    for model in claim.series:
        members.append((yield from measure_member(claim, model)))
    return _estimate_from(p, comparable(p, members), [member for member in members if member.sides is None])


def _estimate_from(p: RoleStability, measured: list[MeasuredMember], missing: Sequence[Member]) -> Estimate:
    from ...stats.distributions import normal_quantile
    from ...stats.pair_mean import pair_mean

    sides = [member_sides for _, member_sides in measured]
    table = _pairs(p.ranking, measured)
    value, models, parts = pair_mean(table, p.confidence)
    tables = {p.ranking: table} | {other: _other_pairs(other, measured) for other in RANKINGS if other != p.ranking}
    examples = normal_quantile(1 - (1 - p.confidence) / 2) * _examples_error(p, sides)
    low, high = value - hypot(value - models[0], examples), value + hypot(models[1] - value, examples)
    units, names = sides[0].units, [member.model.name for member, _ in measured]
    roles = _roles(p, sides)
    n = len(units)
    details = {
        "ranking": p.ranking,
        "models": {
            member.model.name: {"at": member.model.at, "fingerprint": member.fingerprint, "accuracy": s.base.accuracy}
            for member, s in measured
        },
        "left_out": {member.model.name: member.reason for member in missing},
        "components": n,
        "pairs": {ranking: None if rho is None else [[float(x) for x in row] for row in rho] for ranking, rho in tables.items()},
        "mean_over_pairs": {ranking: None if rho is None else pair_mean(rho)[0] for ranking, rho in tables.items()},
        "interval_parts": {**parts, "models": list(models), "examples_half_width": examples},
        "null_standard_deviation": 1 / (n - 1) ** 0.5,
        "noise_ceiling": {name: _ceiling(s) for name, s in zip(names, sides, strict=True)},
        "importance": {name: dict(zip(units, map(float, s.means[1]), strict=True)) for name, s in zip(names, sides, strict=True)},
        "gradients": {name: dict(zip(units, map(float, s.means[0]), strict=True)) for name, s in zip(names, sides, strict=True)},
        "roles": roles,
        "effect": p.effect,
        "gradient": p.gradient,
        "ablation": p.ablation,
    }
    details["notes"] = _notes(p, details, value)
    unsettled = next((f"{name}: {reason}" for name, s in zip(names, sides, strict=True) if (reason := tied(s))), None)
    kind = "jackknife t interval over models and bootstrap over groups, in quadrature"
    fewest = min(len(s.causal) for s in sides)
    clipped = (max(-1.0, low), min(1.0, high))
    return Estimate(value, clipped, fewest, p.confidence, kind, "role_stability", details, None if p.ranking == "gradient" else unsettled)


def _ranked(ranking: str, means: Sequence[tuple[Table, Table]]) -> list[Table]:
    """The quantity that ranks each model's components, from rows of its G and its C; [B, N] each."""
    from ...stats.ranks import gap_rows

    if ranking == "gap":
        return [gap_rows(g, c) for g, c in means]
    return [g if ranking == "gradient" else c for g, c in means]


def _pairs(ranking: str, measured: Sequence[MeasuredMember]) -> Table:
    """ρ of each pair of models, [M, M]. Raises `Invalid` for a model whose ranking is constant."""
    import numpy as np

    from ...stats.ranks import spearman_rows

    means = [sides.means for _, sides in measured]
    rows = np.concatenate(_ranked(ranking, [(g[None], c[None]) for g, c in means]))
    constant = [member.model.name for (member, _), row in zip(measured, rows, strict=True) if (row == row[0]).all()]
    if constant:
        raise Invalid(
            f"by {ranking}, all {rows.shape[1]} components of {constant[0]!r} rank alike, so there is no ranking",
            {"constant": constant},
            code=ReasonCode.CONSTANT_RANKING,
        )
    return np.stack([spearman_rows(np.broadcast_to(row, rows.shape), rows) for row in rows])


def _other_pairs(ranking: str, measured: Sequence[MeasuredMember]) -> Table | None:
    """The same for a ranking that the claim is not about; None if it is constant."""
    try:
        return _pairs(ranking, measured)
    except Invalid:
        return None


def _examples_error(p: RoleStability, sides: Sequence[GradientVsCausal]) -> float:
    """Standard error of the mean over pairs when groups of examples are resampled, alike for models with the same groups."""
    import numpy as np

    from ...stats.bootstrap import weighted_means
    from ...stats.ranks import spearman_rows

    drawn: dict[tuple[str, ...], Any] = {}

    def resampled(labels: Sequence[str], sums: Any, sizes: Any) -> Any:
        key = tuple(labels)
        if key not in drawn:
            rng = np.random.default_rng([0, len(drawn)])
            drawn[key] = rng.multinomial(len(sizes), np.full(len(sizes), 1 / len(sizes)), size=p.resamples)
        return weighted_means(drawn[key], sums, sizes)

    means = []
    for s in sides:
        gradient, causal = s.sums
        causal_key = s.blocks if s.one_sample else ["causal", *s.groups]
        means.append((resampled(s.blocks, *gradient), resampled(causal_key, *causal)))
    rows = _ranked(p.ranking, means)
    pairs = [spearman_rows(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :]]
    resampled_means = np.mean(pairs, axis=0)
    finite = resampled_means[np.isfinite(resampled_means)]
    n = len(resampled_means)
    if len(finite) < 0.95 * n:
        raise Invalid(
            f"rankings are constant in {n - len(finite)} of {n} resamples of the examples: too few groups", code=ReasonCode.TOO_FEW_GROUPS
        )
    return float(finite.std(ddof=1))


def _ceiling(sides: GradientVsCausal) -> float | None:
    """Mean ρ between the C of two random halves of the groups; None if the halves have constant rankings."""
    from ...stats.ranks import spearman_rows, split_half

    rho = split_half(*sides.sums[1], spearman_rows)
    finite = rho[rho == rho]
    return float(finite.mean()) if len(finite) else None


def _roles(p: RoleStability, sides: Sequence[GradientVsCausal]) -> dict[str, Any]:
    """The number of models in which each component is a hero or a bloat by the published rule, and the number expected by chance."""
    from ..gradients.gradient_roles import by_rank_gap

    roles: dict[str, Any] = {"rule": f"|rank(G) − rank(C)| ≥ {p.gap} of {len(sides[0].units)}", "models": len(sides)}
    for role in ("heroes", "bloats"):
        published = [by_rank_gap(s, role, p.gap) for s in sides]
        counts = {unit: sum(unit in members.sure for members in published) for unit in sides[0].units}
        chance = sum(members.details["expected_by_chance"] for members in published) / len(sides) / len(sides[0].units)
        roles[role] = {
            "counts": counts,
            "in_each_model": [members.sure for members in published],
            "chance_of_one": chance,
            "expected_models": len(sides) * chance,
            "chance_of_as_many": {unit: _tail(count, len(sides), chance) for unit, count in counts.items()},
        }
    return roles


def _tail(count: int, n: int, chance: float) -> float:
    """P(X ≥ count) of a binomial X."""
    return min(1.0, sum(comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(count, n + 1)))


def _notes(p: RoleStability, details: dict[str, Any], value: float) -> list[str]:
    m, n = len(details["models"]), details["components"]
    ceilings = [rho for rho in details["noise_ceiling"].values() if rho is not None]
    ceiling = f"{sum(ceilings) / len(ceilings):.2f}" if ceilings else "unknown"
    means = details["mean_over_pairs"].items()
    others = ", ".join(f"{ranking} {'none' if rho is None else format(rho, '.2f')}" for ranking, rho in means if ranking != p.ranking)
    lines = [
        f"mean ρ of {p.ranking} over {details['interval_parts']['pairs']} pairs of {m} models, {n} components: {value:.2f} ({others})",
        f"for comparison: 0 ± {details['null_standard_deviation']:.2f} for one pair of unrelated rankings; "
        f"{ceiling} between halves of the examples of one model (C)",
    ]
    for role, singular in (("heroes", "hidden hero"), ("bloats", "gradient bloat")):
        counts = details["roles"][role]
        most = sorted(counts["counts"].items(), key=lambda item: -item[1])[:SHOWN]
        shown = ", ".join(f"{unit} {count}" for unit, count in most if count) or "none"
        lines.append(f"{singular} in most of {m} models: {shown}; expected by chance: {counts['expected_models']:.1f} each")
    if details["left_out"]:
        lines.append(f"left out: {', '.join(details['left_out'])}")
    if m < ENOUGH:
        lines.append(f"{m} models are few ({ENOUGH} or more are advised): rare kinds of models may be missing")
    return lines


ROLE_STABILITY = Property(
    "role_stability", RoleStability, estimate, -1.0, 1.0, "models of a series (seeds) agree on which components matter, or have which role",
    "rank correlation", over_series=True, unfit=unfit,
)  # fmt: skip
