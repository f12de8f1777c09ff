"""Baselines in runs of pytest: what is written when, what is compared, and what is refused."""

from __future__ import annotations

import json
import sys

import pytest

from pytest_circuits.baseline import files
from pytest_circuits.core.sources import TaskSource
from pytest_circuits.tasks.load import load_source
from tests.fakes.torch_side import fake_model

SUITE = """
first:
  stated: {task: swap, value: 0.5}
  at_least: 0.3
second:
  stated: {value: [0.6, 0.7], high: 0.8}
  at_least: 0.3
nothing:
  stated: {raises: invalid}
  at_least: 0.5
  expect: invalid
"""
NEW, CHANGED, ALL = (f"--circuits-update-baseline={mode}" for mode in ("new", "changed", "all"))
KEYS = ["first::tiny::swap", "second::tiny::value=0.6", "second::tiny::value=0.7"]


def entries(box, name="s.circuits.baseline.json"):
    return files.read(box.path / name)


def read_task(box):
    return load_source(TaskSource.make("swap", "file", str(box.path / "pairs.jsonl")))


@pytest.fixture
def written(box):
    box.spec(SUITE)
    box.run(NEW).assert_outcomes(passed=4)
    return box


def test_what_was_measured_is_written_and_compared_with_in_the_next_run(written):
    written.result.stdout.fnmatch_lines(["baseline s.circuits.baseline.json: 3 written, 0 unchanged, 1 not measured"])
    found = entries(written)
    assert sorted(found) == KEYS
    assert {k: found[KEYS[0]][k] for k in ("estimate", "interval", "n", "verdict", "bound", "property")} == {
        "estimate": 0.5, "interval": [0.4, 0.6], "n": 100, "verdict": "certified", "bound": {"at_least": 0.3}, "property": "stated",
    }  # fmt: skip
    assert found[KEYS[0]]["fingerprints"]["weights"] == "weights of model"
    assert found[KEYS[0]]["fingerprints"]["data"] == {"swap": read_task(box=written).fingerprint}, "fakes encode a task as its fingerprint"
    assert found[KEYS[0]]["versions"]["measurement"] and found[KEYS[0]]["versions"]["torch"]
    before = (written.path / "s.circuits.baseline.json").read_bytes()
    result = written.run()
    assert (written.path / "s.circuits.baseline.json").read_bytes() == before, "a plain run writes nothing"
    comparison = written.claims["first"]["baseline"]
    assert (comparison["status"], comparison["same_model"], comparison["then"]["estimate"]) == ("compared", True, 0.5)
    assert comparison["difference"]["value"] == 0 and not comparison["difference"]["beyond_noise"]
    result.stdout.fnmatch_lines(["*3 claims compared with the baseline: 0 moved by more than noise*the model is the same"])


def test_without_a_baseline_nothing_is_said_of_one(box):
    box.spec(SUITE)
    result = box.run()
    assert "against the baseline" not in result.stdout.str() and "claims held" not in result.stdout.str()
    assert box.report["suite"]["drift"] is None and box.claims["first"]["baseline"] is None


def test_new_writes_what_is_missing_changed_what_changed_and_all_everything(written):
    path = written.path / "s.circuits.baseline.json"
    old = entries(written)
    other = SUITE.replace("value: 0.5", "value: 0.52").replace("at_least: 0.3\nnothing", "at_least: 0.2\nnothing")
    written.spec(other + "third:\n  stated: {}\n  at_least: 0.1")
    written.run(NEW)
    found = entries(written)
    assert sorted(found) == sorted([*KEYS, "third::tiny"])
    assert {key: found[key] for key in KEYS} == old
    marked = {key: entry | {"n": 99} for key, entry in found.items()}
    files.write(path, marked)
    written.run(CHANGED)
    found = entries(written)
    assert {key: entry["n"] for key, entry in found.items()} == {KEYS[0]: 100, KEYS[1]: 100, KEYS[2]: 100, "third::tiny": 99}
    assert (found[KEYS[0]]["parameters"]["value"], found[KEYS[1]]["bound"]) == (0.52, {"at_least": 0.2})
    files.write(path, {key: entry | {"n": 99} for key, entry in found.items()})
    written.run(ALL)
    assert {entry["n"] for entry in entries(written).values()} == {100}


def test_another_model_is_a_change(written):
    fake_model(written.path / "other", b"other weights")
    written.run(CHANGED, "--circuits-model=tiny=other")
    assert entries(written)[KEYS[0]]["fingerprints"]["weights"] == "weights of other"


def test_entries_that_were_not_selected_stay_and_pruning_is_explicit(written):
    written.spec(SUITE.replace("second", "2nd"))
    written.run(ALL, "-k", "first")
    assert sorted(entries(written)) == KEYS, "neither unselected nor unknown entries go"
    result = written.run("--circuits-prune-baseline", "-k", "first")
    assert sorted(entries(written)) == KEYS[:1]
    result.stdout.fnmatch_lines(["baseline *: 2 removed: second::tiny::value=0.6, second::tiny::value=0.7"])
    written.run(NEW)
    assert sorted(entries(written)) == sorted([KEYS[0], "2nd::tiny::value=0.6", "2nd::tiny::value=0.7"])
    written.run("--circuits-prune-baseline", "-k", "2nd")
    assert len(entries(written)) == 3, "a test that was not selected is none that is gone"


def test_a_claim_that_can_no_longer_be_measured_keeps_its_entry_and_says_so(written):
    written.spec(SUITE.replace("value: 0.5", "value: 0.5, raises: invalid"))
    result = written.run(ALL)
    assert entries(written)[KEYS[0]]["estimate"] == 0.5
    assert written.claims["first"]["baseline"]["status"] == "unmeasured"
    result.stdout.fnmatch_lines(["  first::tiny::swap: stated 0.500 → not measured; certified → invalid", "*there is nothing to measure"])


@pytest.mark.parametrize("option", [NEW, "--circuits-prune-baseline"])
@pytest.mark.parametrize("variable", ["CI", "BUILD_NUMBER"])
def test_continuous_integration_writes_no_baselines(written, monkeypatch, option, variable):
    before = (written.path / "s.circuits.baseline.json").read_bytes()
    monkeypatch.setenv(variable, "true")
    result = written.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = f"{option.partition('=')[0]} is refused under continuous integration (the environment variable {variable} is set)"
    result.stderr.fnmatch_lines([f"ERROR: {told}*"])
    assert (written.path / "s.circuits.baseline.json").read_bytes() == before
    assert written.run().ret == 0, "comparing is what continuous integration is for"
    monkeypatch.setenv(variable, "false")
    assert written.run(option).ret == 0


def test_a_plan_and_a_collection_write_nothing(box):
    box.spec(SUITE)
    box.run(NEW, "--circuits-plan")
    box.run(NEW, "--collect-only")
    assert entries(box) is None


def test_the_difference_is_held_against_noise_and_shown(written):
    written.spec(SUITE.replace("value: 0.5", "value: 0.9, low: 0.85, high: 0.95"))
    found = entries(written)
    found[KEYS[0]]["parameters"] |= {"value": 0.9, "low": 0.85, "high": 0.95}
    files.write(written.path / "s.circuits.baseline.json", found | {KEYS[0]: found[KEYS[0]] | {"verdict": "inconclusive"}})
    result = written.run()
    comparison = written.claims["first"]["baseline"]["difference"]
    # distances from the values, .05 and .1 below and above, in quadrature
    assert comparison["value"] == pytest.approx(0.4)
    assert comparison["interval"] == pytest.approx([0.4 - 0.0125**0.5, 0.4 + 0.0125**0.5])
    assert (comparison["how"], comparison["beyond_noise"]) == ("independent", True)
    result.stdout.fnmatch_lines(
        [
            "  first::tiny::swap: stated 0.500 → 0.900; inconclusive → certified",
            "    difference +0.400 [[]+0.288, +0.512], larger than noise (from both intervals)",
            "3 claims compared with the baseline: 1 moved by more than noise, 1 with another verdict, 0 with another circuit*",
        ]
    )
    drift = written.report["suite"]["drift"]
    assert drift["beyond_noise"] == drift["verdict_changed"] == ["s.circuits.yaml::first::tiny::swap"]


def test_other_parameters_or_data_are_not_compared_and_what_changed_is_named(written):
    written.spec(SUITE.replace("value: 0.5", "value: 0.5, method: eap"))
    result = written.run()
    assert written.claims["first"]["baseline"]["status"] == "incomparable"
    assert written.claims["first"]["baseline"]["difference"] is None
    result.stdout.fnmatch_lines(["    cannot be compared: method was 'atp' and is 'eap'"])
    written.spec(SUITE)
    with (written.path / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"clean": "w1 w2 w3", "corrupt": "w2 w2 w3", "answer": "w1", "foil": "w2"}) + "\n")
    written.run().stdout.fnmatch_lines(["    cannot be compared: the encoded prompts of swap differ"])


def test_another_file_or_folder_can_be_compared_with_and_none_switches_it_off(written):
    (written.path / "release").mkdir()
    moved = written.path / "release" / "s.circuits.baseline.json"
    (written.path / "s.circuits.baseline.json").rename(moved)
    for given in ("release", "release/s.circuits.baseline.json"):
        written.run(f"--circuits-baseline={given}")
        assert written.claims["first"]["baseline"]["status"] == "compared", given
    assert not (written.path / "s.circuits.baseline.json").exists()
    written.pytester.makeini("[pytest]\ncircuits_baseline = release\n")
    written.run()
    assert written.claims["first"]["baseline"]["path"] == "release/s.circuits.baseline.json"
    written.run("--circuits-baseline=none")
    assert written.claims["first"]["baseline"] is None
    written.run(ALL, "--circuits-baseline=later/one.json")
    assert sorted(entries(written, "later/one.json")) == KEYS
    result = written.run("--circuits-baseline=nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --circuits-baseline: there is no */nowhere; give a baseline file, the folder that has it*"])
    result = written.run(NEW, "--circuits-baseline=none")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


def test_one_file_cannot_be_the_baseline_of_two_specs(written):
    written.spec(SUITE, "t.circuits.yaml")
    result = written.run(NEW, "--circuits-baseline=both.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert entries(written, "both.json") is None
    result.stdout.fnmatch_lines(["ERROR: *both.json would be the baseline of s.circuits.yaml and t.circuits.yaml*"])
    assert written.run(NEW).ret == 0
    assert sorted(entries(written, "t.circuits.baseline.json")) == KEYS


def test_a_damaged_baseline_fails_the_run_and_is_not_overwritten(written):
    path = written.path / "s.circuits.baseline.json"
    path.write_text("{", encoding="utf-8")
    for more in ((), (ALL,)):
        result = written.run(*more)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stdout.fnmatch_lines(["ERROR: the baseline *s.circuits.baseline.json is not valid JSON*restore it from version control"])
        assert path.read_text(encoding="utf-8") == "{"


@pytest.mark.extensive
def test_workers_measure_and_the_controller_alone_writes(written):
    pytest.importorskip("xdist")
    path = written.path / "s.circuits.baseline.json"
    alone = path.read_bytes()
    path.unlink()
    written.subprocess_conftest()
    written.run(ALL, "-n", "2").assert_outcomes(passed=4)
    assert path.read_bytes() == alone
    written.run("-n", "2")
    assert {c["baseline"]["status"] for c in written.report["claims"]} == {"compared", "missing"}
    assert [p.name for p in written.path.iterdir() if "baseline" in p.name] == [path.name]


def test_claims_in_python_have_no_baseline(written):
    written.python("""
def test_it(circuits):
    circuits.check(circuits.model('model').measure('stated'), at_least=0.1)
""")
    written.run(ALL)
    assert [c["baseline"] for c in written.report["claims"] if c["file"].endswith(".py")] == [None]
    assert sorted(p.name for p in written.path.iterdir() if "baseline" in p.name) == ["s.circuits.baseline.json"]


@pytest.mark.extensive
def test_neither_help_nor_collection_needs_more_than_before(written):
    written.pytester.makeconftest("")
    code = "import sys, pytest; pytest.main(['--collect-only', '-q']); assert not {'numpy', 'torch', 'scipy'} & set(sys.modules), 'heavy'"
    done = written.pytester.run(sys.executable, "-c", code)
    assert done.ret == 0


def test_an_entry_that_cannot_be_read_is_one_line_and_costs_no_report(written, monkeypatch):
    """Such as per-example values that somebody edited: the verdicts of the run are still told and written."""
    from pytest_circuits.baseline import compare
    from pytest_circuits.errors import OptionError

    def broken(*_):
        raise OptionError("26 groups and 20 values")

    monkeypatch.setattr(compare, "comparison", broken)
    result = written.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*the entry of s.*::first::tiny::swap cannot be read (26 groups and 20 values); restore the file*"])
    assert written.claims["first"]["verdict"] == "certified" and "Traceback" not in result.stdout.str()
