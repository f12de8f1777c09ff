"""The curves over a series of models that a JSON document holds: one for each claim about a series, and one for each claim that was
made of every model of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .explain import bound_text
from .terminal import label

CURVE = "measured"  # of a point that is part of a curve, the claim being about all of it


@dataclass(frozen=True)
class Point:
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
    points: tuple[Point, ...]
    lines: tuple[tuple[float, float | None], ...]
    unit: str


def curves(content: Mapping[str, Any]) -> list[Curve]:
    """All curves of a document, in the order of its claims; claims about one model alone have none."""
    found: list[Curve] = []
    each: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for claim in content["claims"]:
        place = claim.get("checkpoint")
        if place is not None and place.get("at") is not None:
            each.setdefault((place["of"], _label(claim)), []).append(claim)
        elif claim.get("series") and claim["details"].get("curve"):
            found += _of_series(claim)
    return _merged([*(_of_each(of, claims) for (of, _), claims in each.items()), *found])


def _merged(found: list[Curve]) -> list[Curve]:
    """Several claims about one and the same curve as one."""
    made: dict[tuple[str, tuple[Point, ...]], Curve] = {}
    for curve in found:
        key = curve.title, curve.points
        before = made.get(key)
        made[key] = curve if before is None else replace(before, claims=before.claims + curve.claims, lines=before.lines + curve.lines)
    return list(made.values())


def _label(claim: Mapping[str, Any]) -> str:
    return f"{claim['file']}::{label(claim)}::{','.join(claim['tasks'])}"


def _of_each(of: str, claims: list[Mapping[str, Any]]) -> Curve:
    first = claims[0]
    points = sorted(
        (_point(claim["checkpoint"]["at"], claim["estimate"], claim["interval"], claim["verdict"]) for claim in claims), key=_at
    )
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


def _point(at: float, value: float | None, interval: Any, mark: str) -> Point:
    return Point(float(at), value, None if interval is None else (interval[0], interval[1]), mark)


def _at(point: Point) -> float:
    return point.at


def _edges(bound: Mapping[str, Any]) -> tuple[float, ...]:
    ((key, value),) = bound.items()
    return tuple(value) if key == "within" else (value,)
