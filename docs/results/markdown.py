"""Markdown from claims: numbers with their intervals, and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytest_circuits.report.messages.verdicts import bound_text

from .claims import Claim

MARKS = {"certified": "✓", "refuted": "✗", "inconclusive": "?", "invalid": "—"}
LEGEND = "Number [95 % interval], then the verdict with the published figure as a bound: ✓ certified, ✗ refuted, ? inconclusive, — invalid."


def number(value: float) -> str:
    """Two decimals, or none for large ones."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def cell(claim: Claim | None, mark: bool = True, show: Callable[[float], str] = number) -> str:
    """`0.43 [0.31, 0.55] ✓`; the reason in a few words where there is no number; empty for None. `show` writes each number."""
    if claim is None:
        return ""
    if claim["estimate"] is None:
        return f"{MARKS['invalid']} ({short_reason(claim['reason'])})"
    low, high = claim["interval"]
    shown = f"{show(claim['estimate'])} [{show(low)}, {show(high)}]"
    return f"{shown} {MARKS[claim['verdict']]}" if mark else shown


def short_reason(reason: str, longest: int = 60) -> str:
    """The first words of a reason, cut at a word."""
    first = reason.partition("\n")[0].partition(";")[0].partition(": ")[0]
    return first if len(first) <= longest else first[:longest].rsplit(" ", 1)[0] + " …"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; empty rows and `|` inside cells are handled."""
    lines = [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]
    return "\n".join(lines)


def grid(rows: Sequence[Any], columns: Sequence[Any], find: Callable[[Any, Any], Claim | None], corner: str = "", mark: bool = True) -> str:
    """A table of claims, one for each row and column; rows of which there is no claim at all are left out."""
    body = []
    for row in rows:
        found = [find(row, column) for column in columns]
        if any(claim is not None for claim in found):
            body.append([row, *(cell(claim, mark) for claim in found)])
    return table([corner, *map(str, columns)], body)


def studies(found: Iterable[Claim]) -> str:
    """The bounds of the verdicts, each with the studies that have it; empty without any."""
    named: dict[str, list[str]] = {}
    for claim in found:
        named.setdefault(bound_text(claim["bound"]), []).append(f"`{claim['claim']}`")
    bounds = [f"{bound} ({', '.join(dict.fromkeys(names))})" for bound, names in named.items()]
    return f"Verdicts are on {'this bound' if len(bounds) == 1 else 'these bounds'}: {'; '.join(bounds)}." if bounds else ""


def anchor(title: str) -> str:
    """The address of a heading, as GitHub makes it."""
    return "".join(c for c in title.lower() if c.isalnum() or c in " -").replace(" ", "-")


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(one).replace("|", "\\|").replace("\n", " ") for one in cells) + " |"
