"""The shapes of a trajectory: what each computes from the estimates along a series, and its simultaneous bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from .trajectory_parameters import Trajectory

if TYPE_CHECKING:
    from ...core.sources import ModelSource

Interval = tuple[float, float]


@dataclass(frozen=True)
class SeriesPoint:
    """One model of the series: its place, its fingerprint, and the estimate, or the error that made it invalid."""

    model: ModelSource
    at: float
    fingerprint: str
    result: Estimate | Invalid

    @property
    def interval(self) -> Interval:
        """The interval of a point that was measured."""
        assert isinstance(self.result, Estimate)
        return self.result.interval

    @property
    def value(self) -> float:
        """The value of a point that was measured."""
        assert isinstance(self.result, Estimate)
        return self.result.value

    def as_dict(self) -> dict[str, Any]:
        """For the report."""
        estimate = self.result if isinstance(self.result, Estimate) else None
        return {
            "model": self.model.name,
            "at": self.at,
            "fingerprint": self.fingerprint,
            "value": None if estimate is None else estimate.value,
            "interval": None if estimate is None else list(estimate.interval),
            "n": 0 if estimate is None else estimate.n,
            "reason": None if estimate is not None else str(self.result),
        }


def concerns(p: Trajectory, at: float) -> bool:
    """Whether the value depends on the model at this place."""
    return p.shape != "emerges_by" or (p.at is not None and at >= p.at)


ShapeValue = tuple[float, Interval, list[SeriesPoint]]
"""The value of a shape, its simultaneous interval, and the points that it was computed from."""


def _drop(pairs: Sequence[tuple[SeriesPoint, SeriesPoint]]) -> ShapeValue:
    """The largest of first − second, its bounds within all intervals, and the pair."""
    if not pairs:
        raise Invalid(
            "a drop needs at least 2 models that could be measured, got 1", {"models_measured": 1}, code=ReasonCode.TOO_FEW_MODELS
        )
    worst = max(pairs, key=lambda pair: pair[0].value - pair[1].value)
    low = max(a.interval[0] - b.interval[1] for a, b in pairs)
    high = max(a.interval[1] - b.interval[0] for a, b in pairs)
    return worst[0].value - worst[1].value, (low, high), list(worst)


def _non_decreasing(p: Trajectory, measured: Sequence[SeriesPoint]) -> ShapeValue:
    return _drop(list(pairwise(measured)))


def _no_drop(p: Trajectory, measured: Sequence[SeriesPoint]) -> ShapeValue:
    return _drop([(a, b) for i, a in enumerate(measured) for b in measured[i + 1 :]])


def _spread(p: Trajectory, measured: Sequence[SeriesPoint]) -> ShapeValue:
    value, (low, high), pair = _drop([(a, b) for a in measured for b in measured if a is not b])
    return value, (max(0.0, low), high), pair


def _emerges_by(p: Trajectory, measured: Sequence[SeriesPoint]) -> ShapeValue:
    later = [point for point in measured if concerns(p, point.at)]
    lowest = min(later, key=lambda point: point.value)
    return lowest.value, (min(point.interval[0] for point in later), min(point.interval[1] for point in later)), [lowest]


def _peaks_before(p: Trajectory, measured: Sequence[SeriesPoint]) -> ShapeValue:
    assert p.at is not None
    before, after = [point for point in measured if point.at < p.at], [point for point in measured if point.at >= p.at]
    if not before or not after:
        raise Invalid(
            no_model_message(p, [point.at for point in measured]),
            {"asked": p.at, "at": [point.at for point in measured]},
            code=ReasonCode.TOO_FEW_MODELS,
        )
    first, second = (max(side, key=lambda point: point.value) for side in (before, after))
    lows, highs = ([max(point.interval[end] for point in side) for side in (before, after)] for end in (0, 1))
    return first.value - second.value, (lows[0] - highs[1], highs[0] - lows[1]), [first, second]


SHAPES = {
    "non_decreasing": _non_decreasing,
    "no_drop": _no_drop,
    "emerges_by": _emerges_by,
    "peaks_before": _peaks_before,
    "spread": _spread,
}


def no_model_message(p: Trajectory, ats: Sequence[float], models: str = "those that could be measured") -> str:
    """The error for a series without a model before `at`, or from `at` on; `models` are at the places `ats`."""
    side = "from there on" if all(p.at is not None and at < p.at for at in ats) else "before it"
    return f"{p.shape} at {at_text(p.at)} has no model {side}: {models} are at {', '.join(map(at_text, ats))}"


def at_text(at: float | None) -> str:
    """A place in the series, as text."""
    return "none" if at is None else f"{at:.12g}"


SHAPE_MEANINGS = {
    "non_decreasing": "largest drop from one model to the next",
    "no_drop": "largest drop from a model to a later one",
    "emerges_by": "smallest value from {at} on",
    "peaks_before": "highest value before {at} minus the highest from there on",
    "spread": "highest minus lowest value",
}
