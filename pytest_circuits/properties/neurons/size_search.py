"""The smallest number of units whose faithfulness reaches a level: a coarse grid of sizes, then bisection.

A probe is a size with its faithfulness and an interval for it. Three curves are searched side by side: faithfulness, and the upper and
the lower ends of its intervals. The result for each is the smallest probed size at which the curve reaches the level; the size below it was
probed too and does not. Faithfulness need not be monotone, so a smaller size that was not probed may reach the level as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps, ask_all
from ..parameters import CurveParameters
from ..protocol import Claim
from ..steps.curves import (
    SHOWN,
    NormalizedEffect,
    Ranking,
    UnitSpace,
    empty_circuit_request,
    mean_metric,
    normalize_effect,
    rank_units,
    ranking_details,
    unit_ablation_request,
    unit_plural,
)
from ..steps.examples import Examples, measure_intact, split_examples

if TYPE_CHECKING:
    from ..steps.curves import Array


class Probe(NamedTuple):
    """Faithfulness at one size, between the ends of its interval."""

    low: float
    value: float
    high: float


Probes = Mapping[int, Probe]


def coarse_grid(scored: int) -> list[int]:
    """The sizes of the grid: 1, 2, 4 … and all units that have a score."""
    return sorted({scored, *(2**i for i in range(scored.bit_length()) if 2**i < scored)})


def smallest(probes: Probes, level: float, curve: int) -> int | None:
    """The smallest probed size at which a curve (0 lower ends, 1 faithfulness, 2 upper ends) is at least `level`."""
    return min((n for n, probe in probes.items() if probe[curve] >= level), default=None)


def next_sizes(probes: Probes, level: float, scored: int) -> list[int]:
    """The sizes to probe next, ascending; empty once the size below each result has been probed.

    For each curve: the middle between the smallest probed size that reaches the level and the next smaller probed size. Units without a
    score are not ranked, so nothing is probed between the last unit with a score and the whole universe.
    """
    sizes: set[int] = set()
    for curve in range(3):
        above = smallest(probes, level, curve)
        if above is None or above > scored:
            continue
        below = max((n for n in probes if n < above), default=0)
        if above - below > 1:
            sizes.add((above + below) // 2)
    return sorted(sizes)


@dataclass(frozen=True)
class SmallestCircuit:
    """The number of units needed, with `low` and `high` from the upper and the lower ends of the probes' intervals.

    `contrast` [n] is F(keep C) − F(∅) − level·(F(M) − F(∅)) for each evaluation example, C the circuit of `value` units.
    """

    value: int
    low: int
    high: int
    probes: dict[int, Probe]
    contrast: Array
    effect: NormalizedEffect
    examples: Examples
    details: dict[str, Any]


def smallest_circuit(claim: Claim, space: UnitSpace, level: float, confidence: float) -> Steps[SmallestCircuit]:
    """Search for the size. Raises `Invalid` if no circuit of units with a score reaches `level`."""
    p: CurveParameters = claim.parameters
    split = yield from split_examples(claim, p.task)
    base = yield from measure_intact(claim, p.task, split)
    ranked = yield from rank_units(claim, space)
    units, scored = len(ranked.units), ranked.scored
    if units < 2:
        raise Invalid(
            "the universe has 1 unit, so no circuit keeps some but not all of it", {"universe": units}, code=ReasonCode.TOO_FEW_UNITS
        )
    grid = [n for n in coarse_grid(scored) if n < units]
    nothing, circuits = yield from ask_all(
        [empty_circuit_request(claim, space), unit_ablation_request(claim, space, [ranked.top(n) for n in grid])]
    )
    effect = normalize_effect(claim, space, split, base, nothing)
    gains = dict(zip(grid, effect.gains(circuits), strict=True))
    gains[units] = effect.whole  # everything kept is the intact model
    probes = {n: _probe(effect, gain, confidence) for n, gain in gains.items()} | {units: Probe(1.0, 1.0, 1.0)}
    while sizes := next_sizes(probes, level, scored):
        # one request for each size, since other claims may ask for it too
        outcomes = yield from ask_all([unit_ablation_request(claim, space, [ranked.top(n)]) for n in sizes])
        gains |= {n: effect.gains(outcome)[0] for n, outcome in zip(sizes, outcomes, strict=True)}
        probes |= {n: _probe(effect, gains[n], confidence) for n in sizes}
    value, low, high = (smallest(probes, level, curve) for curve in (1, 2, 0))
    assert value is not None and low is not None and high is not None
    if value > scored:
        raise _not_reached(probes, level, ranked, p.attribution)
    contrast = gains[value] - level * effect.whole
    return SmallestCircuit(value, low, high, dict(sorted(probes.items())), contrast, effect, split, {
        "neurons": value,
        "share": value / units,
        "share_interval": [low / units, high / units],
        **ranking_details(claim, ranked),
        "reach": level,
        "curve": [{"size": n, "faithfulness": v, "low": lo, "high": hi} for n, (lo, v, hi) in sorted(probes.items())],
        "pointwise_confidence": confidence,
        "falls_below_again_at": [n for n, probe in sorted(probes.items()) if n > value and probe.value < level],
        "strongest": list(ranked.top(min(SHOWN, value))),
        "mean_metric": {"intact": mean_metric(base), "nothing": mean_metric(nothing)},
        "accuracy": base.accuracy,
        "accuracy_nothing": float(nothing.correct.mean()),
    })  # fmt: skip


def search_notes(smallest: SmallestCircuit) -> list[str]:
    """The search, for the reader of the report."""
    d, probes = smallest.details, smallest.probes
    below = max((n for n in probes if n < smallest.value), default=0)
    next_smaller = f"{probes[below].value:.3f} at {below}" if below else "0 at none"
    units = unit_plural(d)
    lines = [
        f"{d['site']}: faithfulness {probes[smallest.value].value:.3f} with {smallest.value} of {d['universe']} {units} "
        f"({d['share']:.2%}), {next_smaller}; ranked by |mean {d['attribution']} score|, others ablated ({d['ablation']}); "
        "attention stays live",
    ]
    if smallest.high > d["scored"]:
        lines.append(
            f"no circuit of the {d['scored']} {units} with a score clearly reaches {d['reach']:g}: the upper end is the whole universe"
        )
    if d["falls_below_again_at"]:
        again = ", ".join(map(str, d["falls_below_again_at"][:5]))
        lines.append(
            f"faithfulness is below {d['reach']:g} again at {again} {units}; the interval assumes that it grows, so it may be too short"
        )
    return lines


def _probe(effect: NormalizedEffect, gain: Any, confidence: float) -> Probe:
    value, (low, high) = effect.ratio(gain, confidence)
    return Probe(low, value, high)


def _not_reached(probes: Probes, level: float, ranked: Ranking, attribution: str) -> Invalid:
    ranked_probes = {n: probe for n, probe in probes.items() if n <= ranked.scored}
    best = max(ranked_probes, key=lambda n: ranked_probes[n].value)
    return Invalid(
        f"faithfulness {level:g} is not reached by any probed circuit of the {ranked.scored} of {len(ranked.units)} neurons that have a "
        f"{attribution} score other than zero; the best is {ranked_probes[best].value:.3f} at {best} neurons. Lower reach, or use another "
        "attribution or ablation",
        {"best": ranked_probes[best].value, "at": best, "scored": ranked.scored, "universe": len(ranked.units), "reach": level},
        code=ReasonCode.FAITHFULNESS_NOT_REACHED,
    )
