"""A renderer is one file and one registration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_circuits.report import renderers
from pytest_circuits.report.build import build_report
from pytest_circuits.report.renderers import RENDERERS, RunContext, Section, summary_sections
from tests.fakes.records import recorded


class CountRenderer:
    """Says how many claims there are."""

    def sections(self, report, context):
        yield Section("counted", (f"{len(report.claims)} claims below {context.root.name}",))


def test_a_new_renderer_runs_after_the_built_in_ones(register, tmp_path):
    report, context = build_report([recorded()], 1.0), RunContext(tmp_path, environment={})
    before = list(summary_sections(report, context))
    register(RENDERERS, "count", CountRenderer, purpose="summary")
    assert list(summary_sections(report, context)) == [*before, Section("counted", (f"1 claims below {tmp_path.name}",))]
    assert before[0].title == "circuits"


def test_a_renderer_for_another_purpose_does_not(register, tmp_path):
    report, context = build_report([recorded()], 1.0), RunContext(tmp_path, environment={})
    before = list(summary_sections(report, context))
    register(RENDERERS, "count", CountRenderer, purpose="file")
    assert list(summary_sections(report, context)) == before


@pytest.mark.parametrize("name", RENDERERS.builtin)
def test_each_built_in_renderer_is_a_file_that_states_its_purpose(name):
    module = RENDERERS.builtin[name].partition(":")[0].rpartition(".")[2]
    assert (Path(renderers.__file__).parent / f"{module}.py").is_file()
    assert RENDERERS.fact(name, "purpose") in ("summary", "file", "test") and RENDERERS.get(name)() is not None
