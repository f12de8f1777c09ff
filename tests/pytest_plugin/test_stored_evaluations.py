"""A rerun reads evaluations as they were stored, and says what evaluating again would say."""

from __future__ import annotations

import json
import shutil

import pytest

from pytest_circuits.claims import evaluation
from pytest_circuits.claims.stored_evaluations import _external
from pytest_circuits.properties.series.trajectory_parameters import Trajectory

CLAIMS = """
shared:
  reuse: {task: swap, p: 0.3, size: 25%, attribution: atp, min_accuracy: 0.0}
  at_least: 0.1
too-much:
  reuse: {task: other, p: 0.3, size: 25%, attribution: atp, min_accuracy: 0.0}
  at_least: 0.9
  expect: refuted
agree:
  gradient_ablation_agreement: {task: swap, min_accuracy: 0.0, resamples: 200}
  at_least: 0.99
  expect: measured
"""


@pytest.fixture
def project(real):
    """A project with a store of its own, and a count of the claims that were evaluated."""
    real.pytester.makeini("[pytest]\ncircuits_cache_dir = cache\n")
    real.spec(CLAIMS)
    return real


@pytest.fixture
def evaluated(monkeypatch):
    claims = []
    original = evaluation.evaluate_claim
    monkeypatch.setattr(evaluation, "evaluate_claim", lambda executor, claim: claims.append(claim.name) or original(executor, claim))
    return claims


def stored(project):
    return sorted((project.path / "cache" / "evaluations").rglob("*.json"))


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


def test_a_rerun_evaluates_nothing_and_reports_the_same(project, evaluated):
    project.run()
    cold = project.report
    assert (len(stored(project)), len(evaluated)) == (3, 3)
    project.run()
    read = project.report
    assert len(evaluated) == 3
    shutil.rmtree(project.path / "cache" / "evaluations")
    project.run()
    again = project.report
    assert (len(stored(project)), len(evaluated)) == (3, 6)
    assert without_seconds(read) == without_seconds(again), "costs and counts of read results too"
    assert all(claim["cost"]["cached"] and claim["cost"]["hits"] for claim in read["claims"])
    for report in (cold, read):
        report["suite"].pop("cost")
        for claim in report["claims"]:
            claim.pop("cost")
    assert without_seconds(cold) == without_seconds(read)


@pytest.mark.parametrize("damage", ["", "{}", "cut", "changed", "null"])
def test_a_damaged_entry_is_evaluated_again_and_replaced(project, evaluated, damage):
    project.run()
    report = project.report["claims"]
    for path in stored(project):
        text = path.read_text()
        path.write_text({"cut": text[:-9], "changed": text.replace("certified", "refuted  ")}.get(damage, damage))
    project.run()
    assert len(evaluated) == (6 if damage != "changed" else 3 + sum("certified" in json.dumps(c["verdict"]) for c in report))
    assert [claim["verdict"] for claim in project.report["claims"]] == [claim["verdict"] for claim in report]
    project.run()
    assert len(evaluated) <= 6


def test_without_its_measurements_a_claim_is_measured_again(project, evaluated):
    project.run()
    entries = list((project.path / "cache").glob("??/*.safetensors"))
    for entry in entries:
        entry.unlink()
    offline = project.run("--circuits-offline")
    offline.assert_outcomes(failed=3)
    project.run()
    assert len(list((project.path / "cache").glob("??/*.safetensors"))) == len(entries)
    assert not any(claim["cost"]["cached"] for claim in project.report["claims"] if claim["claim"] != "agree")


def test_a_changed_claim_task_or_setting_is_evaluated_from_stored_measurements(project, evaluated):
    project.run()
    project.spec(CLAIMS.replace("at_least: 0.1", "at_least: 0.2").replace("p: 0.3", "p: 0.4, confidence: 0.9", 1))
    project.run()
    assert (evaluated[3:], project.claims["shared"]["confidence"], project.report["suite"]["cost"]["forwards"]) == (["shared"], 0.9, 0)
    project.run("--circuits-seed=1")
    assert len(evaluated) == 7, "another split"
    (project.path / "pairs.jsonl").write_text("".join(reversed((project.path / "pairs.jsonl").read_text().splitlines(keepends=True))))
    project.run()
    assert len(evaluated) == 10 and project.report["suite"]["cost"]["forwards"] > 0


def test_a_file_that_a_claim_names_counts_by_what_is_in_it(project, evaluated):
    known = project.path / "known.json"
    known.write_text('["L0H0", "L0MLP"]')
    project.spec("""
same:
  circuit_match: {task: swap, file: known.json, size: 25%, attribution: atp, min_accuracy: 0.0}
  at_most: 0.5
  expect: measured
""")
    project.run()
    project.run()
    assert len(evaluated) == 1
    known.write_text('["L1H1"]')
    project.run()
    assert len(evaluated) == 2


def test_a_file_that_a_property_inside_another_names_counts_too(tmp_path):
    known = tmp_path / "known.json"
    inside = {"circuit_match": {"task": "swap", "file": str(known)}}
    seen = []
    for names in ('["L0H0"]', '["L1H1"]'):
        known.write_text(names)
        seen.append(_external("trajectory", Trajectory.model_validate({"of": inside, "shape": "spread"})))
    assert seen == [[[], [["L0H0"], []]], [[], [["L1H1"], []]]]


def test_a_search_runs_each_time(project, evaluated):
    """It depends on hypothesis' profile, seed and database."""
    project.spec("""
holds:
  for_all: {prompts: {task: swap}, remove: {units: [L0H0]}, check: answer_changes, min_accuracy: 0.0, examples: 20}
  expect: measured
""")
    project.run()
    project.run()
    assert len(evaluated) == 2


@pytest.mark.parametrize("changed", ["code_digest", "statistics_libraries"])
def test_other_code_and_libraries_evaluate_again(project, evaluated, monkeypatch, changed):
    project.run()
    monkeypatch.setattr(f"pytest_circuits.claims.stored_evaluations.{changed}", lambda: {"other": "1"})
    project.run()
    assert len(evaluated) == 6


def test_without_a_cache_nothing_is_stored_or_read(project, evaluated):
    project.run()
    project.run("--circuits-no-cache")
    assert (len(evaluated), len(stored(project))) == (6, 3)


def test_claims_on_code_from_elsewhere_are_not_stored(box, evaluated):
    """It may change without another version: a registered property, and a task that a function loads."""
    box.python("def pairs():\n    return [{'clean': 'a', 'corrupt': 'b', 'answer': 'x', 'foil': 'y'}] * 20\n", "loaders.py")
    box.spec("""
third:
  stated: {task: swap, value: 0.2, low: 0.1, high: 0.3}
  at_least: 0.05
loaded:
  accuracy: {task: made}
  at_least: 0.05
  expect: measured
""", header='version: 1\nmodels: {tiny: {path: model}}\ntasks: {swap: {file: pairs.jsonl}, made: {loader: "loaders:pairs"}}\n')  # fmt: skip
    box.pytester.syspathinsert()
    for _ in range(2):
        box.run()
    assert evaluated == ["third", "loaded"] * 2
    assert not list(box.path.rglob("evaluations"))
