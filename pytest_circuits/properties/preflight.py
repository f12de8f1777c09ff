"""What can be told of a claim before anything is measured: that it cannot be settled as it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from ..core.shares import Size, needed
from ..core.units import Universe, is_mlp
from ..core.verdict import CERTIFIED, Bound

if TYPE_CHECKING:
    from .protocol import Property

Settled = Literal["certified", "refuted"]
FEW = 2
"""Components from which on a circuit has some structure."""
TYPED = ("c3", "c3_typed_layer", "c3_matched")
"""Controls that need as many MLPs outside of the set as it has."""


@dataclass(frozen=True)
class PreflightContext:
    """What is known beforehand. `groups` and `examples` of each task: on the discovery and on the evaluation side, by the last look that
    is planned; `confidence` is that of the interval at a look. `universe` is None where the model's shape is not known. `most`: how many
    groups of evaluation examples a task can have with its parameters, where that is known.
    """

    bound: Bound
    confidence: float
    groups: Mapping[str, tuple[int, int]]
    examples: Mapping[str, tuple[int, int]]
    universe: Universe | None = None
    most: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PreflightWarning:
    """Something that is told, and the verdict that cannot come of it; None: whatever the verdict."""

    text: str
    verdict: Settled | None = None


def doubts(prop: Property, parameters: Any, prospect: PreflightContext) -> Iterator[PreflightWarning]:
    """What is wrong with any claim of this kind, and what the property itself has to say (`Property.preflight`)."""
    own = () if prop.preflight is None else prop.preflight(parameters, prospect)
    return chain(_draws(parameters), _sizes(parameters, prospect), _shares(parameters, prospect), own)


def best_case(lowest: float, highest: float) -> Callable[[Any, PreflightContext], Iterator[PreflightWarning]]:
    """For means over the groups of `task` in [lowest, highest] with a betting interval, or a wider one: could the best data settle it?

    The narrowest interval is that of equal values, so if none of them settles the claim, nothing does. Values relative to the
    accuracy are left alone.
    """

    def look(parameters: Any, prospect: PreflightContext) -> Iterator[PreflightWarning]:
        _, n = prospect.groups.get(parameters.task, (0, 0))
        if not n or getattr(parameters, "definition", "absolute") == "relative":
            return
        for verdict, values in _best(prospect.bound, lowest, highest).items():
            tried = [_interval(n, value, prospect.confidence, lowest, highest) for value in values]
            if not any(_settles(prospect.bound, interval, verdict) for interval in tried):
                low, high = tried[0]
                yield PreflightWarning(
                    f"{n} groups of evaluation examples are too few for it to be {verdict}: if all agreed on {values[0]:.3g}, the "
                    f"{100 * prospect.confidence:.4g}% interval would be [{low:.3f}, {high:.3f}], and the bound is '{prospect.bound}'; "
                    f"{_advice(prospect, parameters.task, n)}",
                    verdict,
                )

    return look


def _advice(prospect: PreflightContext, task: str, n: int) -> str:
    """More prompts help only if they come in further groups."""
    if prospect.most.get(task, n + 1) > n:
        return "give more prompts"
    return f"task {task!r} has no more groups, however many prompts: widen it, or loosen the bound"


def _best(bound: Bound, lowest: float, highest: float) -> dict[Settled, list[float]]:
    """The values that are most likely to settle it either way; inside a bound with two sides from its middle outwards."""
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
    """The rank of the set among m controls has a p-value of at least 1/(m + 1)."""
    draws, alpha = getattr(parameters, "draws", None), round(1 - parameters.confidence, 12)
    if draws is None or getattr(parameters, "control", "none") == "none" or 1 / (draws + 1) <= alpha:
        return
    yield PreflightWarning(
        f"{draws} draws cannot get the rank of the set among its controls under p = {1 / (draws + 1):.3f}, and confidence "
        f"{parameters.confidence:g} is an error of {alpha:g}: that takes {ceil(round(1 / alpha, 9)) - 1} draws"
    )


def _sizes(parameters: Any, prospect: PreflightContext) -> Iterator[PreflightWarning]:
    """Circuits that are too small to say anything, and named sets that no control can be drawn for."""
    universe, size = prospect.universe, getattr(parameters, "size", None)
    if universe is None:
        return
    if size is not None and getattr(parameters, "threshold", None) is None and getattr(parameters, "set", "shared") in ("shared", "top"):
        k = Size.parse(size).of(universe.components, parameters.rounding)
        if k <= FEW:
            other = Size.parse("10%").of(universe.components, parameters.rounding)
            than = f" (10% would be {other})" if other > k else ""
            yield PreflightWarning(
                f"size {size} of the model's {universe.components} components makes circuits of {k}{than}: there is little to share"
            )
    named = getattr(getattr(parameters, "set", None), "units", None)
    if named is not None and getattr(parameters, "control", None) in TYPED:
        for kind, of, total in (("MLPs", True, universe.layers), ("heads", False, universe.components - universe.layers)):
            has = sum(is_mlp(unit) == of for unit in named)
            if has > total - has:
                yield PreflightWarning(
                    f"the set has {has} of the model's {total} {kind}, so only {total - has} are left for a control {parameters.control} "
                    f"of {has}; use control: c3_parity or c3_any"
                )


def _shares(parameters: Any, prospect: PreflightContext) -> Iterator[PreflightWarning]:
    """A share P of few discovery examples can be one of them, or all of them."""
    p = getattr(parameters, "p", None)
    if p is None:
        return
    for task, (n, _) in prospect.examples.items():
        if n and needed(p, n) < 2:
            yield PreflightWarning(
                f"P = {p:g} of {n} discovery examples of {task!r} is a single one: every component of a circuit counts as shared"
            )
