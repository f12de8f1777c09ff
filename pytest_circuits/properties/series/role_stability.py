"""How stable the roles of components are over models, such as those trained from different seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, hypot
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Describe, Steps, ask
from ..gradients.gradient_vs_causal import GradientCausalParameters, GradientVsCausal, gradient_causal, tied
from ..protocol import Claim, Property

if TYPE_CHECKING:
    import numpy as np

    from ...core.sources import ModelSource

    Table = np.ndarray[Any, np.dtype[np.float64]]

FEWEST = 3
ENOUGH = 10  # models from which on the published studies draw conclusions
RANKINGS = ("importance", "gap", "gradient")
SHOWN = 5  # components named in the told lines


class RoleStability(GradientCausalParameters):
    """Mean over all pairs of the series' M models of Spearman's ρ between their rankings of the N components.

    `ranking: importance` ranks by causal importance C, the mean over evaluation examples of what ablating the component alone costs
    (`effect`); `gradient` by G, the mean over discovery examples of the absolute score of `gradient`; `gap` by rank(G) − rank(C), which
    says who is a hidden hero and who a gradient bloat. All three are reported. Range [−1, 1]; 0 is what rankings that have nothing to do
    with each other give, whose ρ of one pair has a standard deviation of 1/√(N−1). Reported too: in how many models each component is a
    hidden hero (rank gap ≤ −`gap`) or a gradient bloat (≥ `gap`) by the published rule, how many chance alone would give, and the
    probability that chance gives one component as many (binomial); the noise ceiling, mean ρ between the C of two random halves of the
    evaluation groups of one model: models that agree as well as that differ by no more than noise.

    Components are matched by index, so the models must have the same components: it is a question about index-wise roles, which training
    from another seed may permute. Invalid: fewer than 3 models (after `invalid: skip` left out those that cannot do the task, or whose
    rankings are constant), different components, or two models with the same weights. Unit: rank correlation.
    Source: The Gradient-Causal Gap.

    Interval: Student's t with M − 1 degrees of freedom on the jackknife over models, since the pairs share models, and the standard error
    of a bootstrap over groups of examples, in quadrature; approximate. With fewer than 10 models it is wide, and models of a rare kind
    may not have been seen at all: with one in seven of another kind, it held the truth in 40% (M = 3) to 80% (M = 10) of simulations.
    """

    ranking: Annotated[Literal["importance", "gap", "gradient"], Field(description="what components are ranked by")] = "importance"
    gap: Annotated[int, Field(ge=1, description="least difference of ranks of heroes and bloats; published: 6 of 20")] = 6
    invalid: Annotated[
        Literal["fail", "skip"], Field(description="models that cannot be measured, e.g. below the accuracy gate: fail, or leave them out")
    ] = "fail"
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples of the examples")] = 1000


@dataclass(frozen=True)
class Member:
    """One model of the series, with both sides of it or the reason why there are none."""

    model: ModelSource
    fingerprint: str
    sides: GradientVsCausal | None
    reason: str | None = None


def unfit(_: RoleStability, name: str, places: Sequence[float]) -> tuple[str, str] | None:
    """Why a series of models at these places cannot be judged, or None; no parameter can help it."""
    if len(places) >= FEWEST:
        return None
    return "", f"stability over models needs at least {FEWEST}, and {name!r} is a series of {len(places)}: give the model `checkpoints`"


def estimate(claim: Claim) -> Steps[Estimate]:
    """Measure both sides of each model; correlate the rankings of each pair."""
    p: RoleStability = claim.parameters
    wrong = unfit(p, claim.model.name, range(len(claim.series)))
    if wrong is not None:
        raise Invalid(wrong[1], {"models": len(claim.series)})
    members: list[Member] = []
    for model in claim.series:
        members.append((yield from _member(claim, model)))
    kept = _kept(p, members)
    return _estimate(p, kept, [one for one in members if one.sides is None])


def _member(claim: Claim, model: ModelSource) -> Steps[Member]:
    from ...stats import ranks

    description = yield from ask(Describe(model))
    try:
        sides = yield from gradient_causal(claim.about(model))
        ranks.spearman(*sides.means)  # refuses constant rankings
    except Invalid as problem:
        return Member(model, description.fingerprint, None, str(problem))
    return Member(model, description.fingerprint, sides)


def _kept(p: RoleStability, members: Sequence[Member]) -> list[tuple[Member, GradientVsCausal]]:
    """Those that were measured. Raises `Invalid` where they cannot be compared."""
    left = [one for one in members if one.sides is None]
    reasons = {"left_out": {one.model.name: one.reason for one in left}}
    if left and p.invalid == "fail":
        raise Invalid(f"{left[0].model.name!r} cannot be measured (`invalid: skip` leaves such models out): {left[0].reason}", reasons)
    kept = [(one, one.sides) for one in members if one.sides is not None]
    if len(kept) < FEWEST:
        last = f"; {left[-1].model.name!r}: {left[-1].reason}" if left else ""
        raise Invalid(f"{len(kept)} of {len(members)} models could be measured, and {FEWEST} are needed{last}", reasons)
    first = kept[0]
    for one, sides in kept[1:]:
        if sides.units != first[1].units:
            raise Invalid(
                f"{first[0].model.name!r} has {len(first[1].units)} components and {one.model.name!r} {len(sides.units)}, "
                "which are not the same ones: roles are compared component by component",
                {"components": {each.model.name: len(s.units) for each, s in kept}},
            )
    prints = [one.fingerprint for one, _ in kept]
    twin = next((i for i, mark in enumerate(prints) if mark in prints[:i]), None)
    if twin is not None:
        other = kept[prints.index(prints[twin])][0].model.name
        raise Invalid(f"{kept[twin][0].model.name!r} and {other!r} have the same weights, and a model agrees with itself: leave one out")
    if p.gap >= len(first[1].units):
        n = len(first[1].units)
        raise Invalid(f"the ranks of {n} components differ by at most {n - 1}, so gap: {p.gap} can never be reached", {"components": n})
    return kept


def _estimate(p: RoleStability, kept: list[tuple[Member, GradientVsCausal]], left: Sequence[Member]) -> Estimate:
    from ...stats.distributions import normal_quantile
    from ...stats.pairs import pair_mean

    sides = [one for _, one in kept]
    table = _pairs(p.ranking, kept)
    value, models, parts = pair_mean(table, p.confidence)
    tables = {p.ranking: table} | {other: _others(other, kept) for other in RANKINGS if other != p.ranking}
    examples = normal_quantile(1 - (1 - p.confidence) / 2) * _examples_error(p, sides)
    low, high = value - hypot(value - models[0], examples), value + hypot(models[1] - value, examples)
    units, names = sides[0].units, [one.model.name for one, _ in kept]
    roles = _roles(p, sides)
    n = len(units)
    details = {
        "ranking": p.ranking,
        "models": {one.model.name: {"at": one.model.at, "fingerprint": one.fingerprint, "accuracy": s.base.accuracy} for one, s in kept},
        "left_out": {one.model.name: one.reason for one in left},
        "components": n,
        "pairs": {ranking: None if each is None else [[float(x) for x in row] for row in each] for ranking, each in tables.items()},
        "mean_over_pairs": {ranking: None if each is None else pair_mean(each)[0] for ranking, each in tables.items()},
        "interval_parts": {**parts, "models": list(models), "examples_half_width": examples},
        "null_standard_deviation": 1 / (n - 1) ** 0.5,
        "noise_ceiling": {name: _ceiling(one) for name, one in zip(names, sides, strict=True)},
        "importance": {name: dict(zip(units, map(float, one.means[1]), strict=True)) for name, one in zip(names, sides, strict=True)},
        "gradients": {name: dict(zip(units, map(float, one.means[0]), strict=True)) for name, one in zip(names, sides, strict=True)},
        "roles": roles,
        "effect": p.effect,
        "gradient": p.gradient,
        "ablation": p.ablation,
    }
    details["notes"] = _told(p, details, value)
    unsettled = next((f"{name}: {told}" for name, one in zip(names, sides, strict=True) if (told := tied(one))), None)
    kind = "jackknife t interval over models and bootstrap over groups, in quadrature"
    fewest = min(len(one.causal) for one in sides)
    clipped = (max(-1.0, low), min(1.0, high))
    return Estimate(value, clipped, fewest, p.confidence, kind, "role_stability", details, None if p.ranking == "gradient" else unsettled)


def _ranked(ranking: str, means: Sequence[tuple[Table, Table]]) -> list[Table]:
    """What each model's components are ranked by, from rows of its G and its C; [B, N] each."""
    from ...stats.ranks import gap_rows

    if ranking == "gap":
        return [gap_rows(g, c) for g, c in means]
    return [g if ranking == "gradient" else c for g, c in means]


def _pairs(ranking: str, kept: Sequence[tuple[Member, GradientVsCausal]]) -> Table:
    """ρ of each pair of models, [M, M]. Raises `Invalid` for a model all of whose components rank alike."""
    import numpy as np

    from ...stats.ranks import spearman_rows

    means = [sides.means for _, sides in kept]
    rows = np.concatenate(_ranked(ranking, [(g[None], c[None]) for g, c in means]))
    flat = [one.model.name for (one, _), row in zip(kept, rows, strict=True) if (row == row[0]).all()]
    if flat:
        raise Invalid(f"by {ranking}, all {rows.shape[1]} components of {flat[0]!r} rank alike, so there is no ranking", {"constant": flat})
    return np.stack([spearman_rows(np.broadcast_to(row, rows.shape), rows) for row in rows])


def _others(ranking: str, kept: Sequence[tuple[Member, GradientVsCausal]]) -> Table | None:
    """The same for a ranking that the claim is not about; None where there is none."""
    try:
        return _pairs(ranking, kept)
    except Invalid:
        return None


def _examples_error(p: RoleStability, sides: Sequence[GradientVsCausal]) -> float:
    """Standard error of the mean over pairs, of resampled groups of examples: the same groups for models that have the same ones."""
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
    for one in sides:
        gradient, causal = one.sums
        causal_key = one.blocks if one.one_sample else ["causal", *one.groups]
        means.append((resampled(one.blocks, *gradient), resampled(causal_key, *causal)))
    rows = _ranked(p.ranking, means)
    pairs = [spearman_rows(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :]]
    every = np.mean(pairs, axis=0)
    known = every[np.isfinite(every)]
    if len(known) < 0.95 * len(every):
        raise Invalid(f"rankings are constant in {len(every) - len(known)} of {len(every)} resamples of the examples: too few groups")
    return float(known.std(ddof=1))


def _ceiling(sides: GradientVsCausal) -> float | None:
    """Mean ρ between the C of two random halves of the groups; None where halves have constant rankings."""
    from ...stats.ranks import spearman_rows, split_half

    rho = split_half(*sides.sums[1], spearman_rows)
    known = rho[rho == rho]
    return float(known.mean()) if len(known) else None


def _roles(p: RoleStability, sides: Sequence[GradientVsCausal]) -> dict[str, Any]:
    """In how many models each component is a hero or a bloat by the published rule, and what chance gives."""
    from ..gradients.gradient_roles import by_rank_gap

    found: dict[str, Any] = {"rule": f"|rank(G) − rank(C)| ≥ {p.gap} of {len(sides[0].units)}", "models": len(sides)}
    for role in ("heroes", "bloats"):
        published = [by_rank_gap(one, role, p.gap) for one in sides]
        counts = {unit: sum(unit in one.sure for one in published) for unit in sides[0].units}
        chance = sum(one.details["expected_by_chance"] for one in published) / len(sides) / len(sides[0].units)
        found[role] = {
            "counts": counts,
            "in_each_model": [one.sure for one in published],
            "chance_of_one": chance,
            "expected_models": len(sides) * chance,
            "chance_of_as_many": {unit: _tail(count, len(sides), chance) for unit, count in counts.items()},
        }
    return found


def _tail(count: int, n: int, chance: float) -> float:
    """P(X ≥ count) of a binomial X."""
    return min(1.0, sum(comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(count, n + 1)))


def _told(p: RoleStability, details: dict[str, Any], value: float) -> list[str]:
    m, n = len(details["models"]), details["components"]
    ceilings = [one for one in details["noise_ceiling"].values() if one is not None]
    ceiling = f"{sum(ceilings) / len(ceilings):.2f}" if ceilings else "unknown"
    means = details["mean_over_pairs"].items()
    others = ", ".join(f"{ranking} {'none' if rho is None else format(rho, '.2f')}" for ranking, rho in means if ranking != p.ranking)
    lines = [
        f"mean ρ of {p.ranking} over {details['interval_parts']['pairs']} pairs of {m} models, {n} components: {value:.2f} ({others})",
        f"for comparison: 0 ± {details['null_standard_deviation']:.2f} for one pair of unrelated rankings; "
        f"{ceiling} between halves of the examples of one model (C)",
    ]
    for role, what in (("heroes", "hidden hero"), ("bloats", "gradient bloat")):
        found = details["roles"][role]
        most = sorted(found["counts"].items(), key=lambda item: -item[1])[:SHOWN]
        shown = ", ".join(f"{unit} {count}" for unit, count in most if count) or "none"
        lines.append(f"{what} in most of {m} models: {shown}; chance alone: {found['expected_models']:.1f} each")
    if details["left_out"]:
        lines.append(f"left out: {', '.join(details['left_out'])}")
    if m < ENOUGH:
        lines.append(f"{m} models are few ({ENOUGH} or more are advised): kinds of models that are rare may not be among them")
    return lines


ROLE_STABILITY = Property(
    "role_stability", RoleStability, estimate, -1.0, 1.0, "models of a series (seeds) agree on which components matter, or have which role",
    "rank correlation", over_series=True, unfit=unfit,
)  # fmt: skip
