"""Spec files behave like test modules: ids, selection, marks, reports of pytest."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tests.fakes.project import header

THREE = """
high:
  stated: {value: 0.9, low: 0.8, high: 1.0}
  at_least: 0.5
low:
  stated: {value: 0.1, low: 0.0, high: 0.2}
  at_least: 0.5
middle:
  stated: {task: swap}
  at_least: 0.3
"""


def test_node_ids_name_file_claim_model_and_task_without_brackets(box):
    """Square brackets are lost by `--lf` on some versions of pytest."""
    box.spec(THREE)
    assert box.run("--collect-only", "-q").ret == 0
    ids = [line for line in box.result.outlines if "::" in line]
    assert ids == ["s.circuits.yaml::high::tiny", "s.circuits.yaml::low::tiny", "s.circuits.yaml::middle::tiny::swap"]
    assert not (box.path / "report.json").exists(), "a run without tests must not overwrite a report"


def test_lists_make_one_test_for_each_combination_on_every_model(box):
    given = header("a: {path: model}, b: {path: model}", "swap: {file: pairs.jsonl}, other: {file: pairs.jsonl, n: 20}")
    box.spec("c:\n  stated: {task: [swap, other], value: [0.5, 0.55]}\n  at_least: 0.1", header=given)
    assert box.run("--collect-only", "-q").ret == 0
    ids = [line.partition("::")[2] for line in box.result.outlines if "::" in line]
    assert ids == [f"c::{m}::{t}::value={v}" for m in "ab" for t in ("swap", "other") for v in ("0.5", "0.55")]
    assert box.run().ret == 0
    assert len(box.report["claims"]) == 8


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        (["s.circuits.yaml::low::tiny"], {"low::tiny"}),
        (["s.circuits.yaml::middle"], {"middle::tiny::swap"}),
        (["s.circuits.yaml::middle::tiny::swap"], {"middle::tiny::swap"}),
        (["-k", "high or swap"], {"high::tiny", "middle::tiny::swap"}),
        (["-k", "not tiny"], set()),
        (["--deselect", "s.circuits.yaml::low"], {"high::tiny", "middle::tiny::swap"}),
        (["--ignore", "s.circuits.yaml"], set()),
    ],
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)
def test_selection_by_id_keyword_and_deselection(box, arguments, ran):
    box.spec(THREE)
    box.run(*arguments)
    assert set(box.verdicts) == ran


def test_selection_by_mark(box):
    box.spec(THREE.replace("middle:", "middle:\n  marks: [slow]"))
    box.pytester.makeini("[pytest]\nmarkers =\n    slow: takes long\n")
    assert box.run("-m", "slow", "--strict-markers").ret == 0
    assert set(box.verdicts) == {"middle::tiny::swap"}
    box.run("-m", "not slow")
    assert set(box.verdicts) == {"high::tiny", "low::tiny"}
    box.run("-m", "circuits")
    assert set(box.verdicts) == {"high::tiny", "low::tiny", "middle::tiny::swap"}


def test_last_failed_reruns_the_failed_claim_alone(box):
    box.spec(THREE)
    box.python("def test_fine(): pass\n")
    assert box.run().ret == 1
    assert box.run("--lf").ret == 1
    assert set(box.verdicts) == {"low::tiny"}
    box.spec(THREE.replace("low: 0.0, high: 0.2", "low: 0.6, high: 0.7").replace("value: 0.1", "value: 0.65"))
    assert box.run("--lf").ret == 0
    box.run("--ff")
    assert len(box.verdicts) == 3


def test_exit_first_stops_after_the_first_failure_and_reports_what_was_judged(box):
    box.spec(THREE)
    assert box.run("-x").ret == 1
    assert box.verdicts == {"high::tiny": "certified", "low::tiny": "refuted"}


def test_no_specs_selected_ends_with_pytests_own_exit_code(box):
    box.spec(THREE)
    assert box.run("-k", "nothing_is_called_this").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert box.report["claims"] == []


def test_specs_and_python_tests_share_a_run(box):
    box.spec(THREE, "sub/one.circuits.yaml")
    (box.path / "sub" / "model").symlink_to(box.path / "model")
    (box.path / "sub" / "pairs.jsonl").symlink_to(box.path / "pairs.jsonl")
    box.python("def test_fine(): pass\ndef test_wrong(): assert 1 == 2\n")
    box.run("-v").assert_outcomes(passed=3, failed=2)
    box.result.stdout.fnmatch_lines(["*sub/one.circuits.yaml::high::tiny CERTIFIED*", "*sub/one.circuits.yaml::low::tiny REFUTED*"])
    box.result.stdout.fnmatch_lines(["*test_python.py::test_wrong FAILED*"])


def test_a_run_from_another_folder_says_what_can_be_typed_there(box, monkeypatch):
    """Node ids are relative to the root directory; paths in the explanation are relative to where the user is."""
    box.spec(THREE, "sub/one.circuits.yaml", header="version: 1\nmodels: {tiny: {path: ../model}}\ntasks: {swap: {file: ../pairs.jsonl}}\n")
    box.pytester.makeini("[pytest]\n")
    monkeypatch.chdir(box.path / "sub")
    box.run("one.circuits.yaml", "--circuits-json=../report.json")
    assert [c["file"] for c in box.report["claims"]] == ["sub/one.circuits.yaml"] * 3
    box.result.stdout.fnmatch_lines(["  one.circuits.yaml:8 claim 'low'*", "  rerun: pytest one.circuits.yaml::low::tiny"])
    assert box.pytester.runpytest_inprocess("one.circuits.yaml::low::tiny").ret == 1


def test_without_the_terminal_plugin_verdicts_and_report_are_the_same(box):
    box.spec(THREE)
    assert box.run("-p", "no:terminal").ret == 1
    assert box.verdicts == {"high::tiny": "certified", "low::tiny": "refuted", "middle::tiny::swap": "certified"}


def test_junit_has_verdicts_as_properties_and_the_line_of_the_claim(box):
    box.spec(THREE)
    box.run("--junitxml=junit.xml", "-o", "junit_family=xunit1")
    cases = {
        case.get("classname", "").rpartition(".")[2] + case.get("name", ""): case
        for case in ElementTree.parse("junit.xml").iter("testcase")
    }
    low = cases["lowtiny"]
    assert (low.get("file"), low.get("line")) == ("s.circuits.yaml", "10")
    properties = [(p.get("name"), p.get("value")) for p in low.iter("property")]
    assert properties == [("circuits_verdict", "refuted"), ("circuits_estimate", "0.1"), ("circuits_interval", "[0.0, 0.2]")]
    failure = low.find("failure")
    assert failure is not None and failure.get("message", "").startswith("refuted: stated = 0.100 [0.000, 0.200], should be at least 0.5")
    assert cases["hightiny"].find("failure") is None


def test_doctest_and_other_collectors_leave_specs_alone(box):
    box.spec(THREE)
    box.run("--doctest-modules", "--doctest-glob=*.yaml").assert_outcomes(passed=2, failed=1)


def test_a_file_of_another_name_is_no_spec(box):
    box.spec(THREE, "circuits.yaml")
    assert box.run().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_plugin_can_be_switched_off(box):
    box.spec(THREE)
    assert box.pytester.runpytest_inprocess("-p", "no:circuits").ret == pytest.ExitCode.NO_TESTS_COLLECTED
