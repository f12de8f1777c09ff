"""The curves over a series of models that a JSON document holds: one for each claim about a series, and one for each claim that was
made of every model of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

from ..core.verdict import VERDICTS
from ..errors import OptionError
from .explain import bound_text
from .renderers.terminal import label

CURVE = "measured"  # of a point that is part of a curve, the claim being about all of it


@dataclass(frozen=True)
class CurvePoint:
    """One model: where it stands in its series, estimate and interval (None together), and what came of it: a verdict, or `measured`."""

    at: float
    value: float | None
    interval: tuple[float, float] | None
    mark: str


@dataclass(frozen=True)
class Curve:
    """`title` and what is claimed in words, points by `at`, horizontal lines (value, from which `at` on; None: everywhere), the unit."""

    title: str
    claims: tuple[str, ...]
    points: tuple[CurvePoint, ...]
    lines: tuple[tuple[float, float | None], ...]
    unit: str


def curves(content: Mapping[str, Any]) -> list[Curve]:
    """All curves of a document, in the order of its claims; claims about one model alone have none.

    Raises `OptionError` for a claim that no run has written: something is missing, or is no number where one belongs.
    """
    found: list[Curve] = []
    each: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for claim in content["claims"]:
        with _as_written(claim):
            place = claim.get("checkpoint")
            if place is not None and place.get("at") is not None:
                each.setdefault((place["of"], _label(claim)), []).append(claim)
            elif claim.get("series") and claim["details"].get("curve"):
                found += _of_series(claim)
    return _merged([*(_of_each(of, claims) for (of, _), claims in each.items()), *found])


@contextmanager
def _as_written(claim: Any) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        which = claim.get("nodeid", "a claim") if isinstance(claim, Mapping) else "a claim"
        what = f"{problem} is missing" if isinstance(problem, KeyError) else problem
        raise OptionError(f"{which} is not as a run writes it ({what}); was the report edited? make it anew with --circuits-json") from None


def _merged(found: list[Curve]) -> list[Curve]:
    """Several claims about one and the same curve as one."""
    made: dict[tuple[str, tuple[CurvePoint, ...]], Curve] = {}
    for curve in found:
        key = curve.title, curve.points
        before = made.get(key)
        made[key] = curve if before is None else replace(before, claims=before.claims + curve.claims, lines=before.lines + curve.lines)
    return list(made.values())


def _label(claim: Mapping[str, Any]) -> str:
    return f"{claim['file']}::{label(claim)}::{','.join(claim['tasks'])}"


def _of_each(of: str, claims: list[Mapping[str, Any]]) -> Curve:
    first = claims[0]
    points = []
    for claim in claims:
        with _as_written(claim):
            points.append(_point(claim["checkpoint"]["at"], claim["estimate"], claim["interval"], claim["verdict"]))
    points.sort(key=_at)
    with _as_written(first):
        edges = _edges(first["bound"])
    return Curve(_title(first, first["property"]), (f"{of}: {label(first)}, {bound_text(first['bound'])}",), tuple(points),
                 tuple((edge, None) for edge in edges), "")  # fmt: skip


def _of_series(claim: Mapping[str, Any]) -> Iterator[Curve]:
    details = claim["details"]
    points = sorted(
        (_point(one["at"], one["value"], one["interval"], CURVE if one["value"] is not None else "invalid") for one in details["curve"]),
        key=_at,
    )
    value = "not measured" if claim["estimate"] is None else f"{claim['estimate']:.3f}"
    shape = details.get("shape")
    what = f"{shape} {value}, {bound_text(claim['bound'])}: {claim['verdict']}"
    starts = details.get("at")
    lines = tuple((edge, starts) for edge in _edges(claim["bound"])) if shape == "emerges_by" else ()
    yield Curve(_title(claim, details.get("of", claim["property"])), (f"{claim['model']}: {label(claim)}, {what}",), tuple(points), lines,
                details.get("unit") or "")  # fmt: skip


def _title(claim: Mapping[str, Any], name: str) -> str:
    return f"{name}({', '.join(claim['tasks'])})" if claim["tasks"] else name


def _point(at: float, value: float | None, interval: Any, mark: str) -> CurvePoint:
    if mark not in (*VERDICTS, CURVE):
        raise ValueError(f"{mark!r} is no verdict")
    if value is None or interval is None:
        return CurvePoint(_number(at), None, None, mark)
    low, high = (nan if end is None else _number(end) for end in interval)  # an infinite end is null in JSON
    return CurvePoint(_number(at), _number(value), (low, high), mark)


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError(f"{value!r} is no finite number")
    return float(value)


def _at(point: CurvePoint) -> float:
    return point.at


def _edges(bound: Mapping[str, Any]) -> tuple[float, ...]:
    ((key, value),) = bound.items()
    if key not in ("at_least", "at_most", "within"):
        raise ValueError(f"{key!r} is no bound")
    return tuple(map(_number, value if key == "within" else (value,)))
