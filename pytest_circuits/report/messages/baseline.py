"""The comparison with the baseline: what moved, claim by claim, and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model import BaselineComparison, CircuitChange, ClaimRecord, Difference, DriftSummary
from .claims import first_line, headline

SHOWN_UNITS = 12
ADD_OPTION = "--circuits-update-baseline=new"


def heading(baselines: Sequence[str]) -> str:
    """Which files this run is compared with."""
    return f"against {', '.join(baselines)}"


def judged(claim: ClaimRecord, comparison: BaselineComparison) -> list[str]:
    """A claim about drift, which has a verdict of its own."""
    return [f"  {_name(claim)}: {headline(claim)}", *_inconsistent(comparison)]


def moved(claim: ClaimRecord, comparison: BaselineComparison) -> list[str]:
    """A claim then and now: its number and verdict, the difference, its circuits, or why there is no comparison."""
    then = comparison.then
    assert then is not None
    now = "not measured" if claim.estimate is None else f"{claim.estimate:.3f}"
    verdict = claim.verdict if then.verdict == claim.verdict else f"{then.verdict} → {claim.verdict}"
    lines = [f"  {_name(claim)}: {claim.property} {then.estimate:.3f} → {now}; {verdict}", *_inconsistent(comparison)]
    if comparison.difference is not None:
        lines.append(f"    {_difference(comparison.difference, comparison.circuits)}")
    lines += [f"    {_circuit(name, change)}" for name, change in comparison.circuits.items()]
    if comparison.changed:
        lines.append(f"    cannot be compared: {'; '.join(comparison.changed)}")
    elif comparison.status == "unmeasured":
        lines.append(f"    {first_line(claim.reason)}")
    return lines


def _name(claim: ClaimRecord) -> str:
    return claim.nodeid.partition("::")[2]


def _inconsistent(comparison: BaselineComparison) -> list[str]:
    return [f"    {comparison.inconsistent}"] if comparison.inconsistent else []


def _difference(difference: Difference, circuits: Mapping[str, CircuitChange]) -> str:
    low, high = difference.interval
    noise = "larger than noise" if difference.beyond_noise else "within noise"
    how = "same examples" if difference.how == "paired" else "from both intervals"
    but = "" if difference.beyond_noise else _certain_moves(circuits)
    return f"difference {difference.value:+.3f} [{low:+.3f}, {high:+.3f}], {noise} ({how}){but}"


def _certain_moves(circuits: Mapping[str, CircuitChange]) -> str:
    """Units that moved by more than noise although the number did not: the circuit shows what an interval of 0 or 1 cannot."""
    parts = []
    for change in circuits.values():
        for units, way in ((change.entered, "entered"), (change.left, "left")):
            certain = [unit for unit in units if unit in change.beyond_noise]
            if certain:
                parts.append(f"{_capped(certain)} {way}")
    return f", but the circuit moved by more than noise: {'; '.join(parts)}" if parts else ""


def _circuit(name: str, change: CircuitChange) -> str:
    parts = []
    for units, way in ((change.entered, "entered"), (change.left, "left")):
        if units:
            parts.append(f"{_capped([_unit(unit, change) for unit in units])} {way}")
    return f"{name.replace('_', ' ')}: {'; '.join(parts)}"


def _unit(unit: str, change: CircuitChange) -> str:
    """A unit with its shares of the circuits then and now; one that only crossed the threshold is marked as noise."""
    if unit not in change.shares:
        return unit
    then, now = change.shares[unit]
    noise = "" if unit in change.beyond_noise else ", within noise"
    return f"{unit} ({then:.0%} → {now:.0%} of circuits{noise})"


def _capped(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_UNITS} more" if len(names) > SHOWN_UNITS else ""
    return ", ".join(names[:SHOWN_UNITS]) + more


def counts(drift: DriftSummary, adds: bool) -> list[str]:
    """Counts over all claims; `adds`: this run writes the entries that are missing."""
    held = drift.compared + drift.incomparable + drift.unmeasured
    lines = []
    if held:
        out = [f", {count} {what}" for count, what in ((drift.incomparable, "not comparable"), (drift.unmeasured, "not measured")) if count]
        same = "; the model is the same" if drift.same_model else ""
        lines.append(
            f"{held} claim{'s' * (held != 1)} compared with the baseline: {len(drift.beyond_noise)} moved by more than noise, "
            f"{len(drift.verdict_changed)} with another verdict, {len(drift.circuit_changed)} with another circuit{''.join(out)}{same}"
        )
    if drift.verdicts_on_drift:
        lines.append(f"claims about drift: {', '.join(f'{count} {verdict}' for verdict, count in drift.verdicts_on_drift.items())}")
    if drift.missing:
        was, is_, them = ("was", "is", "it") if drift.missing == 1 else ("were", "are", "them")
        missing = f"{was} not in the baseline before this run" if adds else f"{is_} not in the baseline; {ADD_OPTION} adds {them}"
        lines.append(f"{drift.missing} claim{'s' * (drift.missing != 1)} {missing}")
    if drift.inconsistent:
        lines.append(f"entries that cannot be what was measured: {len(drift.inconsistent)}; restore the file from version control")
    if drift.beyond_noise:
        lines.append(
            "Each difference is compared with noise by itself, at its claim's own confidence: of many claims that did not move, some will "
            "seem to (one in twenty at 95%). A claim about drift states a margin and gets a verdict"
        )
    return lines


def changed_number(then: str, now: str) -> str:
    """Why an entry cannot be what was measured: the same measurement gives another number."""
    return (
        f"the baseline says {then}, the same measurement now gives {now}, although weights, data and versions are equal: "
        "was the file edited, or measured on another kind of machine?"
    )


def self_contradiction(why: str) -> str:
    """Why an entry cannot be what was measured: its own values contradict it."""
    return f"the baseline's entry contradicts itself: {why}: was the file edited?"
