"""The verdict table at the end of a run, with its footnotes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..messages import circuits as circuit_messages
from ..messages import suite as messages
from ..messages.claims import bound_text, expected_verdict, label
from ..model import CircuitEvidence, ClaimRecord, Report
from ..model.circuits import TIERS
from . import RunContext, Section

FACTS = {"purpose": "summary"}

SHOWN_CIRCUITS = 8
COLUMNS = ("claim", "model", "tasks", "property", "estimate", "interval", "n", "bound", "verdict")


class TerminalRenderer:
    """The section `circuits`."""

    def sections(self, report: Report, context: RunContext) -> Iterator[Section]:
        """One section; none of a run without claims."""
        if report.claims:
            yield Section("circuits", tuple(table(report)))


def number(value: float | None) -> str:
    """Three decimals, or a dash."""
    return "—" if value is None else f"{value:.3f}"


def row(claim: ClaimRecord) -> list[str]:
    """One line of the table."""
    star = "*" if claim.survives_holm is False else ""
    return [
        label(claim),
        claim.model,
        ", ".join(claim.tasks),
        claim.property,
        number(claim.estimate),
        "—" if claim.interval is None else f"[{claim.interval[0]:.3f}, {claim.interval[1]:.3f}]",
        str(claim.n or "—"),
        "all examples" if is_search(claim) else bound_text(claim.bound),
        f"{claim.verdict}{star} {expected_verdict(claim)}".rstrip(),
    ]


def table(report: Report) -> list[str]:
    """The verdict table, circuits that are supported, a line of totals, and what a reader has to know about many claims at once."""
    rows = [list(COLUMNS), *map(row, report.claims)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    supported = circuit_lines(report.circuits)
    if supported:
        lines += ["", *supported]
    return [*lines, "", messages.totals(report.suite), *footnotes(report), *messages.warnings(report.claims)]


def circuit_lines(circuits: Sequence[CircuitEvidence]) -> list[str]:
    """Circuits above proposed, the best first; none where there are none."""
    above = sorted((circuit for circuit in circuits if circuit.tier != TIERS[0]), key=lambda circuit: -TIERS.index(circuit.tier))
    lines = [circuit_messages.line(circuit, _next_tier(circuit.tier)) for circuit in above[:SHOWN_CIRCUITS]]
    rest = len(circuits) - len(lines)
    return [*lines, messages.further(rest, "circuit")] if lines and rest else lines


def _next_tier(tier: str) -> str:
    return TIERS[min(TIERS.index(tier) + 1, len(TIERS) - 1)]


def is_search(claim: ClaimRecord) -> bool:
    """Whether it is a claim about all examples, which one counterexample refutes, whatever the interval of the share says."""
    return "fails_at_most" in claim.details and claim.bound.at_least == 1


def few_groups(claims: Sequence[ClaimRecord]) -> dict[str, tuple[int, int]]:
    """Prompts and groups of the tasks that have at most half as many groups as prompts: n counts prompts, an interval counts groups."""
    sizes: dict[str, tuple[int, int]] = {}
    for claim in claims:
        details = claim.details
        examples = details.get("examples")
        per_task = examples if isinstance(examples, Mapping) else dict.fromkeys(claim.tasks[:1], details)
        for task, counts in per_task.items():
            groups, prompts = (counts.get("groups"), counts.get("examples")) if isinstance(counts, Mapping) else (None, None)
            if isinstance(groups, int) and isinstance(prompts, int) and 2 * groups <= prompts:
                sizes[task] = prompts, groups
    return sizes


def footnotes(report: Report) -> list[str]:
    """What n hides, what a search is worth, refutations that do not survive the correction, and that certificates are not corrected."""
    suite, holm = report.suite, report.suite.holm
    searches = [claim for claim in report.claims if is_search(claim) and claim.verdict == "certified"]
    sizes = few_groups(report.claims)
    notes = []
    if sizes:
        notes.append(messages.few_groups(sizes))
    if searches:
        notes.append(messages.searches(searches))
    if holm.surviving < holm.refuted:
        notes.append(messages.not_surviving(holm, suite.alpha))
    if holm.claims > 1 and suite.verdicts.get("certified"):
        notes.append(messages.certificates_are_not_corrected())
    return notes
