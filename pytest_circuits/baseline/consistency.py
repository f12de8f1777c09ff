"""Inconsistent entries: those that a new measurement of the same model, or the entry itself, contradicts."""

from __future__ import annotations

from math import isclose
from typing import Any

from ..properties.payload import inconsistency
from ..report.messages.baseline import changed_number, self_contradiction
from .entries import Entry, data_changes, definition_changes

DIGITS = 1e-5  # of a number that is kept with six


def contradiction(then: Entry, now: Entry) -> str | None:
    """Why an entry is not what was measured, in words; None where nothing speaks against it.

    Either its estimate is not the mean of the values that it holds, or the same measurement, of the same weights on the same token ids in
    the same precision by the same versions of everything, gives another number now. A claim about drift is about two models, so of
    its entry only what was kept of the one is looked at.
    """
    of_values = inconsistency(then, then["kept"]) or inconsistency(then["kept"].get("of", {}), then["kept"].get("of", {}))
    if of_values:
        return self_contradiction(of_values)
    if not _same_measurement(then, now):
        return None
    difference = _first_difference(then, now)
    return None if difference is None else changed_number(*difference)


def _same_measurement(then: Entry, now: Entry) -> bool:
    weights = then["fingerprints"]["weights"], now["fingerprints"]["weights"]
    same = weights[0] is not None and weights[0] == weights[1] and then["versions"] == now["versions"]
    return same and not definition_changes(then, now) and not data_changes(then, now)


def _first_difference(then: Entry, now: Entry) -> tuple[str, str] | None:
    """The first thing that differs, then and now."""
    if "of" in then["kept"] or "members" in then["kept"]:
        before, after = then["kept"].get("of", {}), now["kept"].get("of", {})
        circuits = then["kept"].get("members"), now["kept"].get("members")
        if circuits[0] != circuits[1]:
            return "other circuits", "those of this run"
    else:
        before, after = then, now
    for key in ("estimate", "interval", "n"):
        if key in before and key in after and not _alike(before[key], after[key]):
            what = "" if key == "estimate" else f"{key} "
            return f"{what}{_shown(before[key])}", _shown(after[key])
    if before is then and then["bound"] == now["bound"] and then["verdict"] != now["verdict"]:
        return then["verdict"], now["verdict"]
    return None


def _alike(then: Any, now: Any) -> bool:
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(_alike, then, now))
    return isclose(then, now, rel_tol=DIGITS, abs_tol=DIGITS)


def _shown(value: Any) -> str:
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else f"{value:.6g}"
