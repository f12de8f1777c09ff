"""The verdict table and its footnotes."""

from __future__ import annotations

import pytest

from pytest_circuits.errors import Invalid
from pytest_circuits.report.build import build_report
from pytest_circuits.report.messages.suite import few_groups as few_groups_note
from pytest_circuits.report.renderers import terminal
from pytest_circuits.report.renderers.terminal import few_groups, table
from tests.fakes.records import record, recorded


def test_the_table_of_every_verdict_and_expectation(snapshot):
    claims = [
        recorded(bound={"at_least": 0.2}, claim="holds"),
        recorded(claim="fails", tasks=["swap", "other"]),
        recorded(claim="fails-as-expected", expect="refuted"),
        recorded(bound={"within": [0.2, 0.9]}, claim="should-fail", expect="refuted"),
        recorded(bound={"at_most": 0.4}, claim="open"),
        recorded(bound={"at_most": 0.4}, claim="study", expect="measured", passed=True),
        recorded(Invalid("nothing there\nmore"), tasks=[], claim="gone", cost=None),
    ]
    snapshot("report/table", table(build_report(claims, 1.25)))


def test_rows_of_one_claim_are_distinguished_by_the_parameters_that_were_listed():
    rows = [recorded(nodeid="s.circuits.yaml::c::tiny::swap::p=0.8"), recorded(nodeid="s.circuits.yaml::c::tiny::swap::p=0.9")]
    lines = table(build_report(rows, 1.0))
    assert [line.split("  ")[0] for line in lines[2:4]] == ["c p=0.8", "c p=0.9"]


def test_warnings_are_shown_once_with_all_claims_that_they_are_about_and_capped():
    rows = [recorded(claim=f"c{i}", fields={"warnings": ["too few", f"only {i}"]}) for i in range(8)]
    lines = [line for line in table(build_report(rows, 1.0)) if "warning" in line]
    assert lines[0] == "warning: c0, c1, c2, c3, c4, c5, c6, c7: too few"
    assert lines[1] == "warning: c0: only 0"
    assert lines[-1] == "3 further warnings: see the JSON report" and len(lines) == 7


@pytest.mark.parametrize(
    ("details", "sizes"),
    [
        ({"examples": 256, "groups": 40}, {"swap": (256, 40)}),
        ({"examples": 256, "groups": 129}, {}),
        ({"examples": {"a": {"examples": 8, "groups": 4}, "b": {"examples": 8, "groups": 5}}}, {"a": (8, 4)}),
        ({"groups": ["L0H1"], "examples": "many"}, {}),
        ({}, {}),
    ],
)
def test_tasks_whose_prompts_are_few_groups_are_named(details, sizes):
    assert few_groups([record(fields={"details": details})] * 2) == sizes


def test_the_footnotes(snapshot):
    searched = {"details": {"fails_at_most": 0.0295}, "bound": {"at_least": 1.0}}
    claims = [
        recorded(claim="flips", bound={"at_least": 0.2}, fields=searched),
        recorded(claim="weak", fields={"refuted_at": 0.04}),
        recorded(claim="strong", fields={"refuted_at": 0.001}),
    ]
    snapshot("report/footnotes", [*terminal.footnotes(build_report(claims, 1.0)), few_groups_note({"ioi": (256, 40), "sva": (64, 8)})])


@pytest.mark.parametrize(
    ("bound", "verdict", "shown", "notes"),
    [
        ({"at_least": 1.0}, "certified", "all examples", 1),
        ({"at_least": 1.0}, "refuted", "all examples", 0),
        ({"at_least": 0.9}, "certified", "at least 0.9", 0),
    ],
)
def test_the_table_says_what_a_search_is_worth(bound, verdict, shown, notes):
    fields = {"claim": "flips", "bound": bound, "verdict": verdict, "refuted_at": 0.001, "details": {"fails_at_most": 0.0295}}
    report = build_report([recorded(fields=fields)], 1.0)
    assert terminal.row(report.claims[0])[7] == shown
    found = [note for note in terminal.footnotes(report) if "search" in note]
    assert len(found) == notes and all(note.endswith(": flips 2.95%") for note in found)
