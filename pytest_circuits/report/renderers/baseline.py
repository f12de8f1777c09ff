"""The comparison with the baseline as lines for a terminal, from the JSON document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..explain import headline

MOST = 12  # units named of a change
ADD = "--circuits-update-baseline=new"


def lines(content: Mapping[str, Any], adds: bool = False) -> list[str]:
    """What moved, claim by claim, in the order of the files; then counts. Empty without a baseline.

    `adds`: this run writes what is missing.
    """
    drift = content["suite"].get("drift")
    if drift is None:
        return []
    claims = [claim for claim in content["claims"] if claim.get("baseline")]
    found = [f"against {', '.join(drift['baselines'])}"]
    for claim in filter(_moved, claims):
        found += _told(claim)
    return [*found, *_counts(drift, adds)]


def _moved(claim: Mapping[str, Any]) -> bool:
    told = claim["baseline"]
    if told["status"] == "missing":
        return False
    if told["inconsistent"]:
        return True
    if told["status"] == "judged":
        return bool(claim["verdict"] != "certified")
    if told["status"] != "compared":
        return True
    changed = told["then"]["verdict"] != claim["verdict"]
    return bool(changed or told["circuits"] or told["difference"]["beyond_noise"])


def _told(claim: Mapping[str, Any]) -> list[str]:
    told, then, gap = claim["baseline"], claim["baseline"]["then"], claim["baseline"]["difference"]
    name = claim["nodeid"].partition("::")[2]
    wrong = [f"    {told['inconsistent']}"] if told["inconsistent"] else []
    if told["status"] == "judged":
        return [f"  {name}: {headline(claim)}", *wrong]
    now = "not measured" if claim["estimate"] is None else f"{claim['estimate']:.3f}"
    verdict = claim["verdict"] if then["verdict"] == claim["verdict"] else f"{then['verdict']} → {claim['verdict']}"
    found = [f"  {name}: {claim['property']} {then['estimate']:.3f} → {now}; {verdict}", *wrong]
    if gap is not None:
        low, high = gap["interval"]
        noise = "larger than noise" if gap["beyond_noise"] else "within noise"
        how = "same examples" if gap["how"] == "paired" else "from both intervals"
        but = "" if gap["beyond_noise"] else _moved_for_sure(told["circuits"])
        found.append(f"    difference {gap['value']:+.3f} [{low:+.3f}, {high:+.3f}], {noise} ({how}){but}")
    for which, moved in told["circuits"].items():
        parts = [f"{_units(moved, moved[key])} {key}" for key in ("entered", "left") if moved[key]]
        found.append(f"    {which.replace('_', ' ')}: {'; '.join(parts)}")
    if told["changed"]:
        found.append(f"    cannot be compared: {'; '.join(told['changed'])}")
    elif told["status"] == "unmeasured":
        found.append(f"    {claim['reason'].partition(chr(10))[0]}")
    return found


def _moved_for_sure(circuits: Mapping[str, Any]) -> str:
    """Units that moved by more than noise, beside a number that did not: an interval of 0 or 1 cannot tell, and the circuit does."""
    sure = [(way, [u for u in one[way] if u in one.get("beyond_noise", ())]) for one in circuits.values() for way in ("entered", "left")]
    parts = [f"{', '.join(units[:MOST])}{f' and {len(units) - MOST} more' * (len(units) > MOST)} {way}" for way, units in sure if units]
    return f", but the circuit moved by more than noise: {'; '.join(parts)}" if parts else ""


def _units(moved: Mapping[str, Any], names: list[str]) -> str:
    """Names, with their shares of the circuits then and now; a unit that only crossed the threshold is told as noise."""
    shown = []
    for unit in names[:MOST]:
        shares = moved.get("shares", {}).get(unit)
        noise = "" if shares is None or unit in moved["beyond_noise"] else ", within noise"
        shown.append(unit if shares is None else f"{unit} ({shares[0]:.0%} → {shares[1]:.0%} of circuits{noise})")
    return ", ".join(shown) + (f" and {len(names) - MOST} more" if len(names) > MOST else "")


def _counts(drift: Mapping[str, Any], adds: bool) -> list[str]:
    held = drift["compared"] + drift["incomparable"] + drift["unmeasured"]
    noise, verdicts, circuits = (len(drift[key]) for key in ("beyond_noise", "verdict_changed", "circuit_changed"))
    found = []
    if held:
        same = "; the model is the same" if drift["same_model"] else ""
        out = [f"{drift[key]} {told}" for key, told in (("incomparable", "not comparable"), ("unmeasured", "not measured")) if drift[key]]
        found.append(
            f"{held} claim{'s' * (held != 1)} held against the baseline: {noise} moved by more than noise, {verdicts} with another "
            f"verdict, {circuits} with another circuit{''.join(f', {one}' for one in out)}{same}"
        )
    if drift["verdicts_on_drift"]:
        found.append(f"claims about drift: {', '.join(f'{n} {verdict}' for verdict, n in drift['verdicts_on_drift'].items())}")
    if drift["missing"]:
        missing = "were not in the baseline before this run" if adds else f"are not in the baseline; {ADD} adds them"
        found.append(f"{drift['missing']} claims {missing}")
    if drift["inconsistent"]:
        found.append(f"entries that cannot be what was measured: {len(drift['inconsistent'])}; restore the file from version control")
    if noise:
        found.append(
            "Each difference is held against noise by itself, at its claim's own confidence: of many claims that did not move some will "
            "seem to (one in twenty at 95%). A claim about drift states a margin and gets a verdict"
        )
    return found
