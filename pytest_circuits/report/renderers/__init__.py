"""Renderers: each is one file that turns the report into one form of output, and knows only the report.

Its `purpose` says when it is used: "summary" at the end of a run, "file" for a file that was asked for, "test" for each test. A summary
renderer is a class without arguments that has the method `sections` (`SummaryRenderer`). Built-in renderers state their purpose in
`FACTS`; third parties register theirs with `RENDERERS.add("name", TheirRenderer, purpose="summary")`, or through an entry point of the
group `pytest_circuits.renderers`, with a class attribute `purpose`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...registry import Registry
from ..model import Report

SUMMARY = "summary"

_HERE = "pytest_circuits.report.renderers"

RENDERERS = Registry(
    "renderer",
    "pytest_circuits.renderers",
    {
        "terminal": f"{_HERE}.terminal:TerminalRenderer",
        "baseline": f"{_HERE}.baseline:BaselineRenderer",
        "mutation": f"{_HERE}.mutation:MutationRenderer",
        "github": f"{_HERE}.github:GithubRenderer",
        "json": f"{_HERE}.json_file:JsonRenderer",
        "figure": f"{_HERE}.figure:FigureRenderer",
        "explanation": f"{_HERE}.explanation:ExplanationRenderer",
        "status": f"{_HERE}.status:StatusRenderer",
        "junit": f"{_HERE}.junit:JunitRenderer",
    },
)


@dataclass(frozen=True)
class Section:
    """Lines for the terminal under a title; without a title they follow what is above."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class RunContext:
    """What the run knows besides the report.

    `root` is the directory that the report's paths are relative to. `baseline_messages` say what was written to baselines;
    `adds_to_baseline`: whether entries that are missing are. `annotates_failures`: whether another plugin annotates failed tests on GitHub.
    """

    root: Path
    adds_to_baseline: bool = False
    baseline_messages: tuple[str, ...] = ()
    annotates_failures: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


class SummaryRenderer(Protocol):
    """Runs once at the end of a session."""

    def sections(self, report: Report, context: RunContext) -> Iterable[Section]:
        """What is printed, in order."""


def summary_sections(report: Report, context: RunContext) -> Iterable[Section]:
    """The sections of all renderers for the end of a run: the built-in ones in their order, then those of third parties by name."""
    others = [name for name in RENDERERS if name not in RENDERERS.builtin]
    for name in (*RENDERERS.builtin, *others):
        if (RENDERERS.fact(name, "purpose") or getattr(RENDERERS.get(name), "purpose", None)) == SUMMARY:
            renderer: SummaryRenderer = RENDERERS.get(name)()
            yield from renderer.sections(report, context)
