"""Annotations for GitHub: workflow commands that mark mistakes and failed claims at their lines of the spec."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..messages.claims import headline
from ..model import Report
from . import RunContext, Section

FACTS = {"purpose": "summary"}


class GithubRenderer:
    """`::error …` lines, when the run is on GitHub."""

    def sections(self, report: Report, context: RunContext) -> Iterator[Section]:
        """One section without a title; none elsewhere than on GitHub, or when nothing is wrong."""
        if context.environment.get("GITHUB_ACTIONS") == "true":
            workspace = context.environment.get("GITHUB_WORKSPACE")
            lines = commands(report, context.root, Path(workspace or context.root), claims=not context.annotates_failures)
            if lines:
                yield Section("", tuple(lines))


def commands(report: Report, root: Path, workspace: Path, claims: bool = True) -> list[str]:
    """One command for each mistake in a spec and, with `claims`, for each claim that failed its test.

    `root` is the directory that the report's paths are relative to; in the commands they are relative to `workspace`, the repository.
    """

    def error(file: str, line: int, column: int | None, title: str, text: str) -> str:
        path = os.path.relpath(root / file, workspace).replace(os.sep, "/")
        place = {"file": path, "line": line, "col": column, "title": title}
        return f"::error {','.join(f'{key}={_value(value)}' for key, value in place.items() if value is not None)}::{_data(text)}"

    lines = [error(mistake.file, mistake.line, mistake.column, "spec", mistake.problem) for mistake in report.suite.errors]
    for claim in report.claims if claims else ():
        if claim.outcome == "failed" and not claim.passed:
            lines.append(error(claim.file, claim.line, None, f"claim {claim.claim}", headline(claim)))
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(value: object) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")
