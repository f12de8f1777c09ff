"""A claim then and now: the `baseline` of each claim in the JSON document, and `suite.drift` over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import hypot
from typing import Any

from ..properties.payload import SHARED, group_values, moved_units, only_crossed, pairs_with, share_changes
from ..report.document import tally
from .consistency import contradiction
from .entries import Entry, data_changes, definition_changes, version_changes

STATUSES = ("compared", "judged", "missing", "incomparable", "unmeasured")
DRIFT = "drift"  # claims that are themselves a difference from the baseline


def comparison(then: Entry | None, now: Entry | None, confidence: float, path: str) -> dict[str, Any]:
    """What became of one claim. `now` is None where it could not be measured, `then` where the baseline has no entry.

    `status`: compared, missing, unmeasured, incomparable (with the reasons in `changed`), or judged (a claim about drift).
    `difference` is now − then with an interval: on the same examples where both sides kept their values (`how: paired`), else from
    the two intervals (`independent`: their distances in quadrature, too wide for two models on the same prompts).
    `beyond_noise`: the interval excludes 0. `inconsistent`: why the entry cannot be what was measured (`consistency.contradiction`).
    """
    found: dict[str, Any] = {
        "path": path, "status": "missing", "then": None, "difference": None, "changed": [], "circuits": {}, "inconsistent": None
    }  # fmt: skip
    if then is None:
        return found
    found["then"] = {key: then[key] for key in ("estimate", "interval", "n", "verdict")}
    if now is None:
        return {**found, "status": "unmeasured"}
    found["inconsistent"] = contradiction(then, now)
    if then["property"] == now["property"] == DRIFT:  # itself a difference from this baseline, and judged as one
        return {**found, "status": "judged"}
    found["same_model"] = then["fingerprints"]["weights"] == now["fingerprints"]["weights"]
    found["changed"] = definition_changes(then, now) + data_changes(then, now) + version_changes(then, now["versions"])
    if found["changed"]:
        return {**found, "status": "incomparable"}
    found["circuits"] = moved(then, now, confidence)
    found["difference"] = difference(then, now, confidence, only_crossed(found["circuits"]))
    return {**found, "status": "compared"}


def difference(then: Entry, now: Entry, confidence: float, crossed: bool = False) -> dict[str, Any]:
    """Now minus then, with an interval, and whether it is more than noise.

    `crossed`: the sets differ only by units that crossed the threshold within noise. The interval, which takes both sets as given, is
    then extended to 0, since other discovery examples could have given both models one set.
    """
    value = now["estimate"] - then["estimate"]
    if pairs_with(then["kept"], now["kept"]):
        from ..stats.paired import paired_difference

        sides = now["kept"], then["kept"]
        draws = [(float(one["draws"][0]), int(one["draws"][1])) for one in sides if "draws" in one]
        low, high = map(float, sides[0]["range"])
        value, interval = paired_difference(group_values(sides[0]), group_values(sides[1]), confidence, low, high, draws)
        how = "paired"
    else:
        (a, b), (c, d) = now["interval"], then["interval"]
        down, up = hypot(now["estimate"] - a, d - then["estimate"]), hypot(b - now["estimate"], then["estimate"] - c)
        interval, how = (value - down, value + up), "independent"
    if crossed:
        interval = (min(interval[0], 0.0), max(interval[1], 0.0))
    return {"value": value, "interval": list(interval), "how": how, "beyond_noise": bool(interval[0] > 0 or interval[1] < 0)}


def moved(then: Entry, now: Entry, confidence: float) -> dict[str, dict[str, Any]]:
    """Units that entered or left each set that both sides name, sets that are the same left out.

    Where both kept in what share of the circuits a unit is, also whether that share moved by more than noise (`kept.share_changes`).
    """
    found: dict[str, dict[str, Any]] = {}
    for name, units in now["circuits"].items():
        changed: dict[str, Any] = moved_units(then["circuits"].get(name, units), units)
        if changed["entered"] or changed["left"]:
            found[name] = changed
            if name in SHARED and "frequency" in then["kept"] and "frequency" in now["kept"]:
                every = [*changed["entered"], *changed["left"]]
                found[name] |= share_changes(every, then["kept"]["frequency"], now["kept"]["frequency"], confidence)
    return found


def summary(claims: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Counts, and the node ids of claims that moved; None where no claim was held against a baseline."""
    told = [(claim, claim["baseline"]) for claim in claims if claim.get("baseline")]
    if not told:
        return None
    status = {name: sum(b["status"] == name for _, b in told) for name in STATUSES}
    compared = [(c, b) for c, b in told if b["status"] == "compared"]
    changed = [c["nodeid"] for c, b in told if b["status"] in ("compared", "unmeasured") and b["then"]["verdict"] != c["verdict"]]
    return {
        "baselines": sorted({b["path"] for _, b in told}),
        **status,
        "same_model": bool(compared) and all(b["same_model"] for _, b in compared),
        "beyond_noise": [c["nodeid"] for c, b in compared if b["difference"]["beyond_noise"]],
        "verdict_changed": changed,
        "inconsistent": [c["nodeid"] for c, b in told if b["inconsistent"]],
        "circuit_changed": [c["nodeid"] for c, b in compared if b["circuits"]],
        "verdicts_on_drift": {v: n for v, n in tally(c for c, _ in told if c["property"] == DRIFT).items() if n},
    }
