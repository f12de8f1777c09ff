"""The faithfulness curve over circuit sizes, from which CPR and CMD are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps, ask_all
from ..parameters import AblationName, CurveParameters, MethodName, SiteName
from ..protocol import Claim
from ..steps.curves import (
    NormalizedEffect,
    UnitSpace,
    empty_circuit_request,
    mean_metric,
    metric_sign,
    normalize_effect,
    rank_units,
    ranking_details,
    unit_ablation_request,
    unit_plural,
)
from ..steps.examples import measure_intact, split_examples
from .curve_grid import GRID, CurveSizes, largest_area, trapezoid

if TYPE_CHECKING:
    from ...core.results import Outcome
    from ..steps.curves import Array, Ints

NAMED = 50  # units of a ranking that the details name


class AreaParameters(CurveParameters):
    """Parameters of the area under a faithfulness curve."""

    level: Annotated[Literal["component", "edge", "neuron"], Field(description="the units that circuits consist of")] = "component"
    site: SiteName = "mlp_activation"
    attribution: Annotated[MethodName, Field(description="attribution method that ranks units")] = "eap"
    ablation: Annotated[AblationName, Field(description="what ablated units are replaced with")] = "counterfactual"
    random_rankings: Annotated[int, Field(ge=0, le=1000, description="random rankings measured for the chance level")] = 5
    random_seed: Annotated[int, Field(ge=0, description="seed of the random rankings")] = 0

    @model_validator(mode="after")
    def _site_is_of_neurons(self) -> AreaParameters:
        if self.site != "mlp_activation" and self.level != "neuron":
            raise ValueError(f"site: {self.site} is a place of neurons and has no meaning at level: {self.level}")
        return self


@dataclass(frozen=True)
class FaithfulnessCurves:
    """`gains` [grid, n] are F(C_k) − F(∅) for each share of the grid and each evaluation example; `chance` [rankings, grid, n] are those
    of random rankings. A circuit without units is ∅ and one of all units is M by definition, so neither is measured again.
    """

    sizes: CurveSizes
    effect: NormalizedEffect
    gains: Array
    chance: Array
    details: dict[str, Any]

    @property
    def at_random(self) -> Array:
        """Faithfulness of each random ranking on the grid; [rankings, grid]."""
        faithfulness: Array = self.chance.mean(-1) / self.effect.whole.mean()
        return faithfulness


def measure_curves(claim: Claim, signed: bool) -> Steps[FaithfulnessCurves]:
    """Rank units on discovery examples; measure the circuits of the grid, and of random rankings, on evaluation examples."""
    import numpy as np

    p: AreaParameters = claim.parameters
    space = UnitSpace(p.level, p.site)
    split = yield from split_examples(claim, p.task)
    base = yield from measure_intact(claim, p.task, split)
    ranked = yield from rank_units(claim, space, signed)
    sizes = CurveSizes(len(ranked.units))
    if not sizes.measured:
        raise Invalid(
            f"the universe has {sizes.units} {p.level}: no share of the grid keeps some but not all of it",
            {"universe": sizes.units},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    orders = [_random_order(p.random_seed, i, sizes.units) for i in range(p.random_rankings)]
    requests = [empty_circuit_request(claim, space), unit_ablation_request(claim, space, [ranked.top(k) for k in sizes.measured])]
    if orders:
        requests.append(
            unit_ablation_request(claim, space, [[ranked.units[int(i)] for i in order[:k]] for order in orders for k in sizes.measured])
        )
    nothing, circuits, *chance = yield from ask_all(requests)
    effect = normalize_effect(claim, space, split, base, nothing)
    n = len(effect.groups)
    at_random = effect.gains(chance[0]).reshape(len(orders), -1, n) if chance else np.zeros((0, len(sizes.measured), n))
    details = {
        **ranking_details(claim, ranked),
        "ranking": "signed" if signed else "absolute",
        "helping": int((metric_sign(p.metric) * ranked.scores < 0).sum()),
        "strongest": list(ranked.top(NAMED)),
        **_grid_details(sizes),
        "mean_metric": {"intact": mean_metric(base), "nothing": mean_metric(nothing)},
        "accuracy": base.accuracy,
        "accuracy_nothing": float(nothing.correct.mean()),
        **split.as_dict(),
    }
    gains = _on_grid(sizes, effect, effect.gains(circuits))
    random_gains = [_on_grid(sizes, effect, random_curve) for random_curve in at_random]
    curves = FaithfulnessCurves(sizes, effect, gains, np.stack(random_gains) if random_gains else np.zeros((0, len(GRID), n)), details)
    details["curve"] = _points(curves, circuits)
    return curves


def chance_level(values: Array) -> dict[str, Any]:
    """The areas of random rankings, for the report; [rankings]."""
    chance: dict[str, Any] = {"rankings": len(values), "values": [float(v) for v in values]}
    if len(values):
        chance["mean"] = float(values.mean())
    if len(values) > 1:
        chance["standard_deviation"] = float(values.std(ddof=1))
    return chance


def area_estimate(
    p: AreaParameters,
    curves: FaithfulnessCurves,
    name: str,
    area: tuple[float, tuple[float, float], str],
    random_areas: Array,
    small_universe: str,
    extra: Mapping[str, Any],
) -> Estimate:
    """The estimate of an area: its value, interval and kind of interval. `small_universe` is the consequence of shares below one unit."""
    value, interval, kind = area
    chance = chance_level(random_areas)
    details = {**curves.details, "chance": chance, **extra}
    details["notes"] = _notes(curves, name.upper(), value, chance, small_universe)
    return Estimate(value, interval, len(curves.effect.groups), p.confidence, kind, name, details)


def _notes(curves: FaithfulnessCurves, name: str, value: float, chance: Mapping[str, Any], small_universe: str) -> list[str]:
    d = curves.details
    points = [f"{p['size']}: {p['faithfulness']:.2f}" for p in d["curve"] if 0 < p["size"] < d["universe"]]
    m, units = d["mean_metric"], unit_plural(d)
    lines = [
        f"{units} ranked by {d['ranking']} mean {d['attribution']} score; {d['universe']} in all, others ablated ({d['ablation']}); "
        f"mean metric intact {m['intact']:.3g}, all ablated {m['nothing']:.3g}",
        f"faithfulness by number of {units} kept: {', '.join(dict.fromkeys(points))}",
    ]
    if chance["rankings"]:
        lines.append(f"{name} {value:.3f}; {chance['rankings']} random rankings {chance['mean']:.3f} on average")
    if d["ranking"] == "signed" and not d["helping"]:
        lines.append(f"no {d['level']} has a score that speaks for it; are {d['attribution']} scores magnitudes?")
    below = d["grid"]["shares_below_one_unit"]
    if below:
        lines.append(f"shares up to {below[-1]:g} are less than one of {d['universe']} {units}, where faithfulness is 0: {small_universe}")
    return lines


def _random_order(seed: int, number: int, units: int) -> Ints:
    import numpy as np

    return np.random.default_rng([seed, number]).permutation(units)


def _on_grid(sizes: CurveSizes, effect: NormalizedEffect, measured: Array) -> Array:
    """[measured sizes, n] → [grid, n]."""
    import numpy as np

    row = {k: measured[i] for i, k in enumerate(sizes.measured)}
    return np.stack([row.get(k, effect.whole if k else np.zeros_like(effect.whole)) for k in sizes.grid])


def _grid_details(sizes: CurveSizes) -> dict[str, Any]:
    return {
        "grid": {
            "shares": [float(p) for p in GRID],
            "sizes": list(sizes.grid),
            "total": float(sum(trapezoid())),
            "reachable": largest_area(sizes),
            "shares_below_one_unit": [float(p) for p, k in zip(GRID, sizes.grid, strict=True) if not k],
            "shares_of_one_size": [{"size": k, "shares": shares} for k, shares in sizes.collapsed.items()],
        }
    }


def _points(curves: FaithfulnessCurves, circuits: Outcome) -> list[dict[str, Any]]:
    """The curve with pointwise Fieller intervals. Raises `Invalid` if F(M) − F(∅) is not clearly away from zero."""
    import numpy as np

    accuracy = {0: curves.effect.nothing.accuracy, curves.sizes.units: curves.effect.base.accuracy}
    accuracy |= {k: float(circuits.correct[i].mean()) for i, k in enumerate(curves.sizes.measured)}
    points = []
    for p, k, gain in zip(GRID, curves.sizes.grid, curves.gains, strict=True):
        value, (low, high) = curves.effect.ratio(gain)
        point = {"share": float(p), "size": k, "faithfulness": value, "low": low, "high": high}
        points.append({**point, "accuracy": float(np.mean(accuracy[k]))})
    if len(curves.chance):
        for point, at_random in zip(points, curves.at_random.T, strict=True):
            point["random"] = float(at_random.mean())
    return points
