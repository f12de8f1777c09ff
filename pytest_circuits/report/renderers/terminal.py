"""The table at the end of a run, from the JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evidence import lines as circuits
from ..explain import bound_text

WARNINGS = 6  # that are shown
COLUMNS = ("claim", "model", "tasks", "property", "estimate", "interval", "n", "bound", "verdict")


def number(value: float | None) -> str:
    """Three decimals, or a dash."""
    return "—" if value is None else f"{value:.3f}"


def label(claim: Mapping[str, Any]) -> str:
    """The claim's name with the values of listed parameters, which tell apart tests of one claim: `sizes p=0.8`."""
    return " ".join([claim["claim"], *(part for part in claim["nodeid"].split("::")[2:] if "=" in part)])


def row(claim: Mapping[str, Any]) -> list[str]:
    """One line of the table."""
    interval = claim["interval"]
    expected = f" (expected {claim['expect']})"
    if claim["passed"]:
        expected = " (a study)" if claim["expect"] == "measured" else " (as expected)"
    verdict = claim["verdict"] + ("*" if claim["survives_holm"] is False else "") + ("" if claim["expect"] == "certified" else expected)
    return [
        label(claim), claim["model"], ", ".join(claim["tasks"]), claim["property"], number(claim["estimate"]),
        "—" if interval is None else f"[{interval[0]:.3f}, {interval[1]:.3f}]", str(claim["n"] or "—"),
        "all examples" if is_search(claim) else bound_text(claim["bound"]), verdict,
    ]  # fmt: skip


def table(content: Mapping[str, Any]) -> list[str]:
    """The verdict table, a line of totals, and what a reader has to know of many claims at once."""
    rows = [list(COLUMNS), *(row(c) for c in content["claims"])]
    widths = [max(len(r[i]) for r in rows) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    lines.insert(1, "  ".join("─" * w for w in widths))
    suite, cost = content["suite"], content["suite"]["cost"]
    counts = ", ".join(f"{n} {verdict}" for verdict, n in suite["verdicts"].items() if n)
    measured = f"{cost['forwards']} forwards, {cost['backwards']} backwards, {cost['cached']} stored measurements used"
    supported = circuits(content["circuits"])
    totals = ["", f"{counts}; {measured}; {suite['seconds']:.1f} s"]
    return [*lines, *([""] if supported else []), *supported, *totals, *footnotes(content), *_warnings(content["claims"])]


def is_search(claim: Mapping[str, Any]) -> bool:
    """Whether it is a claim about all examples, which one counterexample refutes, whatever the interval of the share says."""
    return "fails_at_most" in claim["details"] and claim["bound"] == {"at_least": 1.0}


def searches(claims: list[Mapping[str, Any]]) -> list[str]:
    """What a certificate of a search is worth."""
    found = [c for c in claims if is_search(c) and c["verdict"] == "certified"]
    if not found:
        return []
    told = ", ".join(f"{label(c)} {c['details']['fails_at_most']:.2%}" for c in found)
    return [f"All examples: certified means that a search found no counterexample, which is no proof. At most this many may fail: {told}"]


def few_groups(claims: list[Mapping[str, Any]]) -> list[str]:
    """A note on the tasks whose prompts are at most half as many groups: n counts prompts, an interval counts groups."""
    found: dict[str, str] = {}
    for claim in claims:
        details = claim["details"]
        about = details.get("examples")
        sizes = about if isinstance(about, Mapping) else dict.fromkeys(claim["tasks"][:1], details)
        for task, one in sizes.items():
            groups, prompts = (one.get("groups"), one.get("examples")) if isinstance(one, Mapping) else (None, None)
            if isinstance(groups, int) and isinstance(prompts, int) and 2 * groups <= prompts:
                found[task] = f"{task} {prompts} prompts in {groups} groups"
    if not found:
        return []
    return [f"n counts prompts; those about one entity or from one template count once for an interval: {', '.join(found.values())}"]


def _warnings(claims: list[Mapping[str, Any]]) -> list[str]:
    """What could be told before measuring, each once with the claims that it is about."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        for one in claim["warnings"]:
            found.setdefault(one, []).append(label(claim))
    made = [f"warning: {', '.join(dict.fromkeys(names))}: {told}" for told, names in found.items()]
    more = len(made) - WARNINGS
    return made if more <= 0 else [*made[:WARNINGS], f"{more} further warning{'s' * (more != 1)}: see the JSON report"]


def footnotes(content: Mapping[str, Any]) -> list[str]:
    """What n hides, refutations that do not survive the correction, and that certificates are not corrected."""
    suite, notes = content["suite"], [*few_groups(content["claims"]), *searches(content["claims"])]
    holm = suite["holm"]
    if holm["surviving"] < holm["refuted"]:
        notes.append(
            f"* refuted on its own, but not after Holm's correction for the {holm['claims']} claims of this run: with so many, chance "
            f"alone could refute a true one as clearly in more than {suite['alpha']:.0%} of runs. Its verdict and its test stay as they are"
        )
    if holm["claims"] > 1 and suite["verdicts"]["certified"]:
        notes.append(
            "Certified claims are not corrected for their number: the suite passes only if all hold. "
            "One quoted by itself is as sure as its own confidence says, and no surer for having been picked"
        )
    return notes
