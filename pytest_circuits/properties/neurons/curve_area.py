"""The area under a faithfulness curve over circuit sizes, on the grid of MIB: what CPR and CMD are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...errors import Invalid
from ...measurement.requests import Steps, ask_all
from ..parameters import AblationName, MethodName
from ..protocol import Claim
from ..steps.curves import (
    CurveParameters,
    NormalizedEffect,
    SiteName,
    UnitSpace,
    ablation,
    direction,
    footing,
    how,
    mean,
    nothing_kept,
    ranking,
    unit_words,
)
from ..steps.examples import examples, intact

if TYPE_CHECKING:
    from ...core.results import Outcome
    from ..steps.curves import Array, Ints

GRID = tuple(Fraction(p) for p in (".001", ".002", ".005", ".01", ".02", ".05", ".1", ".2", ".5", "1"))
NAMED = 50  # units of a ranking that details name


class AreaParameters(CurveParameters):
    """Parameters of the area under a faithfulness curve."""

    level: Annotated[Literal["component", "edge", "neuron"], Field(description="what the circuits are sets of")] = "component"
    site: SiteName = "mlp_activation"
    attribution: Annotated[MethodName, Field(description="attribution method that ranks units")] = "eap"
    ablation: Annotated[AblationName, Field(description="what ablated units are replaced with")] = "counterfactual"
    random_rankings: Annotated[int, Field(ge=0, le=1000, description="random rankings measured for the chance level")] = 5
    random_seed: Annotated[int, Field(ge=0, description="seed of the random rankings")] = 0

    @model_validator(mode="after")
    def _site_is_of_neurons(self) -> AreaParameters:
        if self.site != "mlp_activation" and self.level != "neuron":
            raise ValueError(f"site: {self.site} says where neurons are; it has no meaning at level: {self.level}")
        return self


@dataclass(frozen=True)
class CurveSizes:
    """Circuit sizes on the grid for a universe of `units`: k = int(p·n) in exact arithmetic."""

    units: int

    @property
    def grid(self) -> tuple[int, ...]:
        """How many units each share of the grid keeps; 0 where a share is less than one unit."""
        return tuple(int(p * self.units) for p in GRID)

    @property
    def measured(self) -> tuple[int, ...]:
        """The sizes that have to be measured, ascending: those that keep something but not everything."""
        return tuple(sorted({k for k in self.grid if 0 < k < self.units}))

    @property
    def collapsed(self) -> dict[int, list[float]]:
        """Sizes that more than one share falls on, with these shares."""
        shares: dict[int, list[float]] = {}
        for p, k in zip(GRID, self.grid, strict=True):
            shares.setdefault(k, []).append(float(p))
        return {k: found for k, found in shares.items() if len(found) > 1}


def trapezoid() -> tuple[Fraction, ...]:
    """Weights w with ∫ f = Σ w_j·f(p_j): the trapezoid rule in linear p over the grid. They add up to 0.999, which f ≡ 1 scores."""
    ends = (GRID[0], *GRID, GRID[-1])
    return tuple((after - before) / 2 for before, after in zip(ends[:-2], ends[2:], strict=True))


def most(sizes: CurveSizes) -> float:
    """The area of a curve that is 1 as soon as one unit is kept; less than 0.999 where shares of the grid are less than one unit."""
    return float(sum(w for w, k in zip(trapezoid(), sizes.grid, strict=True) if k))


@dataclass(frozen=True)
class Curves:
    """`gains` [grid, n]: F(C_k) − F(∅) for each share of the grid and evaluation example; `chance` [rankings, grid, n] those of random
    rankings. A circuit of no unit is ∅ and one of all units is M, by definition: they are not measured again.
    """

    sizes: CurveSizes
    ground: NormalizedEffect
    gains: Array
    chance: Array
    details: dict[str, Any]

    @property
    def at_random(self) -> Array:
        """Faithfulness of each random ranking on the grid; [rankings, grid]."""
        found: Array = self.chance.mean(-1) / self.ground.whole.mean()
        return found


def curves(claim: Claim, signed: bool) -> Steps[Curves]:
    """Rank units on discovery examples and measure the circuits of the grid, and those of random rankings, on evaluation examples."""
    import numpy as np

    p: AreaParameters = claim.parameters
    place = UnitSpace(p.level, p.site)
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    ranked = yield from ranking(claim, place, signed)
    sizes = CurveSizes(len(ranked.units))
    if not sizes.measured:
        raise Invalid(
            f"the universe has {sizes.units} {p.level}: no share of the grid keeps some but not all of it", {"universe": sizes.units}
        )
    orders = [_random_order(p.random_seed, i, sizes.units) for i in range(p.random_rankings)]
    asked = [nothing_kept(claim, place), ablation(claim, place, [ranked.top(k) for k in sizes.measured])]
    if orders:
        asked.append(ablation(claim, place, [[ranked.units[int(i)] for i in order[:k]] for order in orders for k in sizes.measured]))
    nothing, kept, *chance = yield from ask_all(asked)
    ground = footing(claim, place, found, base, nothing)
    n = len(ground.groups)
    at_random = ground.gains(chance[0]).reshape(len(orders), -1, n) if chance else np.zeros((0, len(sizes.measured), n))
    details = {
        **how(claim, ranked),
        "ranking": "signed" if signed else "absolute",
        "helping": int((direction(p.metric) * ranked.scores < 0).sum()),
        "strongest": list(ranked.top(NAMED)),
        **_reach_of_the_grid(sizes),
        "mean_metric": {"intact": mean(base), "nothing": mean(nothing)},
        "accuracy": base.accuracy,
        "accuracy_nothing": float(nothing.correct.mean()),
        **found.as_dict(),
    }
    made = Curves(sizes, ground, _on_grid(sizes, ground, ground.gains(kept)), np.stack([_on_grid(sizes, ground, one) for one in at_random])
                  if orders else np.zeros((0, len(GRID), n)), details)  # fmt: skip
    details["curve"] = _points(made, kept)
    return made


def chance_level(values: Array) -> dict[str, Any]:
    """What random rankings score, for the report; [rankings]."""
    found: dict[str, Any] = {"rankings": len(values), "values": [float(v) for v in values]}
    if len(values):
        found["mean"] = float(values.mean())
    if len(values) > 1:
        found["standard_deviation"] = float(values.std(ddof=1))
    return found


def told(curve: Curves, name: str, value: float, chance: Mapping[str, Any], small: str) -> list[str]:
    """The curve in words. `small` says what follows where shares of the grid are less than one unit."""
    d = curve.details
    points = [f"{p['size']}: {p['faithfulness']:.2f}" for p in d["curve"] if 0 < p["size"] < d["universe"]]
    m, units = d["mean_metric"], unit_words(d)
    lines = [
        f"{units} ranked by {d['ranking']} mean {d['attribution']} score; {d['universe']} in all, others ablated ({d['ablation']}); "
        f"mean metric intact {m['intact']:.3g}, all ablated {m['nothing']:.3g}",
        f"faithfulness by number of {units} kept: {', '.join(dict.fromkeys(points))}",
    ]
    if chance["rankings"]:
        lines.append(f"{name} {value:.3f}; {chance['rankings']} random rankings {chance['mean']:.3f} on average")
    if d["ranking"] == "signed" and not d["helping"]:
        lines.append(f"no {d['level']} has a score that says that it helps; does {d['attribution']} give magnitudes?")
    below = d["grid"]["shares_below_one_unit"]
    if below:
        lines.append(f"shares up to {below[-1]:g} are less than one of {d['universe']} {units}, where faithfulness is 0: {small}")
    return lines


def _random_order(seed: int, number: int, units: int) -> Ints:
    import numpy as np

    return np.random.default_rng([seed, number]).permutation(units)


def _on_grid(sizes: CurveSizes, ground: NormalizedEffect, measured: Array) -> Array:
    """[measured sizes, n] → [grid, n]."""
    import numpy as np

    row = {k: measured[i] for i, k in enumerate(sizes.measured)}
    return np.stack([row.get(k, ground.whole if k else np.zeros_like(ground.whole)) for k in sizes.grid])


def _reach_of_the_grid(sizes: CurveSizes) -> dict[str, Any]:
    return {
        "grid": {
            "shares": [float(p) for p in GRID],
            "sizes": list(sizes.grid),
            "total": float(sum(trapezoid())),
            "reachable": most(sizes),
            "shares_below_one_unit": [float(p) for p, k in zip(GRID, sizes.grid, strict=True) if not k],
            "shares_of_one_size": [{"size": k, "shares": shares} for k, shares in sizes.collapsed.items()],
        }
    }


def _points(curve: Curves, kept: Outcome) -> list[dict[str, Any]]:
    """The curve with Fieller intervals, each for its own size. Raises `Invalid` when F(M) − F(∅) is not clearly away from zero."""
    accuracy = {0: curve.ground.nothing.accuracy, curve.sizes.units: curve.ground.base.accuracy}
    accuracy |= {k: float(kept.correct[i].mean()) for i, k in enumerate(curve.sizes.measured)}
    points = []
    for p, k, gain in zip(GRID, curve.sizes.grid, curve.gains, strict=True):
        value, (low, high) = curve.ground.ratio(gain)
        at = accuracy[k]
        points.append({"share": float(p), "size": k, "faithfulness": value, "low": low, "high": high, "accuracy": _number(at)})
    if len(curve.chance):
        for point, at_random in zip(points, curve.at_random.T, strict=True):
            point["random"] = float(at_random.mean())
    return points


def _number(accuracy: Any) -> float:
    import numpy as np

    return float(np.mean(accuracy))
