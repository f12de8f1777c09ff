"""The comparison with the baseline as lines for a terminal, from the JSON document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 12  # units named of a change


def lines(content: Mapping[str, Any]) -> list[str]:
    """What moved, claim by claim, those that moved most visibly first in their own order; then counts. Empty without a baseline."""
    drift = content["suite"].get("drift")
    if drift is None:
        return []
    claims = [claim for claim in content["claims"] if claim.get("baseline")]
    shown = [claim for claim in claims if _moved(claim)]
    found = [f"against {', '.join(drift['baselines'])}"]
    for claim in shown:
        found += _told(claim)
    return [*found, *_counts(drift, len(shown))]


def _moved(claim: Mapping[str, Any]) -> bool:
    told = claim["baseline"]
    if told["status"] == "missing":
        return False
    if told["status"] != "compared":
        return True
    changed = told["then"]["verdict"] != claim["verdict"]
    return changed or bool(told["circuits"]) or bool(told["difference"] and told["difference"]["beyond_noise"])


def _told(claim: Mapping[str, Any]) -> list[str]:
    told, then, gap = claim["baseline"], claim["baseline"]["then"], claim["baseline"]["difference"]
    name = claim["nodeid"].partition("::")[2]
    now = "not measured" if claim["estimate"] is None else f"{claim['estimate']:.3f}"
    verdict = claim["verdict"] if then["verdict"] == claim["verdict"] else f"{then['verdict']} → {claim['verdict']}"
    found = [f"  {name}: {claim['property']} {then['estimate']:.3f} → {now}; {verdict}"]
    if gap is not None:
        low, high = gap["interval"]
        noise = "larger than noise" if gap["beyond_noise"] else "within noise"
        how = "same examples" if gap["how"] == "paired" else "from both intervals"
        found.append(f"    difference {gap['value']:+.3f} [{low:+.3f}, {high:+.3f}], {noise} ({how})")
    for which, moved in told["circuits"].items():
        parts = [f"{_units(moved[key])} {key}" for key in ("entered", "left") if moved[key]]
        found.append(f"    {which.replace('_', ' ')}: {'; '.join(parts)}")
    if told["changed"]:
        found.append(f"    cannot be compared: {'; '.join(told['changed'])}")
    elif told["status"] == "unmeasured":
        found.append(f"    {claim['reason'].partition(chr(10))[0]}")
    return found


def _units(names: list[str]) -> str:
    return ", ".join(names[:MOST]) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def _counts(drift: Mapping[str, Any], shown: int) -> list[str]:
    held = drift["compared"] + drift["incomparable"] + drift["unmeasured"]
    still = held - shown
    same = " (the model is the same)" if drift["same_model"] else ""
    noise = len(drift["beyond_noise"])
    found = [
        f"{held} claims held against the baseline: {noise} moved by more than noise, {len(drift['verdict_changed'])} with another verdict, "
        f"{len(drift['circuit_changed'])} with another circuit, {still} as before{same}"
    ]
    if drift["missing"]:
        found.append(f"{drift['missing']} claims are not in the baseline; --circuits-update-baseline=new adds them")
    if noise:
        found.append(
            f"Each difference is held against noise at the claim's own confidence and by itself: of {drift['compared']} claims that did "
            "not move about one in twenty would seem to at 95%. A claim about drift (property drift) states a margin and gets a verdict"
        )
    return found
