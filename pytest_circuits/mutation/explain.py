"""Why a mutant survived, in words, from what was measured."""

from __future__ import annotations

from math import inf, isfinite

from ..core.verdict import CERTIFIED, REFUTED, Bound
from .circuit import SpecCircuit
from .detection import Behaviour, DetectionAnswer, MutantResult


def share_of_way(answer: DetectionAnswer) -> float | None:
    """How far the estimate moved towards a change of the verdict: 0 not at all (or away from it), 1 all the way to the bound.

    None where there is no number on one of the sides, where no verdict is expected, or where the intact estimate lies on the bound.
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


def reasons(tried: MutantResult, circuit: SpecCircuit) -> list[str]:
    """Why no claim noticed: an equivalent mutant, unchanged answers, a place that no claim looks at, bounds that are too far away."""
    if tried.mutation.equivalent:
        return ["equivalent: the same model under other names, which no claim should notice"]
    if tried.equivalent:
        return [f"equivalent on these prompts: no answer changed by more than rounding ({behaviour_told(tried)})"]
    found = [f"answers changed: {behaviour_told(tried)}"] if tried.behaviour else []
    units = tried.mutation.units
    if units and not any(circuit.sets_of(unit) for unit in units):
        n, s = len(circuit.sets), "s" * (len(circuit.sets) != 1)
        sets = f"set{s} of components that the claims measured" if circuit.own else f"shared set{s} of the tasks, no claim having its own"
        found.append(f"{' and '.join(units)} lies outside the {n} {sets}")
    nearest = closest(tried)
    if nearest is None:
        return [*found, "no claim that expects a verdict has a number on both sides"]
    answer, share = nearest
    before, after = answer.judged.evaluation.estimate, answer.evaluation.estimate
    assert before is not None and after is not None
    low, high = after.interval
    moved = f"{before.value:.3f} → {after.value:.3f} [{low:.3f}, {high:.3f}], bound {answer.judged.claim.bound}"
    if share == 0:
        found.append(f"no estimate came nearer to its bound; {answer.judged.name}: {moved}")
    else:
        found.append(f"bounds too far away: {answer.judged.name} went {share:.0%} of the way to its bound, {moved}")
    return found


def closest(tried: MutantResult) -> tuple[DetectionAnswer, float] | None:
    """The claim whose estimate went the largest part of the way to its bound."""
    shares = [(answer, share) for answer in tried.answers if (share := share_of_way(answer)) is not None]
    return max(shares, key=lambda pair: pair[1], default=None)


def behaviour_told(tried: MutantResult) -> str:
    """The task whose answers changed most, in accuracy and in the metric."""
    if not tried.behaviour:
        return "no answers were measured"
    by_accuracy = max(tried.behaviour.items(), key=lambda item: (_fall(item[1]), item[1].metric))
    name, b = by_accuracy
    most = max(tried.behaviour.values(), key=lambda one: one.metric)
    largest = f"{most.metric:.2g}" if isfinite(most.metric) else "to what is no finite number"
    return f"largest change of the metric {largest}; accuracy on {name} {b.accuracy[0]:.3f} → {b.accuracy[1]:.3f}"


def _fall(b: Behaviour) -> float:
    gap = abs(b.accuracy[0] - b.accuracy[1])
    return gap if isfinite(gap) else inf
