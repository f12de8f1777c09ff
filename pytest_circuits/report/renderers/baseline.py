"""The comparison with the baseline: what moved, claim by claim, then counts."""

from __future__ import annotations

from collections.abc import Iterator

from ..messages import baseline as messages
from ..model import BaselineComparison, ClaimRecord, Report
from . import RunContext, Section

FACTS = {"purpose": "summary"}


class BaselineRenderer:
    """The section `circuits against the baseline`, and what was written to baselines."""

    def sections(self, report: Report, context: RunContext) -> Iterator[Section]:
        """One section; none without a baseline."""
        comparison = lines(report, context.adds_to_baseline)
        if comparison:
            yield Section("circuits against the baseline", tuple(comparison))
        if context.baseline_messages:
            yield Section("", context.baseline_messages)


def lines(report: Report, adds: bool = False) -> list[str]:
    """What moved, in the order of the files; then counts. `adds`: this run writes the entries that are missing."""
    drift = report.suite.drift
    if drift is None:
        return []
    text = [messages.heading(drift.baselines)]
    for claim in report.claims:
        comparison = claim.baseline
        if comparison is not None and is_notable(claim, comparison):
            text += messages.judged(claim, comparison) if comparison.status == "judged" else messages.moved(claim, comparison)
    return [*text, *messages.counts(drift, adds)]


def is_notable(claim: ClaimRecord, comparison: BaselineComparison) -> bool:
    """Whether a reader has to see the claim: it moved, cannot be compared, or its entry is inconsistent."""
    if comparison.status == "missing":
        return False
    if comparison.inconsistent:
        return True
    if comparison.status == "judged":
        return claim.verdict != "certified"
    if comparison.status != "compared" or comparison.then is None or comparison.difference is None:
        return True
    return comparison.then.verdict != claim.verdict or bool(comparison.circuits) or comparison.difference.beyond_noise
