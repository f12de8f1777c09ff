"""One claim explained: its headline, its place, what it was compared with, how to rerun it; and the words of its test."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from ..model import ClaimRecord, Look, StatedBound, notes
from . import verdicts

STUDY, EXPECTED = "a study", "as expected"


def bound_text(bound: StatedBound) -> str:
    """`at least 0.4`, `within [0.9, 1.1]`."""
    return verdicts.bound_text(bound.as_json())


def label(claim: ClaimRecord) -> str:
    """The claim's name with the values of listed parameters, which distinguish the tests of one claim: `sizes p=0.8`."""
    return " ".join([claim.claim, *(part for part in claim.nodeid.split("::")[2:] if "=" in part)])


def headline(claim: ClaimRecord) -> str:
    """One line: `refuted: reuse(ioi) = 0.443 [0.381, 0.506], should be at least 0.9`; of an invalid claim, the reason."""
    measured = f"{claim.property}({', '.join(claim.tasks)})" if claim.tasks else claim.property
    unexpected = claim.expect != "certified" and not claim.passed
    expected = f"; the claim expects {claim.expect}" if unexpected else ""
    if claim.estimate is None or claim.interval is None:
        return f"{claim.verdict}: {measured}: {first_line(claim.reason)}{expected}"
    low, high = claim.interval
    link = "is" if claim.verdict == "certified" else "should be"
    corrected = " (not after Holm's correction)" if claim.survives_holm is False else ""
    return (
        f"{claim.verdict}: {measured} = {claim.estimate:.3f} [{low:.3f}, {high:.3f}], {link} {bound_text(claim.bound)}{corrected}{expected}"
    )


def first_line(text: str) -> str:
    """The first line of a text that may have several."""
    return text.partition("\n")[0]


def explanation(claim: ClaimRecord, nodeid: str) -> list[str]:
    """The headline; then, indented, the claim and its place, what was compared with what, and how to rerun it.

    `nodeid` is the node id as it has to be typed.
    """
    body = [f"{nodeid.partition('::')[0]}:{claim.line} claim {claim.claim!r}, model {claim.model!r}"]
    if claim.description:
        body.append(claim.description)
    if claim.estimate is not None:
        body.append(f"{claim.reason} (n = {claim.n} examples{_sample(claim)})")
    elif "\n" in claim.reason:
        body += claim.reason.split("\n")
    body += [*strength(claim), *looks(claim.looks, claim.looks_planned), *(f"note: {warning}" for warning in claim.warnings)]
    body += notes(claim)
    seed = f" --circuits-seed={claim.seed}" if claim.seed else ""
    body.append(f"rerun: pytest {quote(nodeid)}{seed}")
    return [headline(claim), *(f"  {line}" for line in body)]


def _sample(claim: ClaimRecord) -> str:
    """Which examples the estimate is from."""
    if "split_seed" not in claim.parameters:
        return ""
    in_sample = claim.parameters["split"] == "in_sample"
    return ", in sample" if in_sample else f", split by seed {claim.parameters['split_seed']}"


def strength(claim: ClaimRecord) -> list[str]:
    """How sure a refutation is; once the whole suite is known, also whether it stands among all its claims."""
    level = claim.refuted_at
    if level is None:
        return []
    lines = [f"it would still be refuted at {100 * (1 - level):.6g}% confidence (error level {level:g})"]
    if claim.survives_holm is False:
        lines.append("it does not survive Holm's correction: with this many claims, chance alone could refute a true one as clearly")
    return lines


def looks(taken: Sequence[Look], planned: int) -> list[str]:
    """How the number of examples of a claim with `max_n` was raised step by step."""
    if planned == 1 or not taken:
        return []
    steps = "; ".join(f"n = {look.n}: {look.estimate:.3f} [{look.interval[0]:.3f}, {look.interval[1]:.3f}]" for look in taken)
    return [f"looked {len(taken)} of {planned} times, with intervals wide enough for all planned looks to hold together: {steps}"]


def expected_verdict(claim: ClaimRecord) -> str:
    """`(a study)`, `(as expected)` or `(expected refuted)`; empty for a claim that is expected to be certified."""
    if claim.expect == "certified":
        return ""
    if not claim.passed:
        return f"(expected {claim.expect})"
    return f"({STUDY})" if claim.expect == "measured" else f"({EXPECTED})"


def passed_word(claim: ClaimRecord) -> str:
    """Pytest's word for a test that passed: CERTIFIED, REFUTED (as expected), REFUTED (a study)."""
    how = expected_verdict(claim) if claim.passed and claim.verdict != "certified" else ""
    return f"{claim.verdict.upper()} {how}".rstrip()


def failed_word(claim: ClaimRecord) -> str:
    """Pytest's word for a test that failed: REFUTED, CERTIFIED (expected refuted)."""
    expected = "" if claim.expect == "certified" else f" (expected {claim.expect})"
    return claim.verdict.upper() + expected


def skipped(claim: ClaimRecord) -> str:
    """Why an inconclusive claim was skipped."""
    return f"inconclusive: {claim.reason}"
