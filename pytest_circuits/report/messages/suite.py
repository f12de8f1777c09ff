"""What a reader has to know about many claims at once: totals, footnotes, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model import ClaimRecord, Multiplicity, Suite
from .claims import label

SHOWN_WARNINGS = 6


def totals(suite: Suite) -> str:
    """Verdicts, cost and time of the run."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in suite.verdicts.items() if count)
    cost = suite.cost
    measured = f"{cost.forwards} forwards, {cost.backwards} backwards, {cost.cached} stored measurements used"
    seconds = "" if suite.seconds is None else f"; {suite.seconds:.1f} s"
    return f"{counts}; {measured}{seconds}"


def few_groups(sizes: Mapping[str, tuple[int, int]]) -> str:
    """`sizes` are prompts and groups of the tasks that have few groups."""
    listed = ", ".join(f"{task} {prompts} prompts in {groups} groups" for task, (prompts, groups) in sizes.items())
    return f"n counts prompts; for an interval, prompts about one entity or from one template count once: {listed}"


def searches(claims: Sequence[ClaimRecord]) -> str:
    """What the certificates of these searches are worth."""
    listed = ", ".join(f"{label(claim)} {claim.details['fails_at_most']:.2%}" for claim in claims)
    meaning = "certified means that a search found no counterexample, which is not a proof"
    return f"All examples: {meaning}. At most this share may fail: {listed}"


def not_surviving(holm: Multiplicity, alpha: float) -> str:
    """The footnote of a starred verdict."""
    return (
        f"* refuted on its own, but not after Holm's correction for the {holm.claims} claims of this run: with so many, chance alone "
        f"refutes a true claim as clearly in more than {alpha:.0%} of runs. The verdict and the test are unchanged"
    )


def certificates_are_not_corrected() -> str:
    """Why certified claims have no star."""
    return (
        "Certified claims are not corrected for their number: the suite passes only if all hold. "
        "A single claim is as sure as its own confidence says, and no surer for having been selected"
    )


def warnings(claims: Sequence[ClaimRecord]) -> list[str]:
    """Each warning once, with the claims that it is about; the first few of many."""
    labels: dict[str, list[str]] = {}
    for claim in claims:
        for warning in claim.warnings:
            labels.setdefault(warning, []).append(label(claim))
    lines = [f"warning: {', '.join(dict.fromkeys(names))}: {warning}" for warning, names in labels.items()]
    more = len(lines) - SHOWN_WARNINGS
    return lines if more <= 0 else [*lines[:SHOWN_WARNINGS], further(more, "warning")]


def further(count: int, thing: str) -> str:
    """What the terminal leaves out."""
    return f"{count} further {thing}{'s' * (count != 1)}: see the JSON report"


def errors_during_collection(files: int) -> str:
    """Why a distributed run stops before its tests."""
    return f"{files} error{'s' * (files != 1)} during collection"


def report_path(path: str) -> str:
    """Where the JSON report is."""
    return f"report: {path}"
