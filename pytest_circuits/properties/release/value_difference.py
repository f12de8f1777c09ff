"""Drift of a value: the estimate of another claim now, minus the estimate at the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.units import is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ..payload import SHARED_SET_NAMES, Json, is_within_noise, moved_units, rounded, share_changes
from .circuit_overlap import BY_NAME, moved_text
from .drift_parameters import Drift
from .release_entry import Release, Side


def compare_values(p: Drift, release: Release, side: Side) -> Estimate:
    """The value now minus the value then, on the same examples if possible."""
    from ...stats.paired_difference import paired_difference, simultaneous_difference
    from ..payload import group_values, is_paired

    then, now = release.payload["of"], side.payload["of"]
    value = now["estimate"] - then["estimate"]
    paired = is_paired(then, now)
    groups: int | None = None
    if paired:
        values = group_values(now), group_values(then)
        groups = len(values[0])
        draws = [(float(number["draws"][0]), int(number["draws"][1])) for number in (then, now) if "draws" in number]
        value, interval = paired_difference(*values, p.confidence, float(now["range"][0]), float(now["range"][1]), draws)
        kind = "betting interval over groups of differences on the same examples" + (", and draws in quadrature" if draws else "")
    else:
        if then["confidence"] < rounded((1 + p.confidence) / 2):
            raise Invalid(
                f"the baseline's interval has confidence {then['confidence']:g}, and {(1 + p.confidence) / 2:g} is needed to compare at "
                f"confidence {p.confidence:g}: measure the release again",
                {"confidence_then": then["confidence"]},
                code=ReasonCode.NO_RELEASE,
            )
        low, high = simultaneous_difference((now["interval"][0], now["interval"][1]), (then["interval"][0], then["interval"][1]))
        interval, kind = (min(low, value), max(high, value)), f"from an interval of each side at {now['confidence']:g}; holds together"
    sets = _sets(then, now, p.confidence)
    crossed = is_within_noise(sets)
    if crossed:
        interval = (min(interval[0], 0.0), max(interval[1], 0.0))
    details = {
        "of": p.of.name, "release": release.name, "compared_with_itself": bool(release.itself), "paired": paired, "groups_compared": groups,
        "then": _number(then), "now": _number(now), "sets": sets,
    }  # fmt: skip
    low, high = interval
    how = f"on the same examples, {groups} groups" if groups else "from an interval of each side"
    notes = [f"{p.of.name}: {_shown(then)} at the release ({release.name}), {_shown(now)} now"]
    notes += [f"difference {value:+.3f} [{low:+.3f}, {high:+.3f}], {how}", *([release.itself] if release.itself else [])]
    moved = {name: units for name, units in sets.items() if units["entered"] or units["left"]}
    notes += [f"{name.replace('_', ' ')}: {moved_text(units)}" for name, units in moved.items()]
    if crossed:
        notes.append("they only crossed the threshold, within noise: the interval assumes that both sets are fixed, so it is extended to 0")
    notes += [BY_NAME] if any(_no_head_stayed(now["sets"].get(name, ()), units) for name, units in sets.items()) else []
    unsettled = next((f"{when}: {number['unsettled']}" for when, number in (("now", now), ("then", then)) if number["unsettled"]), None)
    return Estimate(value, interval, now["n"], p.confidence, kind, "drift", {**details, "notes": notes}, unsettled, dict(side.payload))


def _sets(then: Mapping[str, Any], now: Mapping[str, Any], confidence: float) -> dict[str, Json]:
    """The units that entered or left each set; for the shared set, also whether their shares changed by more than noise."""
    sets: dict[str, Json] = {}
    for name, units in now["sets"].items():
        sets[name] = moved_units(then["sets"].get(name, []), units)
        if name in SHARED_SET_NAMES and "frequency" in then and "frequency" in now:
            moved = [*sets[name]["entered"], *sets[name]["left"]]
            sets[name] |= share_changes(moved, then["frequency"], now["frequency"], confidence)
    return sets


def _no_head_stayed(now: Sequence[str], moved: Mapping[str, Any]) -> bool:
    """Whether a set had heads and has heads, and no head stayed by name."""
    left, entered = ([unit for unit in moved[key] if not is_mlp(unit)] for key in ("left", "entered"))
    return bool(left) and bool(entered) and all(is_mlp(unit) or unit in entered for unit in now)


def _number(side: Mapping[str, Any]) -> Json:
    return {key: side[key] for key in ("estimate", "interval", "confidence", "n")}


def _shown(side: Mapping[str, Any]) -> str:
    return f"{side['estimate']:.3f} [{side['interval'][0]:.3f}, {side['interval'][1]:.3f}] (n = {side['n']}, {side['confidence']:.4g})"
