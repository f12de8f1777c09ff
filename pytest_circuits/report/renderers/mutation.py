"""Mutation testing as lines for a terminal, from the JSON document alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST = 8  # claims named in a line


def lines(content: Mapping[str, Any]) -> list[str]:
    """For each spec and model: mutants with the claims that caught them, survivors explained, idle claims; then the score."""
    found = [line for spec in content["specs"] for line in _spec(spec)]
    return [*found, *content["notes"], *totals(content)]


def totals(content: Mapping[str, Any]) -> list[str]:
    """The score, and whether it is high enough."""
    score, threshold = content["score"], content["threshold"]
    if score is None:
        told = "mutation score: none, since no mutant counts"
    else:
        parts = (("inconclusive_only", "inconclusive"), ("invalid_only", "invalid"))
        only = [f"{content[key]} only by {what} claims" for key, what in parts if content[key]]
        told = f"mutation score: {content['noticed']} of {content['counted']} mutants noticed = {score:.0%}"
        told += f" ({', '.join(only)})" if only else ""
    found = [f"{told}; {content['seconds']:.1f} s"]
    if threshold is not None and (score is None or score < threshold):
        found.append(f"FAILED: --circuits-mutate-score asks for {threshold:.0%}")
    if content["unmeasured"]:
        n = content["unmeasured"]
        found.append(f"FAILED: {n} mutant{'s were' if n > 1 else ' was'} not measured, which --circuits-offline forbids; run once without")
    return found


def _spec(spec: Mapping[str, Any]) -> Iterator[str]:
    yield f"{spec['file']}, model {spec['model']}"
    if spec["problem"]:
        yield f"  no mutants: {spec['problem']}"
    rows = [(m["name"], m["status"], caught_by(m, spec)) for m in spec["mutants"] if m["status"] in ("noticed", "survived", "equivalent")]
    if rows:
        widths = [max(len(row[i]) for row in [("mutant", "", ""), *rows]) for i in (0, 1)]
        yield f"  {'mutant'.ljust(widths[0])}  {''.ljust(widths[1])}  noticed by"
        for name, status, by in rows:
            yield f"  {name.ljust(widths[0])}  {status.ljust(widths[1])}  {by}".rstrip()
    for m in spec["mutants"]:
        if m["status"] in ("survived", "equivalent"):
            yield from (f"  {m['name']}: {reason}" for reason in m["reasons"])
    for m in spec["mutants"]:
        if m["status"].startswith("not "):
            yield f"  {m['name']}: {m['status']}, {m['reasons'][0]}"
    idle = [c for c in spec["claims"] if not c["caught"]]
    if idle and rows:
        yield f"  never caught a mutant, so these may be unable to fail: {named([c['claim'] for c in idle if not c['study']]) or 'none'}"
        studies = [c["claim"] for c in idle if c["study"]]
        if studies:
            yield f"  studies, which only notice what makes them invalid: {named(studies)}"
    for reason in dict.fromkeys(one["reason"] for one in spec["left_out"]):
        yield f"  left out, {reason}: {named([one['claim'] for one in spec['left_out'] if one['reason'] == reason])}"
    if spec["score"] is not None:
        yield f"  {spec['noticed']} of {spec['counted']} noticed = {spec['score']:.0%}"


def caught_by(mutant: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """`invalid: a, b; refuted: c`, the claims under the verdict that gave the mutant away."""
    names = {c["nodeid"]: c["claim"] for c in spec["claims"]}
    parts = []
    for how in ("refuted", "certified", "invalid", "inconclusive"):
        these = [names[nodeid] for nodeid, verdict in mutant["caught_by"].items() if verdict == how]
        if these:
            parts.append(f"{how}: {named(these)}")
    return "; ".join(parts)


def named(claims: Sequence[str]) -> str:
    """Names, the first few of many."""
    rest = len(claims) - MOST
    return ", ".join(claims[:MOST]) + (f" and {rest} more" if rest > 0 else "")
