"""Claims about drift in runs of pytest: the first run says what to do, doing it helps, and later runs are judged."""

from __future__ import annotations

import shlex

import pytest

from pytest_circuits.baseline import files
from pytest_circuits.spec.schema import json_schema
from tests.fakes.project import header
from tests.fakes.schema_validator import faults
from tests.fakes.torch_side import fake_model

SUITE = """
steady:
  stated: {task: swap, value: 0.5, low: 0.45, high: 0.55}
  at_least: 0.3
as-before:
  drift: {of: steady, within: 0.2}
"""
KEY = "as-before::tiny::swap"


def command(text):
    return shlex.split(text.partition("measure the release")[2].partition("with ")[2].removeprefix("pytest "))


def test_a_missing_baseline_fails_with_the_command_that_makes_it(box):
    box.spec(SUITE, "specs/s.circuits.yaml", header=header("tiny: {path: ../model}", "swap: {file: ../pairs.jsonl}"))
    result = box.run()
    result.assert_outcomes(passed=1, failed=1)
    reason = box.claims["as-before"]["reason"]
    assert "there is no baseline (specs/s.circuits.baseline.json)" in reason
    assert command(reason) == ["specs/s.circuits.yaml::as-before::tiny::swap", "--circuits-update-baseline=new"]
    result.stdout.fnmatch_lines(["INVALID specs/s.circuits.yaml::as-before::tiny::swap*"])
    box.run(*command(reason)).assert_outcomes(passed=1)
    assert list(files.read(box.path / "specs" / "s.circuits.baseline.json")) == [KEY]
    box.run().assert_outcomes(passed=2)
    claim = box.claims["as-before"]
    assert (claim["verdict"], claim["estimate"], claim["details"]["compared_with_itself"]) == ("certified", 0.0, False)
    assert claim["interval"] == pytest.approx([-0.1, 0.1]), "0.45 − 0.55 to 0.55 − 0.45"
    assert claim["baseline"]["status"] == "judged"
    assert box.report["suite"]["drift"]["verdicts_on_drift"] == {"certified": 1}


def test_another_place_for_the_baseline_is_part_of_the_command(box):
    box.spec(SUITE)
    box.spec("other:\n  stated: {}\n  at_least: 0.1", "o.circuits.yaml")
    box.run("o.circuits.yaml", "--circuits-baseline=old", "--circuits-update-baseline=new")
    box.run("--circuits-baseline=old")
    given = command(box.claims["as-before"]["reason"])
    assert given == [
        "s.circuits.yaml::as-before::tiny::swap",
        "--circuits-baseline=old/s.circuits.baseline.json",
        "--circuits-update-baseline=new",
    ]
    box.run(*given).assert_outcomes(passed=1)
    box.run("--circuits-baseline=old", "s.circuits.yaml").assert_outcomes(passed=2)
    box.run("--circuits-baseline=none", "s.circuits.yaml")
    assert "none disables the comparison" in box.claims["as-before"]["reason"]


@pytest.fixture
def measured(box):
    box.spec(SUITE)
    box.run("--circuits-update-baseline=new").assert_outcomes(passed=2)
    return box


def test_other_measurements_are_not_compared_and_the_command_writes_them_anew(measured):
    path = measured.path / "s.circuits.baseline.json"
    entries = files.read(path)
    entries[KEY]["versions"]["measurement"] -= 1
    files.write(path, entries)
    measured.run().assert_outcomes(passed=1, failed=1)
    reason = measured.claims["as-before"]["reason"]
    assert "the measurement version changed" in reason
    assert command(reason)[-1] == "--circuits-update-baseline=all"
    measured.run(*command(reason)).assert_outcomes(passed=1)
    measured.run().assert_outcomes(passed=2)


def test_a_changed_claim_is_invalid_until_the_baseline_is_measured_anew(measured):
    measured.spec(SUITE.replace("method: atp", "").replace("{task: swap,", "{task: swap, method: eap,"))
    measured.run("-k", "as-before").assert_outcomes(failed=1)
    assert "of another claim: method was 'atp' and is 'eap'" in measured.claims["as-before"]["reason"]
    measured.run("-k", "as-before", "--circuits-update-baseline=new").assert_outcomes(failed=1)
    measured.run("-k", "as-before", "--circuits-update-baseline=changed").assert_outcomes(passed=1)
    measured.run("-k", "as-before").assert_outcomes(passed=1)


def test_a_run_that_replaces_an_entry_judges_against_the_old_one_first(measured):
    measured.spec(
        SUITE.replace(
            "as-before:\n  drift: {of: steady", "as-before:\n  drift: {of: {stated: {task: swap, value: 0.5, low: 0.45, high: 0.55}}"
        )
    )
    measured.run("--circuits-update-baseline=all").assert_outcomes(passed=2)
    assert not measured.claims["as-before"]["details"]["compared_with_itself"]


def test_a_damaged_baseline_makes_the_claim_invalid(measured):
    (measured.path / "s.circuits.baseline.json").write_text("{", encoding="utf-8")
    measured.run("--circuits-update-baseline=all")
    assert measured.claims["as-before"]["verdict"] == "invalid"
    assert "is not valid JSON" in measured.claims["as-before"]["reason"]


def test_against_another_model_no_baseline_is_needed(box):
    fake_model(box.path / "old", b"older weights")
    box.spec(
        "steady:\n  stated: {task: swap, low: 0.45, high: 0.55}\n  at_least: 0.3\n  model: tiny\n"
        "moved:\n  drift: {of: {stated: {task: swap, low: 0.45, high: 0.55}}, against: old, within: 0.2}",
        header="version: 1\nmodels: {tiny: {path: model}, old: {path: old}}\ntasks: {swap: {file: pairs.jsonl}}\n",
    )
    box.run().assert_outcomes(passed=2)
    claim = box.claims["moved"]
    assert (claim["nodeid"], claim["details"]["release"]) == ("s.circuits.yaml::moved::tiny::swap", "old")
    assert "attribute atp swap" in box.calls and len([call for call in box.calls if call.startswith("attribute")]) == 2
    assert files.read(box.path / "s.circuits.baseline.json") is None


def test_a_model_to_compare_with_may_come_from_a_fixture(box):
    box.pytester.makeconftest("import pytest\n@pytest.fixture(scope='session')\ndef release():\n    return 'model'\n")
    box.spec(
        "moved:\n  drift: {of: {stated: {task: swap, low: 0.45, high: 0.55}}, against: old, within: 0.2}",
        header="version: 1\nmodels: {tiny: {path: model}, old: {fixture: release}}\ntasks: {swap: {file: pairs.jsonl}}\n",
    )
    box.run().assert_outcomes(passed=1)


def test_a_plan_counts_what_drift_would_measure(box):
    box.spec(SUITE)
    result = box.run("--circuits-plan", "-k", "as-before")
    result.stdout.fnmatch_lines(["s.circuits.yaml::as-before::tiny::swap", "    to measure: 1 Attribute, 1 Describe, 1 Encode*"])


@pytest.mark.extensive
def test_workers_judge_against_the_same_baseline(measured):
    pytest.importorskip("xdist")
    measured.subprocess_conftest()
    measured.run("-n", "2").assert_outcomes(passed=2)
    path = measured.path / "s.circuits.baseline.json"
    before = path.read_bytes()
    path.unlink()
    measured.run("-n", "2", "--circuits-update-baseline=new").assert_outcomes(passed=2)
    assert path.read_bytes() == before


def test_the_schema_accepts_claims_as_they_are_written():
    schema = json_schema()

    def wrong(drift, **more):
        spec = {
            "version": 1, "models": {"m": {"path": "m"}}, "tasks": {"ioi": {"builtin": "ioi"}},
            "claims": {"core": {"reuse": {"task": "ioi"}, "at_least": 0.4}, "d": {"drift": drift, **more}},
        }  # fmt: skip
        return list(faults(spec, schema, schema))

    assert not wrong({"of": "core", "within": 0.1})
    assert not wrong({"of": "core", "overlap": "jaccard", "match": "function", "no_worse_by": 0.1})
    assert not wrong({"of": {"reuse": {"task": "ioi"}}}, at_least=-0.1)
    assert wrong({"of": "core"}) and wrong({"of": "core", "within": 0.1}, at_least=0.1)
    assert wrong({"of": "core", "within": -1}) and wrong({"of": {"reuze": {}}, "within": 0.1})
    assert wrong({"of": 3, "within": 0.1})
    assert not wrong({"of": "core", "against": "m", "max_n": 512, "within": 0.1})
    assert wrong({"of": "core", "against": "m", "max_n": 0, "within": 0.1})
    curve = {"of": {"drift": {"of": "core", "against": "m"}}, "shape": "spread"}
    spec = {"version": 1, "models": {"m": {"path": "m"}}, "claims": {"c": {"trajectory": curve, "at_most": 0.1}}}
    assert not list(faults(spec, schema, schema))
