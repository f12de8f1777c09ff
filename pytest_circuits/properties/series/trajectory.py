"""How another property changes over a series of models, such as the checkpoints of a training run."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Describe, Steps, ask
from ..nested import Inner
from ..parameters import AnyParameters
from ..protocol import Claim, Property
from .trajectory_parameters import Trajectory
from .trajectory_shapes import SHAPE_MEANINGS, SHAPES, SeriesPoint, at_text, concerns, no_model_message

if TYPE_CHECKING:
    from ...core.sources import ModelSource


def estimate(claim: Claim) -> Steps[Estimate]:
    """Estimate the inner property on each model in turn; combine the simultaneous intervals."""
    p: Trajectory = claim.parameters
    series = [(float(i) if model.at is None else model.at, model) for i, model in enumerate(claim.series)]
    misfit = unfit(p, claim.model.name, [at for at, _ in series])
    if misfit is not None:
        raise Invalid(misfit[1], {"models": len(series), "at": [at for at, _ in series], "asked": p.at}, code=ReasonCode.TOO_FEW_MODELS)
    concerned = sum(concerns(p, at) for at, _ in series)
    confidence_each = 1 - (1 - p.confidence) / concerned
    inner = p.of.parameters.model_copy(update={"confidence": confidence_each})
    points: list[SeriesPoint] = []
    for at, model in series:
        points.append((yield from _measure_point(p.of, inner, claim, model, at)))
    return _estimate_from(p, points, confidence_each)


def unfit(p: Trajectory, name: str, ats: Sequence[float]) -> tuple[str, str] | None:
    """The parameter that does not fit a series with these places ("" for the series itself), and why; None if all fit."""
    if len(ats) < 2:
        return "", f"a trajectory needs at least 2 models, and {name!r} is a series of {len(ats)}: give the model `checkpoints`"
    before, after = (any(at < p.at for at in ats), any(at >= p.at for at in ats)) if p.at is not None else (True, True)
    if not after or (p.shape == "peaks_before" and not before):
        return "at", no_model_message(p, ats, "its models")
    return None


def _measure_point(of: Inner, parameters: AnyParameters, claim: Claim, model: ModelSource, at: float) -> Steps[SeriesPoint]:
    """Estimate the inner property on one model."""
    description = yield from ask(Describe(model))
    result: Estimate | Invalid
    try:
        result = yield from of.property.estimate(claim.about(model, of.name, parameters))
    except Invalid as problem:
        result = problem
    if isinstance(result, Estimate) and not all(map(isfinite, (result.value, *result.interval))):
        result = Invalid(f"the estimate is not a finite number: {result}", code=ReasonCode.NOT_FINITE)
    return SeriesPoint(model, at, description.fingerprint, result)


def _estimate_from(p: Trajectory, points: Sequence[SeriesPoint], confidence_each: float) -> Estimate:
    measured, missing = _split_points(p, points)
    details: dict[str, Any] = {
        "of": p.of.name,
        "unit": p.of.property.unit,
        "shape": p.shape,
        "at": p.at,
        "curve": [point.as_dict() for point in points],
        "left_out": [point.model.name for point in missing],
        "confidence_each": confidence_each,
    }
    try:
        value, interval, decisive = SHAPES[p.shape](p, measured)
    except Invalid as problem:
        raise Invalid(str(problem), {**details, **problem.details}, code=problem.code) from None
    low, high = limits(p)
    interval = (interval[0] if low is None else max(low, interval[0]), interval[1] if high is None else min(high, interval[1]))
    concerned = [point for point in measured if concerns(p, point.at)]
    details |= {"where": [point.model.name for point in decisive], "notes": _notes(p, points, missing, decisive, value)}
    kinds = dict.fromkeys(point.result.kind for point in concerned if isinstance(point.result, Estimate))
    kind = f"simultaneous over {len([point for point in points if concerns(p, point.at)])} models (Bonferroni) of: {', '.join(kinds)}"
    n = min(point.result.n for point in concerned if isinstance(point.result, Estimate))
    return Estimate(value, interval, n, p.confidence, kind, "trajectory", details, _unsettled(concerned))


def _split_points(p: Trajectory, points: Sequence[SeriesPoint]) -> tuple[list[SeriesPoint], list[SeriesPoint]]:
    """The measured points, and those that are left out. Raises `Invalid`, with all reasons, if one of them must not be left out."""
    measured = [point for point in points if isinstance(point.result, Estimate)]
    missing = [point for point in points if not isinstance(point.result, Estimate)]
    curve = {"curve": [point.as_dict() for point in points]}
    if missing and not measured:
        raise Invalid(
            f"{p.of.name} is invalid for all {len(missing)} models; for {missing[-1].model.name!r}: {missing[-1].result}",
            curve,
            code=ReasonCode.MODEL_CANNOT_BE_MEASURED,
        )
    needed = [point for point in missing if not _may_be_missing(p, point, measured)]
    if needed:
        first = needed[0]
        raise Invalid(
            f"{p.of.name} is invalid for {first.model.name!r}, {_why_needed(p, first)}: {first.result}",
            curve,
            code=ReasonCode.MODEL_CANNOT_BE_MEASURED,
        )
    return measured, missing


def _may_be_missing(p: Trajectory, point: SeriesPoint, measured: Sequence[SeriesPoint]) -> bool:
    if p.shape == "emerges_by" and concerns(p, point.at):  # without a measurement nothing shows that the property has emerged
        return False
    return p.invalid == "skip" or (p.invalid == "early" and point.at < measured[0].at)


def _why_needed(p: Trajectory, point: SeriesPoint) -> str:
    if p.shape == "emerges_by" and concerns(p, point.at):
        return f"which is at {at_text(p.at)} or later and so must be measured"
    return (
        "and `invalid: fail` leaves none out" if p.invalid == "fail" else "after one that could be measured (`invalid: skip` leaves it out)"
    )


def _unsettled(points: Sequence[SeriesPoint]) -> str | None:
    for point in points:
        if isinstance(point.result, Estimate) and point.result.unsettled:
            return f"{point.model.name}: {point.result.unsettled}"
    return None


def _notes(
    p: Trajectory, points: Sequence[SeriesPoint], missing: Sequence[SeriesPoint], decisive: Sequence[SeriesPoint], value: float
) -> list[str]:
    unit = p.of.property.unit or "the property's own units"
    curve = ", ".join(f"{at_text(point.at)}: {point.value:.3f}" if point not in missing else f"{at_text(point.at)}: –" for point in points)
    lines = [f"{p.of.name} over {len(points)} models, in {unit}: {curve}"]
    places = " and ".join(f"{point.value:.3f} at {at_text(point.at)}" for point in decisive)
    lines.append(f"{SHAPE_MEANINGS[p.shape].format(at=at_text(p.at))}: {value:.3f} ({places})")
    if missing:
        names, last = ", ".join(point.model.name for point in missing), missing[-1]
        lines.append(f"left out: {names}; {last.model.name}: {last.result}")
    return lines


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
