"""The curves over a series of models that a report holds: one for each claim about a series, and one for each claim that was made about
every model of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

from ..errors import OptionError
from .messages.claims import bound_text, label
from .model import ClaimRecord

CURVE = "measured"  # the mark of a point of a curve that the claim is about as a whole


@dataclass(frozen=True)
class CurvePoint:
    """One model: where it stands in its series, estimate and interval (None together), and its mark: a verdict, or `measured`."""

    at: float
    value: float | None
    interval: tuple[float, float] | None
    mark: str


@dataclass(frozen=True)
class Curve:
    """`title` and the claims in words, points by `at`, horizontal lines (value, from which `at` on; None: everywhere), the unit."""

    title: str
    claims: tuple[str, ...]
    points: tuple[CurvePoint, ...]
    lines: tuple[tuple[float, float | None], ...]
    unit: str


def curves(claims: Iterable[ClaimRecord]) -> list[Curve]:
    """All curves, in the order of the claims; claims about one model alone have none.

    Raises `OptionError` for a claim whose details are not as a run writes them.
    """
    of_series: list[Curve] = []
    per_series: dict[tuple[str, str], list[ClaimRecord]] = {}
    for claim in claims:
        if claim.checkpoint is not None and claim.checkpoint.at is not None:
            per_series.setdefault((claim.checkpoint.of, _label(claim)), []).append(claim)
        elif claim.series and claim.details.get("curve"):
            with _as_written(claim):
                of_series.append(_curve_of_series(claim))
    return _merged([*(_curve_of_models(of, members) for (of, _), members in per_series.items()), *of_series])


@contextmanager
def _as_written(claim: ClaimRecord) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        what = f"{problem} is missing" if isinstance(problem, KeyError) else problem
        raise OptionError(
            f"{claim.nodeid} is not as a run writes it ({what}); was the report edited? Write it again with --circuits-json"
        ) from None


def _merged(pieces: list[Curve]) -> list[Curve]:
    """Several claims about the same curve as one."""
    merged: dict[tuple[str, tuple[CurvePoint, ...]], Curve] = {}
    for curve in pieces:
        key = curve.title, curve.points
        before = merged.get(key)
        merged[key] = curve if before is None else replace(before, claims=before.claims + curve.claims, lines=before.lines + curve.lines)
    return list(merged.values())


def _label(claim: ClaimRecord) -> str:
    return f"{claim.file}::{label(claim)}::{','.join(claim.tasks)}"


def _curve_of_models(of: str, claims: list[ClaimRecord]) -> Curve:
    """The same claim about each model of a series."""
    points = []
    for claim in claims:
        if claim.checkpoint is not None and claim.checkpoint.at is not None:
            points.append(CurvePoint(claim.checkpoint.at, claim.estimate, claim.interval, claim.verdict))
    points.sort(key=_at)
    first = claims[0]
    lines = tuple((edge, None) for edge in first.bound.edges() if edge is not None)
    return Curve(_title(first, first.property), (f"{of}: {label(first)}, {bound_text(first.bound)}",), tuple(points), lines, "")


def _curve_of_series(claim: ClaimRecord) -> Curve:
    """A claim about the course of a number over a series."""
    details = claim.details
    points = sorted(map(_point, details["curve"]), key=_at)
    value = "not measured" if claim.estimate is None else f"{claim.estimate:.3f}"
    shape = details.get("shape")
    text = f"{claim.model}: {label(claim)}, {shape} {value}, {bound_text(claim.bound)}: {claim.verdict}"
    edges = (edge for edge in claim.bound.edges() if edge is not None)
    lines = tuple((edge, details.get("at")) for edge in edges) if shape == "emerges_by" else ()
    return Curve(_title(claim, details.get("of", claim.property)), (text,), tuple(points), lines, details.get("unit") or "")


def _title(claim: ClaimRecord, name: str) -> str:
    return f"{name}({', '.join(claim.tasks)})" if claim.tasks else name


def _point(point: Mapping[str, Any]) -> CurvePoint:
    value, interval = point["value"], point["interval"]
    if value is None:
        return CurvePoint(_number(point["at"]), None, None, "invalid")
    if interval is None:
        return CurvePoint(_number(point["at"]), None, None, CURVE)
    low, high = (nan if end is None else _number(end) for end in interval)  # an infinite end is null in JSON
    return CurvePoint(_number(point["at"]), _number(value), (low, high), CURVE)


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)


def _at(point: CurvePoint) -> float:
    return point.at
