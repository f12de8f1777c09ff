"""Comparisons of claims with their baseline entries: the `baseline` of each claim in the JSON report, and `suite.drift`."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot
from typing import Any, Literal, get_args

from ..properties.payload import SHARED_SET_NAMES, group_values, is_paired, is_within_noise, moved_units, share_changes
from ..report.build import tally
from ..report.model import BaselineComparison, BaselineResult, CircuitChange, ClaimRecord, Difference, DriftSummary
from ..report.model.baseline import Status
from .consistency import contradiction
from .entries import Entry, data_changes, definition_changes, version_changes

How = Literal["paired", "independent"]
Interval = tuple[float, float]
DRIFT = "drift"  # claims that are themselves a difference from the baseline


def comparison(then: Entry | None, now: Entry | None, confidence: float | None, path: str) -> BaselineComparison:
    """Compare a claim with its entry. `now` is None if the claim could not be measured, `then` if the baseline has no entry.

    `status`: compared, missing, unmeasured, incomparable (with the reasons in `changed`), or judged (a claim about drift).
    `difference` is now − then with an interval: on the same examples where both sides kept their values (`how: paired`), else from
    the two intervals (`independent`: their distances in quadrature, too wide for two models on the same prompts).
    `beyond_noise`: the interval excludes 0. `inconsistent`: why the entry cannot be what was measured (`consistency.contradiction`).
    Raises `ValueError` for entries that cannot be compared, and for a claim without a confidence.
    """
    facts: dict[str, Any] = {
        "path": path, "status": "missing", "then": None, "difference": None, "changed": (), "circuits": {}, "inconsistent": None
    }  # fmt: skip
    if then is None:
        return BaselineComparison(**facts)
    facts["then"] = BaselineResult.model_validate({key: then[key] for key in ("estimate", "interval", "n", "verdict")})
    if now is None:
        return BaselineComparison(**facts | {"status": "unmeasured"})
    facts["inconsistent"] = contradiction(then, now)
    if then["property"] == now["property"] == DRIFT:  # itself a difference from this baseline, with a verdict of its own
        return BaselineComparison(**facts | {"status": "judged"})
    facts["same_model"] = then["fingerprints"]["weights"] == now["fingerprints"]["weights"]
    facts["changed"] = (*definition_changes(then, now), *data_changes(then, now), *version_changes(then, now["versions"]))
    if facts["changed"]:
        return BaselineComparison(**facts | {"status": "incomparable"})
    if confidence is None:
        raise ValueError("the claim has no confidence to compare at")
    changes = moved(then, now, confidence)
    facts["circuits"] = {name: CircuitChange(**change) for name, change in changes.items()}
    facts["difference"] = difference(then, now, confidence, is_within_noise(changes))
    return BaselineComparison(**facts | {"status": "compared"})


def difference(then: Entry, now: Entry, confidence: float, crossed: bool = False) -> Difference:
    """Now minus then, with an interval, and whether the interval excludes 0.

    `crossed`: the sets differ only by units that crossed the threshold within noise. The interval, which takes both sets as given, is
    then extended to 0, since other discovery examples could have given both models one set.
    """
    value, interval, how = signed_difference(then, now, confidence, crossed)
    return Difference(value=value, interval=interval, how=how, beyond_noise=is_beyond_noise(interval))


def signed_difference(then: Entry, now: Entry, confidence: float, crossed: bool = False) -> tuple[float, Interval, How]:
    """Value and interval of now minus then, and how the interval was made; as for `difference`."""
    value = now["estimate"] - then["estimate"]
    how: How
    if is_paired(then["kept"], now["kept"]):
        from ..stats.paired_difference import paired_difference

        sides = now["kept"], then["kept"]
        draws = [(float(side["draws"][0]), int(side["draws"][1])) for side in sides if "draws" in side]
        low, high = map(float, sides[0]["range"])
        value, interval = paired_difference(group_values(sides[0]), group_values(sides[1]), confidence, low, high, draws)
        how = "paired"
    else:
        (a, b), (c, d) = now["interval"], then["interval"]
        down, up = hypot(now["estimate"] - a, d - then["estimate"]), hypot(b - now["estimate"], then["estimate"] - c)
        interval, how = (value - down, value + up), "independent"
    if crossed:
        interval = (min(interval[0], 0.0), max(interval[1], 0.0))
    return value, interval, how


def is_beyond_noise(interval: Interval) -> bool:
    """Whether the interval of a difference excludes 0."""
    return interval[0] > 0 or interval[1] < 0


def moved(then: Entry, now: Entry, confidence: float) -> dict[str, dict[str, Any]]:
    """Units that entered or left each set that both sides name; unchanged sets are left out.

    Where both kept in what share of the circuits a unit is, also whether that share moved by more than noise (`payload.share_changes`).
    """
    changes: dict[str, dict[str, Any]] = {}
    for name, units in now["circuits"].items():
        change: dict[str, Any] = moved_units(then["circuits"].get(name, units), units)
        if change["entered"] or change["left"]:
            changes[name] = change
            if name in SHARED_SET_NAMES and "frequency" in then["kept"] and "frequency" in now["kept"]:
                units_moved = [*change["entered"], *change["left"]]
                changes[name] |= share_changes(units_moved, then["kept"]["frequency"], now["kept"]["frequency"], confidence)
    return changes


def summarize(claims: Iterable[ClaimRecord]) -> DriftSummary | None:
    """Counts, and the node ids of claims that moved; None where no claim was compared with a baseline."""
    pairs = [(claim, claim.baseline) for claim in claims if claim.baseline is not None]
    if not pairs:
        return None
    status = {name: sum(comparison.status == name for _, comparison in pairs) for name in get_args(Status)}
    compared = [(claim, comparison) for claim, comparison in pairs if comparison.status == "compared"]
    on_drift = tally(claim for claim, _ in pairs if claim.property == DRIFT)
    return DriftSummary(
        baselines=tuple(sorted({comparison.path for _, comparison in pairs})),
        **status,
        same_model=bool(compared) and all(comparison.same_model for _, comparison in compared),
        beyond_noise=tuple(claim.nodeid for claim, c in compared if c.difference is not None and c.difference.beyond_noise),
        verdict_changed=tuple(
            claim.nodeid
            for claim, c in pairs
            if c.status in ("compared", "unmeasured") and c.then is not None and c.then.verdict != claim.verdict
        ),
        inconsistent=tuple(claim.nodeid for claim, c in pairs if c.inconsistent),
        circuit_changed=tuple(claim.nodeid for claim, c in compared if c.circuits),
        verdicts_on_drift={verdict: count for verdict, count in on_drift.items() if count},
    )
