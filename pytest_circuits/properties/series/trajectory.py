"""How any other property of a model moves over a series of models, such as the checkpoints of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Describe, Steps, ask
from ..nested import Inner, PropertyOf
from ..parameters import AnyParameters
from ..protocol import Claim, Property

if TYPE_CHECKING:
    from ...core.sources import ModelSource

AROUND = ("emerges_by", "peaks_before")  # shapes that need `at`
Interval = tuple[float, float]


class Trajectory(AnyParameters):
    """Shape of the curve v(a) of another property over the models of a series, a being the models' `at` (a training step, a seed).

    The value is in the units of the property in `of`, whose range is [lo, hi]. By `shape`:

    - `non_decreasing`: the largest drop from a model to the next, max v_i − v_{i+1}; negative where every step rises.
    - `no_drop`: the largest drop from a model to any later one, max over i < j of v_i − v_j, which also adds up small steps; negative
      where every later value lies above every earlier one. Both are claimed with `at_most`, the drop that is tolerated, and lie
      in [lo − hi, hi − lo].
    - `emerges_by`: the smallest value of the models from `at` on, min over a ≥ at of v. `at_least: x` says that the property has reached
      x by then, and stays. In [lo, hi].
    - `peaks_before`: the highest value before `at` minus the highest from there on. `at_least: 0` says that the curve peaks before `at`,
      `at_least: d` that nothing later comes within d of the peak. In [lo − hi, hi − lo].
    - `spread`: the highest minus the lowest value, max v − min v, claimed with `at_most`; for seeds as well as for steps. In [0, hi − lo].

    A model for which the property in `of` is invalid (early in training the task may be below the accuracy gate) is left out and reported
    with its reason: `invalid: early` (the default) leaves out those before the first that could be measured, so that a later one makes the
    claim invalid; `skip` leaves out any; `fail` none. Errors other than that (a model that cannot be opened) make the claim invalid.
    `drift` in `of` needs `against: NAME`, one model that every model of the series is compared with.

    Also invalid: fewer than two models that could be measured, none before or from `at` on, or an invalid one from `at` on (emerges_by).

    Interval: simultaneous. Each of the m models in question is measured with confidence 1 − (1 − confidence)/m (Bonferroni), so all m
    intervals [l_i, u_i] hold together; the ends are the smallest and the largest value that curves within them can have, such as
    max l_i − u_j and max u_i − l_j for `no_drop`. It is exact where the intervals of the inner property are, and wide, since it does not
    use that all models saw the same prompts. Source: simultaneous inference by Bonferroni's inequality.
    """

    of: Annotated[PropertyOf, Field(description="the property, with its parameters: {reuse: {task: addition, p: 0.8}}")]
    shape: Annotated[
        Literal["non_decreasing", "no_drop", "emerges_by", "peaks_before", "spread"], Field(description="what is claimed of the curve")
    ]
    at: Annotated[
        float | None, Field(allow_inf_nan=False, description="for emerges_by and peaks_before: where in the series, e.g. the step")
    ] = None
    invalid: Annotated[
        Literal["early", "skip", "fail"],
        Field(description="models for which the property is invalid: those at the start, or any, are left out; or none may be"),
    ] = "early"

    @model_validator(mode="after")
    def _fits(self) -> Trajectory:
        inner: Any = self.of.parameters
        if self.of.name == "drift" and inner.against is None:
            raise ValueError("drift inside a trajectory needs against: NAME, one model that all of the series are compared with")
        if self.of.name == "drift" and (inner.within is not None or inner.no_worse_by is not None):
            raise ValueError("within and no_worse_by are bounds, and the claim here is the trajectory's: write its bound beside it")
        if self.shape in AROUND and self.at is None:
            raise ValueError(f"shape {self.shape!r} needs 'at', the place in the series that it is about")
        if self.shape not in AROUND and self.at is not None:
            raise ValueError(f"shape {self.shape!r} is about the whole series: leave 'at' out, or use {' or '.join(AROUND)}")
        return self


@dataclass(frozen=True)
class SeriesPoint:
    """One model of the series: its place, its fingerprint, and the estimate or the reason why there is none."""

    model: ModelSource
    at: float
    fingerprint: str
    found: Estimate | Invalid

    @property
    def interval(self) -> Interval:
        """Of a point that was measured."""
        assert isinstance(self.found, Estimate)
        return self.found.interval

    @property
    def value(self) -> float:
        """Of a point that was measured."""
        assert isinstance(self.found, Estimate)
        return self.found.value

    def as_dict(self) -> dict[str, Any]:
        """For the report."""
        made = self.found if isinstance(self.found, Estimate) else None
        return {
            "model": self.model.name,
            "at": self.at,
            "fingerprint": self.fingerprint,
            "value": None if made is None else made.value,
            "interval": None if made is None else list(made.interval),
            "n": 0 if made is None else made.n,
            "reason": None if made is not None else str(self.found),
        }


def estimate(claim: Claim) -> Steps[Estimate]:
    """Estimate the inner property on each model in turn; combine the simultaneous intervals."""
    p: Trajectory = claim.parameters
    series = [(float(i) if model.at is None else model.at, model) for i, model in enumerate(claim.series)]
    wrong = unfit(p, claim.model.name, [at for at, _ in series])
    if wrong is not None:
        raise Invalid(wrong[1], {"models": len(series), "at": [at for at, _ in series], "asked": p.at})
    concerned = sum(_concerns(p, at) for at, _ in series)
    each = 1 - (1 - p.confidence) / concerned
    inner = p.of.parameters.model_copy(update={"confidence": each})
    points: list[SeriesPoint] = []
    for at, model in series:
        points.append((yield from _measured(p.of, inner, claim, model, at)))
    return _judged(p, points, each)


def unfit(p: Trajectory, name: str, ats: Sequence[float]) -> tuple[str, str] | None:
    """The parameter that does not fit a series with these places ("" for the series itself), and why; None where all fit."""
    if len(ats) < 2:
        return "", f"a trajectory needs at least 2 models, and {name!r} is a series of {len(ats)}: give the model `checkpoints`"
    before, after = (any(at < p.at for at in ats), any(at >= p.at for at in ats)) if p.at is not None else (True, True)
    if not after or (p.shape == "peaks_before" and not before):
        return "at", _nothing(p, ats, "its models")
    return None


def _concerns(p: Trajectory, at: float) -> bool:
    """Whether the value depends on the model there."""
    return p.shape != "emerges_by" or (p.at is not None and at >= p.at)


def _measured(of: Inner, parameters: AnyParameters, claim: Claim, model: ModelSource, at: float) -> Steps[SeriesPoint]:
    """The inner property on one model."""
    description = yield from ask(Describe(model))
    found: Estimate | Invalid
    try:
        found = yield from of.property.estimate(claim.about(model, of.name, parameters))
    except Invalid as problem:
        found = problem
    if isinstance(found, Estimate) and not all(map(isfinite, (found.value, *found.interval))):
        found = Invalid(f"the estimate is not a finite number: {found}")
    return SeriesPoint(model, at, description.fingerprint, found)


def _judged(p: Trajectory, points: Sequence[SeriesPoint], each: float) -> Estimate:
    kept, left_out = _kept(p, points)
    details: dict[str, Any] = {
        "of": p.of.name,
        "unit": p.of.property.unit,
        "shape": p.shape,
        "at": p.at,
        "curve": [one.as_dict() for one in points],
        "left_out": [one.model.name for one in left_out],
        "confidence_each": each,
    }
    try:
        value, interval, where = SHAPES[p.shape](p, kept)
    except Invalid as problem:
        raise Invalid(str(problem), {**details, **problem.details}) from None
    low, high = limits(p)
    interval = (interval[0] if low is None else max(low, interval[0]), interval[1] if high is None else min(high, interval[1]))
    concerned = [one for one in kept if _concerns(p, one.at)]
    details |= {"where": [one.model.name for one in where], "notes": _told(p, points, left_out, where, value)}
    kinds = dict.fromkeys(one.found.kind for one in concerned if isinstance(one.found, Estimate))
    kind = f"simultaneous over {len([one for one in points if _concerns(p, one.at)])} models (Bonferroni) of: {', '.join(kinds)}"
    n = min(one.found.n for one in concerned if isinstance(one.found, Estimate))
    return Estimate(value, interval, n, p.confidence, kind, "trajectory", details, _unsettled(concerned))


def _kept(p: Trajectory, points: Sequence[SeriesPoint]) -> tuple[list[SeriesPoint], list[SeriesPoint]]:
    """The points that were measured, and those that may be left out. Raises `Invalid` where one may not, with every reason."""
    kept = [one for one in points if isinstance(one.found, Estimate)]
    left = [one for one in points if not isinstance(one.found, Estimate)]
    curve = {"curve": [one.as_dict() for one in points]}
    if left and not kept:
        raise Invalid(f"{p.of.name} is invalid for all {len(left)} models; for {left[-1].model.name!r}: {left[-1].found}", curve)
    needed = [one for one in left if not _may_be_missing(p, one, kept)]
    if needed:
        first = needed[0]
        raise Invalid(f"{p.of.name} is invalid for {first.model.name!r}, {_why_needed(p, first)}: {first.found}", curve)
    return kept, left


def _may_be_missing(p: Trajectory, point: SeriesPoint, kept: Sequence[SeriesPoint]) -> bool:
    if p.shape == "emerges_by" and _concerns(p, point.at):  # what cannot be measured there has not been shown to have emerged
        return False
    return p.invalid == "skip" or (p.invalid == "early" and point.at < kept[0].at)


def _why_needed(p: Trajectory, point: SeriesPoint) -> str:
    if p.shape == "emerges_by" and _concerns(p, point.at):
        return f"which is to have it, being at {_number(p.at)} or later"
    return (
        "and `invalid: fail` leaves none out" if p.invalid == "fail" else "after one that could be measured (`invalid: skip` leaves it out)"
    )


def _unsettled(points: Sequence[SeriesPoint]) -> str | None:
    for one in points:
        if isinstance(one.found, Estimate) and one.found.unsettled:
            return f"{one.model.name}: {one.found.unsettled}"
    return None


Shaped = tuple[float, Interval, list[SeriesPoint]]


def _drop(pairs: Sequence[tuple[SeriesPoint, SeriesPoint]]) -> Shaped:
    """The largest of first − second, its bounds within all intervals, and the pair."""
    if not pairs:
        raise Invalid("a drop needs at least 2 models that could be measured, got 1", {"models_measured": 1})
    worst = max(pairs, key=lambda pair: pair[0].value - pair[1].value)
    low = max(a.interval[0] - b.interval[1] for a, b in pairs)
    high = max(a.interval[1] - b.interval[0] for a, b in pairs)
    return worst[0].value - worst[1].value, (low, high), list(worst)


def _non_decreasing(p: Trajectory, kept: Sequence[SeriesPoint]) -> Shaped:
    return _drop(list(pairwise(kept)))


def _no_drop(p: Trajectory, kept: Sequence[SeriesPoint]) -> Shaped:
    return _drop([(a, b) for i, a in enumerate(kept) for b in kept[i + 1 :]])


def _spread(p: Trajectory, kept: Sequence[SeriesPoint]) -> Shaped:
    value, (low, high), pair = _drop([(a, b) for a in kept for b in kept if a is not b])
    return value, (max(0.0, low), high), pair


def _emerges_by(p: Trajectory, kept: Sequence[SeriesPoint]) -> Shaped:
    later = [one for one in kept if _concerns(p, one.at)]
    lowest = min(later, key=lambda one: one.value)
    return lowest.value, (min(one.interval[0] for one in later), min(one.interval[1] for one in later)), [lowest]


def _peaks_before(p: Trajectory, kept: Sequence[SeriesPoint]) -> Shaped:
    assert p.at is not None
    before, after = [one for one in kept if one.at < p.at], [one for one in kept if one.at >= p.at]
    if not before or not after:
        raise Invalid(_nothing(p, [one.at for one in kept]), {"asked": p.at, "at": [one.at for one in kept]})
    first, second = (max(side, key=lambda one: one.value) for side in (before, after))
    lows, highs = ([max(one.interval[end] for one in side) for side in (before, after)] for end in (0, 1))
    return first.value - second.value, (lows[0] - highs[1], highs[0] - lows[1]), [first, second]


SHAPES = {
    "non_decreasing": _non_decreasing,
    "no_drop": _no_drop,
    "emerges_by": _emerges_by,
    "peaks_before": _peaks_before,
    "spread": _spread,
}


def _nothing(p: Trajectory, ats: Sequence[float], which: str = "those that could be measured") -> str:
    side = "from there on" if all(p.at is not None and at < p.at for at in ats) else "before it"
    return f"{p.shape} at {_number(p.at)} has no model {side}: {which} are at {', '.join(map(_number, ats))}"


def _number(at: float | None) -> str:
    return "none" if at is None else f"{at:.12g}"


def _told(
    p: Trajectory, points: Sequence[SeriesPoint], left_out: Sequence[SeriesPoint], where: Sequence[SeriesPoint], value: float
) -> list[str]:
    unit = p.of.property.unit or "the property's own units"
    curve = ", ".join(f"{_number(one.at)}: {one.value:.3f}" if one not in left_out else f"{_number(one.at)}: –" for one in points)
    lines = [f"{p.of.name} over {len(points)} models, in {unit}: {curve}"]
    places = " and ".join(f"{one.value:.3f} at {_number(one.at)}" for one in where)
    lines.append(f"{_MEANING[p.shape].format(at=_number(p.at))}: {value:.3f} ({places})")
    if left_out:
        names, last = ", ".join(one.model.name for one in left_out), left_out[-1]
        lines.append(f"left out: {names}; {last.model.name}: {last.found}")
    return lines


_MEANING = {
    "non_decreasing": "largest drop from one model to the next",
    "no_drop": "largest drop from a model to a later one",
    "emerges_by": "smallest value from {at} on",
    "peaks_before": "highest value before {at} minus the highest from there on",
    "spread": "highest minus lowest value",
}


def limits(p: Trajectory) -> tuple[float | None, float | None]:
    """The range of the value, from that of the inner property."""
    low, high = p.of.property.range(p.of.parameters)
    if p.shape == "emerges_by":
        return low, high
    width = None if low is None or high is None else high - low
    return (0.0 if p.shape == "spread" else None if width is None else -width), width


TRAJECTORY = Property(
    "trajectory", Trajectory, estimate, None, None, "how another property moves over a series of models: no drop, emergence, peak, spread",
    "units of the property in `of`", over_series=True, limits=limits, unfit=unfit,
)  # fmt: skip
