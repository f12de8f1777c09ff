"""The page on consistency and specificity: made from the report alone, up to date, and with claims for every published figure."""

from __future__ import annotations

import json
import re

import pytest

from docs.results import consistency_specificity as page_of
from docs.results.__main__ import FOLDER, render
from docs.results.claims import Report, shortened
from docs.results.consistency_tables import cross_task, necessity_by_control, parts, reuse_in_context, reuse_over_training
from pytest_circuits.spec.load import load_suite
from tests.paths import ROOT

SPECS = sorted((ROOT / "specs" / "consistency_specificity").glob("*.circuits.yaml"))
STORED = FOLDER / "consistency_specificity.json"


def claim(
    name, prop, tasks=("addition",), value=0.123, interval=(0.1, 0.2), verdict="refuted", details=(), expect="measured", **parameters
):
    """One claim as it stands in a report."""
    given = {"size": "20%", "p": 0.8, "ablation": "zero", **parameters}
    return {
        "nodeid": f"x::{name}", "claim": name, "property": prop, "model": "tiny", "tasks": list(tasks), "parameters": given,
        "estimate": value, "interval": None if value is None else list(interval), "verdict": verdict, "bound": {"at_least": 0.7},
        "reason": "the shared set is empty; lower p" if value is None else "", "details": dict(details), "expect": expect, "passed": True,
        "n": 40, "cost": {"seconds": 1.0, "forwards": 3},
    }  # fmt: skip


def report(*claims):
    models = {"tiny": {"architecture": "llama", "parameters": 1234, "layers": 3, "heads": 4}}
    return Report(tuple(claims), models)


def test_a_page_of_a_small_report_shows_its_numbers_and_nothing_of_what_was_not_measured():
    context = {
        "beside": {"ioi": {"reuse": 0.3456}, "addition": {"reuse": None, "reason": "empty"}}, "shared_set": {"units": ["L0H1", "L2MLP"]},
        "chance": 0.0789, "noise_ceiling": None,
    }  # fmt: skip
    text = page_of.page(
        report(
            claim("reuse-at-the-published-setting", "reuse", details=context),
            claim("boolean-is-spread-out", "reuse", ("boolean",), 0.4567, (0.41, 0.52), "certified", expect="certified"),
            claim("no-control-is-left", "necessity", value=None, verdict="invalid", expect="invalid"),
        )
    )
    assert "| tiny | llama | 1,234 | 3 | 4 | 15 |" in text
    assert "| [Reuse](#reuse) |" in text and "tiny: 0.12 [0.10, 0.20] ✗" in text
    assert "| addition | 0.12 [0.10, 0.20] ✗ | 0.08 |  |  | 0.35 | L0H1, L2MLP |" in text, "chance, no ceiling, sets of addition and ioi"
    assert "| boolean-is-spread-out | tiny | boolean | at least 0.7 | 0.46 [0.41, 0.52] | ✓ certified |" in text
    assert "| — (the shared set is empty) | — invalid, as expected |" in text
    assert "Verdicts are on this bound: at least 0.7 (`reuse-at-the-published-setting`)." in text
    assert "**Share of accuracy lost" not in text and "over training**" not in text


def test_rows_of_the_cross_task_matrix_are_the_sets_and_columns_the_tasks():
    def entry(task, source, value):
        sets = {source: {"size": 5}}
        made = claim("cross-task", "cross_task_ablation", (task, source), value, details={"shared_sets": sets}, circuit={"task": source})
        return made

    text = cross_task(report(*(entry(t, s, v) for t, s, v in [("a", "a", 0.91), ("a", "b", 0.22), ("b", "a", 0.33), ("b", "b", 0.94)])))
    rows = [re.sub(r" \[.*?\] ✗", "", line) for line in text.splitlines()]
    assert rows[2:] == ["| set of | components | on a | on b |", "|---|---|---|---|", "| a | 5 | 0.91 | 0.33 |", "| b | 5 | 0.22 | 0.94 |"]


def test_a_control_without_a_rank_says_how_many_sets_are_possible():
    details = {
        "rank_p": None, "control": {"rule": "c3", "distinct_sets": 6}, "shared_set": {"heads": 1, "mlps": 2}, "accuracy": 0.99,
        "accuracy_without_shared_set": 0.12, "accuracy_without_control": 0.77,
    }  # fmt: skip
    made = claim("against-each-control", "necessity", details=details, control="c3") | {"model": "llama-8layers"}
    assert "| addition | c3 | 1 heads, 2 MLPs | 0.99 | 0.12 | 0.77 | none: 6 possible |" in necessity_by_control(report(made))


def test_a_part_stands_beside_its_share_of_its_own_set():
    details = {
        "parts": {"core": ["L0H0"], "specific": ["L1H0", "L1MLP", "L2MLP"], "complementary": ["L2H0"]}, "part": {"heads": 1, "mlps": 0},
        "measured_on": {"a": {"drop": 0.25}, "b": {"drop": 0.75}},
    }  # fmt: skip
    made = [claim("parts", "decomposition", ("a", "b"), details=details, part=p) for p in ("core", "complementary")]
    text = parts(report(*made))
    assert "| core | 1 + 0 | 25% | a 0.25, b 0.75 |" in text, "1 of the 4 of A"
    assert "| complementary | 1 + 0 | 50% |" in text, "1 of the 2 of B"


def test_a_curve_has_a_column_for_each_checkpoint_and_says_why_points_are_missing():
    curve = [
        {"at": 100.0, "value": None, "interval": None, "reason": "answers 3 of 9 (0.333, below min_accuracy 0.6)"},
        {"at": 200.0, "value": 0.51, "interval": [0.4, 0.6], "reason": None},
        {"at": 300.0, "value": None, "interval": None, "reason": "accuracy 0.7 is not clearly above 0.5"},
    ]
    made = claim("reuse-peaks-early", "trajectory", details={"curve": curve}, of={"reuse": {}}, shape="peaks_before", at=200.0)
    text = reuse_over_training(report(made))
    assert "| task | step 100 | step 200 | step 300 |" in text
    assert "| addition | — (cannot do it) | 0.51 [0.40, 0.60] | — (hardly above chance) |" in text
    assert "| addition | peak before step 200 minus peak after | 0.12 [0.10, 0.20] ✗ |" in text


def test_reuse_without_a_number_has_no_row():
    assert reuse_in_context(report(claim("reuse-at-the-published-setting", "reuse", value=None))) == ""


def test_what_is_stored_renders_the_same_page_and_leaves_out_control_sets():
    details = {"notes": ["x"], "control": {"sets": [["L0H0"]] * 9, "rule": "c3", "distinct_sets": 50}, "rank_p": 0.5}
    given = {"suite": {"seconds": 9}, "models": {}, "claims": [claim("ioi-needs-its-shared-set", "necessity", details=details)]}
    (kept,) = [page_of.kept(one) for one in shortened(given)["claims"]]
    assert kept["details"] == {"control": {"rule": "c3", "distinct_sets": 50}, "rank_p": 0.5}
    assert kept["cost"] == {"forwards": 3} and given["claims"][0]["details"] == details


# --- the shipped page


def test_the_shipped_page_is_what_the_stored_report_gives():
    assert (FOLDER / "consistency-specificity.md").read_text(encoding="utf-8") == render("consistency_specificity")
    assert STORED.stat().st_size < 1.5e6


def test_every_published_figure_has_claims_of_ours_that_were_measured():
    stored = json.loads(STORED.read_text(encoding="utf-8"))["claims"]
    names = {one["claim"] for one in stored if one["estimate"] is not None}
    figures = page_of.published()["figures"]
    for figure in figures:
        assert set(figure["claims"]) & names, figure["title"]
        assert figure["headline"]["claim"] in names and figure["headline"]["claim"] in figure["claims"], figure["title"]
        assert figure["source"] in page_of.published()["sources"]
    listed = [name for figure in figures for name in figure["claims"]]
    assert sorted(listed) == sorted(set(listed)), "a claim is under one figure"
    assert {table for figure in figures for table in figure["tables"]} == set(page_of.TABLES)


def test_the_stored_report_is_of_the_specs_as_they_are():
    """Every test of the specs, and no other; every model."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))["claims"]
    cases = [(case.name, case.entry) for spec in SPECS for case in load_suite(spec).claims]
    assert sorted((one["claim"], one["model"]) for one in stored) == sorted(cases)
    assert {name for figure in page_of.published()["figures"] for name in figure["claims"]} == {name for name, _ in cases}
    assert {model for _, model in cases} == {"llama", "llama-8layers", "qwen3", "gemma2", "olmo2"}


def test_no_claim_failed_when_the_report_was_made():
    stored = json.loads(STORED.read_text(encoding="utf-8"))["claims"]
    assert [one["nodeid"] for one in stored if not one["passed"]] == []


@pytest.mark.parametrize("figure", page_of.published()["figures"], ids=lambda figure: figure["title"])
def test_every_table_of_a_figure_has_rows(figure):
    found = Report.read(STORED)
    assert [name for name in figure["tables"] if not page_of.TABLES[name](found)] == []
