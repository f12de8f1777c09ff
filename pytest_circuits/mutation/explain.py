"""Reasons why a mutant survived."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

from ..core.json_values import plain
from ..core.verdict import CERTIFIED, REFUTED, Bound
from ..report.model import MutantReason
from .circuit import SpecCircuit
from .detection import Behaviour, Detection, MutantResult


def share_of_way(answer: Detection) -> float | None:
    """The share of the distance to the bound that the estimate moved: 0 if it did not move or moved away, 1 if it reached the bound.

    None if an estimate is missing, no verdict is expected, or the intact estimate lies on the bound.
    """
    before, after, expect = answer.judged.evaluation.estimate, answer.evaluation.estimate, answer.judged.claim.expect
    if before is None or after is None or expect not in (CERTIFIED, REFUTED):
        return None
    start, end = (_margin(e.value, answer.judged.claim.required_bound(), expect) for e in (before, after))
    return max(0.0, (start - end) / start) if isfinite(start) and isfinite(end) and start > 0 else None


def _margin(value: float, bound: Bound, expect: str) -> float:
    """Distance to the nearest edge of the bound, positive on the expected side."""
    floor = -inf if bound.at_least is None else bound.at_least
    ceiling = inf if bound.at_most is None else bound.at_most
    inside = min(value - floor, ceiling - value)
    return inside if expect == CERTIFIED else -inside


def reasons(result: MutantResult, circuit: SpecCircuit) -> list[MutantReason]:
    """Why no claim noticed: an equivalent mutant, unchanged answers, units outside all measured sets, or bounds too far away."""
    if result.mutation.equivalent:
        return [MutantReason(code="equivalent-by-design")]
    if result.equivalent:
        return [MutantReason(code="equivalent-here", arguments=_behaviour(result))]
    codes = [MutantReason(code="answers-changed", arguments=_behaviour(result))] if result.behaviour else []
    units = result.mutation.units
    if units and not any(circuit.sets_of(unit) for unit in units):
        arguments = {"units": list(units), "sets": len(circuit.sets), "measured": circuit.is_measured}
        codes.append(MutantReason(code="outside-the-sets", arguments=arguments))
    nearest = closest(result)
    return [*codes, MutantReason(code="no-number") if nearest is None else _bound_reason(*nearest)]


def _bound_reason(answer: Detection, share: float) -> MutantReason:
    """How far the estimate nearest to its bound moved."""
    before, after = answer.judged.evaluation.estimate, answer.evaluation.estimate
    assert before is not None and after is not None
    arguments = plain(
        {
            "claim": answer.judged.name,
            "share": share,
            "before": before.value,
            "after": after.value,
            "interval": after.interval,
            "bound": answer.judged.claim.required_bound().as_dict(),
        }
    )
    return MutantReason(code="no-estimate-nearer" if share == 0 else "bound-too-far", arguments=arguments)


def closest(result: MutantResult) -> tuple[Detection, float] | None:
    """The claim whose estimate moved the largest share of the distance to its bound."""
    shares = [(answer, share) for answer in result.answers if (share := share_of_way(answer)) is not None]
    return max(shares, key=lambda pair: pair[1], default=None)


def _behaviour(result: MutantResult) -> dict[str, Any]:
    """The task whose accuracy changed most, and the largest change of the metric on any task; nothing if no answers were measured."""
    if not result.behaviour:
        return {}
    name, change = max(result.behaviour.items(), key=lambda item: (_accuracy_change(item[1]), item[1].metric))
    metric = max(behaviour.metric for behaviour in result.behaviour.values())
    arguments: dict[str, Any] = plain({"task": name, "before": change.accuracy[0], "after": change.accuracy[1], "metric": metric})
    return arguments


def _accuracy_change(change: Behaviour) -> float:
    gap = abs(change.accuracy[0] - change.accuracy[1])
    return gap if isfinite(gap) else inf
