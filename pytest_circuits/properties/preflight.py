"""Warnings about a claim before anything is measured: it cannot be settled as written, or says little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from typing import Any, Literal

from ..core.shares import Size, needed
from ..core.units import Universe, is_mlp
from ..core.verdict import CERTIFIED, Bound
from ..stats import CONTROLS

Settled = Literal["certified", "refuted"]
SMALL_CIRCUIT = 2
"""Circuits of at most this many components are flagged."""


@dataclass(frozen=True)
class PreflightContext:
    """What is known before a measurement.

    `confidence` is that of the interval at one look. `groups` and `examples` hold two counts for each task, of the discovery and of the
    evaluation side, at the last planned look. `universe` is None where the model's shape is unknown. `most` is the largest number of
    groups of evaluation examples that a task can have with its parameters, where known.
    """

    bound: Bound
    confidence: float
    groups: Mapping[str, tuple[int, int]]
    examples: Mapping[str, tuple[int, int]]
    universe: Universe | None = None
    most: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PreflightWarning:
    """A warning, and the verdict that the claim cannot reach; None: the warning holds for every verdict."""

    text: str
    verdict: Settled | None = None


def general_warnings(parameters: Any, context: PreflightContext) -> Iterator[PreflightWarning]:
    """What can be wrong with a claim of any property: too few control draws, very small circuits, a share of a single example."""
    return chain(_draws(parameters), _sizes(parameters, context), _shares(parameters, context))


def best_case(lowest: float, highest: float) -> Callable[[Any, PreflightContext], Iterator[PreflightWarning]]:
    """A pre-flight check: could the best possible data settle the claim?

    It holds for means over the groups of `task`, in [lowest, highest], with a betting interval or a wider one. Equal values give the
    narrowest interval, so if no such value settles the claim, no data do. Values relative to the accuracy are not checked.
    """

    def check(parameters: Any, context: PreflightContext) -> Iterator[PreflightWarning]:
        _, n = context.groups.get(parameters.task, (0, 0))
        if not n or getattr(parameters, "definition", "absolute") == "relative":
            return
        for verdict, values in _best(context.bound, lowest, highest).items():
            intervals = [_interval(n, value, context.confidence, lowest, highest) for value in values]
            if not any(_settles(context.bound, interval, verdict) for interval in intervals):
                low, high = intervals[0]
                yield PreflightWarning(
                    f"{n} groups of evaluation examples are too few for it to be {verdict}: if all agreed on {values[0]:.3g}, the "
                    f"{100 * context.confidence:.4g}% interval would be [{low:.3f}, {high:.3f}], and the bound is '{context.bound}'; "
                    f"{_advice(context, parameters.task, n)}",
                    verdict,
                )

    return check


def _advice(context: PreflightContext, task: str, n: int) -> str:
    """More prompts help only if they add groups."""
    if context.most.get(task, n + 1) > n:
        return "give more prompts"
    return f"task {task!r} has no more groups, however many prompts: widen it, or loosen the bound"


def _best(bound: Bound, lowest: float, highest: float) -> dict[Settled, list[float]]:
    """The values most likely to settle the claim, for each verdict; for a two-sided bound, from its middle outwards."""
    if bound.at_least is None:
        return {"certified": [lowest], "refuted": [highest]}
    if bound.at_most is None:
        return {"certified": [highest], "refuted": [lowest]}
    low, high = max(lowest, bound.at_least), min(highest, bound.at_most)
    steps = [low + (high - low) * i / 20 for i in range(21)]
    return {"certified": sorted(steps, key=lambda value: abs(value - (low + high) / 2)), "refuted": [lowest, highest]}


def _interval(n: int, value: float, confidence: float, lowest: float, highest: float) -> tuple[float, float]:
    from ..stats.betting import betting_interval

    return betting_interval([value] * n, confidence, lowest, highest)


def _settles(bound: Bound, interval: tuple[float, float], verdict: Settled) -> bool:
    floor = -float("inf") if bound.at_least is None else bound.at_least
    ceiling = float("inf") if bound.at_most is None else bound.at_most
    low, high = interval
    return floor <= low and high <= ceiling if verdict == CERTIFIED else high < floor or low > ceiling


def _draws(parameters: Any) -> Iterator[PreflightWarning]:
    """The p-value of a rank among m controls is at least 1/(m + 1)."""
    draws, alpha = getattr(parameters, "draws", None), round(1 - parameters.confidence, 12)
    if draws is None or getattr(parameters, "control", "none") == "none" or 1 / (draws + 1) <= alpha:
        return
    yield PreflightWarning(
        f"{draws} draws cannot get the rank of the set among its controls under p = {1 / (draws + 1):.3f}, and confidence "
        f"{parameters.confidence:g} is an error of {alpha:g}: that takes {ceil(round(1 / alpha, 9)) - 1} draws"
    )


def _sizes(parameters: Any, context: PreflightContext) -> Iterator[PreflightWarning]:
    """Circuits too small to say anything, and named sets for which no control can be drawn."""
    universe, size = context.universe, getattr(parameters, "size", None)
    if universe is None:
        return
    if size is not None and getattr(parameters, "threshold", None) is None and getattr(parameters, "set", "shared") in ("shared", "top"):
        k = Size.parse(size).of(universe.components, parameters.rounding)
        if k <= SMALL_CIRCUIT:
            other = Size.parse("10%").of(universe.components, parameters.rounding)
            than = f" (10% would be {other})" if other > k else ""
            yield PreflightWarning(
                f"size {size} of the model's {universe.components} components makes circuits of {k}{than}: there is little to share"
            )
    named = getattr(getattr(parameters, "set", None), "units", None)
    if named is not None and CONTROLS.fact(str(getattr(parameters, "control", None)), "counterparts"):
        for kind, of, total in (("MLPs", True, universe.layers), ("heads", False, universe.components - universe.layers)):
            has = sum(is_mlp(unit) == of for unit in named)
            if has > total - has:
                yield PreflightWarning(
                    f"the set has {has} of the model's {total} {kind}, so only {total - has} are left for a control {parameters.control} "
                    f"of {has}; use control: c3_parity or c3_any"
                )


def _shares(parameters: Any, context: PreflightContext) -> Iterator[PreflightWarning]:
    """A share P of few discovery examples can be a single example."""
    p = getattr(parameters, "p", None)
    if p is None:
        return
    for task, (n, _) in context.examples.items():
        if n and needed(p, n) < 2:
            yield PreflightWarning(
                f"P = {p:g} of {n} discovery examples of {task!r} is a single one: every component of a circuit counts as shared"
            )
