"""The options `--circuits-…` and their ini forms."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.fakes import torch_side

MEASURED = "c:\n  stated: {task: swap}\n  at_least: 0.1"


def test_another_checkpoint_takes_the_place_of_a_model(box):
    torch_side.fake_model(box.path / "release", b"new weights")
    box.spec(MEASURED)
    assert box.run("--circuits-model=tiny=release").ret == 0
    assert box.verdicts == {"c::tiny::swap": "certified"}
    assert box.report["models"]["tiny"]["fingerprint"] == "weights of release"
    assert "open release" in box.calls and "open model" not in box.calls


def test_a_model_is_replaced_in_every_spec_that_has_it(box):
    torch_side.fake_model(box.path / "release", b"new weights")
    box.spec(MEASURED, "a.circuits.yaml")
    box.spec(
        "d:\n  stated: {}\n  at_least: 0.1", "b.circuits.yaml", header="version: 1\nmodels: {tiny: {path: model}, other: {path: model}}\n"
    )
    assert box.run("--circuits-model=tiny=release").ret == 0
    used = {c["nodeid"]: box.report["models"][c["model"]]["fingerprint"].split()[-1] for c in box.report["claims"]}
    assert used == {
        "a.circuits.yaml::c::tiny::swap": "release",
        "b.circuits.yaml::d::tiny": "release",
        "b.circuits.yaml::d::other": "model",
    }


@pytest.mark.parametrize(("arguments", "told"), [
    (["--circuits-model=tinny=model"], "ERROR: --circuits-model tinny=…: no collected spec has a model of that name"),
    (["--circuits-model=tiny"], "ERROR: --circuits-model needs NAME=PATH, got 'tiny'"),
    (["--circuits-model==model"], "ERROR: --circuits-model needs NAME=PATH, got '=model'"),
    (["--circuits-model=tiny="], "ERROR: --circuits-model needs NAME=PATH, got 'tiny='"),
    (["--circuits-model=tiny=a", "--circuits-model=tiny=b"], "ERROR: --circuits-model: 'tiny' is given twice"),
    (["--circuits-batch-size=0"], "ERROR: circuits-batch-size must be a whole number of at least 1, got 0"),
    (["-o", "circuits_batch_size=many"], "ERROR: circuits-batch-size must be a whole number of at least 1, got 'many'"),
    (["--circuits-dtype=float31"], "ERROR: circuits-dtype must be one of bfloat16, float16, float32, float64, got 'float31'"),
    (["--circuits-batch-size=many"], "*argument --circuits-batch-size: invalid int value: 'many'"),
    (["--circuits-inconclusive=maybe"], "*argument --circuits-inconclusive: invalid choice: 'maybe'*"),
    (["-o", "circuits_inconclusive=maybe"], "ERROR: circuits_inconclusive must be fail, skip or pass, got 'maybe'"),
], ids=" ".join)  # fmt: skip
def test_wrong_values_are_usage_errors_before_anything_is_measured(box, arguments, told):
    box.spec(MEASURED)
    assert box.run(*arguments).ret == pytest.ExitCode.USAGE_ERROR
    box.result.stderr.fnmatch_lines([told])
    assert "Traceback" not in box.result.stderr.str() + box.result.stdout.str()
    assert box.calls == []


def test_a_replaced_model_that_is_not_there_makes_its_claims_invalid(box):
    box.spec(MEASURED)
    assert box.run("--circuits-model=tiny=./missing").ret == 1
    assert box.verdicts == {"c::tiny::swap": "invalid"}
    assert "there is no directory" in box.claims["c"]["reason"] and "missing" in box.claims["c"]["reason"]


@pytest.mark.parametrize(("how", "seen"), [
    (["--circuits-device=cuda:1", "--circuits-dtype=bfloat16", "--circuits-batch-size=7"], ("cuda:1", "bfloat16", 7)),
    (["-o", "circuits_device=mps", "-o", "circuits_dtype=float16", "-o", "circuits_batch_size=5"], ("mps", "float16", 5)),
    (["-o", "circuits_device=mps", "--circuits-device=cpu"], ("cpu", None, None)),
    ([], ("cpu", None, None)),
], ids=str)  # fmt: skip
def test_device_precision_and_batch_size_reach_the_model(box, monkeypatch, how, seen):
    """The command line goes before the ini file."""
    got = {}

    class Subject(torch_side.FakeSubject):
        def attribute(self, task, method, level, **options):
            got["batch_size"] = options["batch_size"]
            return super().attribute(task, method, level, **options)

    def opener(model, tokenizer=None, **options):
        got.update(options)
        return Subject(str(model))

    monkeypatch.setattr("pytest_circuits.measurement.models.default_opener", opener)
    box.spec(MEASURED)
    assert box.run(*how).ret == 0
    assert (got["device"], got["dtype"], got["batch_size"]) == seen


@pytest.mark.parametrize("device", ["auto", "gpu 0", "CPU"])
def test_a_device_that_is_none_makes_claims_invalid_with_clear_text(box, device):
    box.spec(MEASURED)
    assert box.run(f"--circuits-device={device}").ret == 1
    assert box.claims["c"]["verdict"] == "invalid"
    assert f"{device!r} is not a device to measure on; write cpu, cuda, cuda:1, mps …" in box.claims["c"]["reason"]


def test_measurements_are_kept_in_the_root_directory_and_used_again(box):
    box.spec(MEASURED)
    box.run()
    assert box.report["suite"]["cost"]["forwards"] == 2
    assert (box.path / ".circuits_cache").is_dir()
    calls = box.calls
    box.run()
    assert box.calls == calls, "neither opened nor measured again"
    assert (box.report["suite"]["cost"]["forwards"], box.claims["c"]["cost"]["cached"]) == (0, True)


def test_the_folder_of_measurements_can_be_chosen(box, monkeypatch):
    """On the command line relative to the working directory, in the ini file relative to the root directory."""
    (box.path / "sub").mkdir()
    box.spec(MEASURED)
    box.pytester.makeini("[pytest]\ncircuits_cache_dir = from_ini\n")
    monkeypatch.chdir(box.path / "sub")
    box.run("..", "--circuits-json=../report.json")
    assert (box.path / "from_ini").is_dir()
    box.run("..", "--circuits-json=../report.json", "--circuits-cache-dir=here")
    assert (box.path / "sub" / "here").is_dir()
    assert sorted(p.name for p in box.path.iterdir() if p.is_dir() and "cache" not in p.name) == ["from_ini", "model", "sub"]
    assert not (box.path / ".circuits_cache").exists()


@pytest.mark.parametrize("how", [["--circuits-no-cache"], ["-o", "circuits_no_cache=true"]], ids=str)
def test_without_the_cache_nothing_is_read_kept_or_left_behind(box, monkeypatch, how):
    scratch = box.path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    box.spec(MEASURED + "\nd:\n  stated: {task: swap, value: 0.55}\n  at_least: 0.1")
    box.run()
    before = {p for p in box.path.rglob("*") if ".circuits_cache" in p.parts}
    box.log.unlink()
    assert box.run(*how).ret == 0
    assert box.calls.count("attribute atp swap") == 1, "shared in the run, but not read from an earlier one"
    assert {p for p in box.path.rglob("*") if ".circuits_cache" in p.parts} == before
    assert list(scratch.iterdir()) == []
    box.run("--circuits-offline", *how)
    assert box.claims["c"]["verdict"] == "invalid"
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("how", [["--circuits-offline"], ["-o", "circuits_offline=true"]], ids=str)
def test_offline_fails_rather_than_measure_and_names_what_is_missing(box, how):
    box.spec(MEASURED)
    assert box.run(*how).ret == 1
    assert box.claims["c"]["verdict"] == "invalid"
    assert (
        "the description of model 'tiny'" in box.claims["c"]["reason"]
        and "--circuits-offline forbids measuring it" in box.claims["c"]["reason"]
    )
    assert box.calls == []
    assert box.run("-k", "c").ret == 0
    calls = box.calls
    assert box.run(*how).ret == 0
    assert box.calls == calls
    box.spec(MEASURED.replace("task: swap", "task: swap, method: eap"))
    assert box.run(*how).ret == 1
    assert "eap attribution (component, logit_diff) of task 'swap' on model 'tiny'" in box.claims["c"]["reason"]


def test_options_are_listed_in_one_group_of_the_help(box):
    text = box.pytester.runpytest_inprocess("--help").stdout.str()
    options = ["json", "model", "device", "dtype", "batch-size", "inconclusive", "cache-dir", "no-cache", "offline", "plan"]
    assert [o for o in options if f"--circuits-{o}" not in text] == []
    assert text.count("claims about the circuits of language models") == 1
    assert [
        i for i in ("device", "dtype", "batch_size", "inconclusive", "cache_dir", "no_cache", "offline") if f"circuits_{i} (" not in text
    ] == []
    assert "@pytest.mark.circuits" in box.pytester.runpytest_inprocess("--markers").stdout.str()
    box.pytester.runpytest_inprocess("--fixtures").stdout.fnmatch_lines(
        ["circuits [[]session scope[]]*", "circuits_model [[]session scope[]]*"]
    )


def test_the_cache_folder_is_no_place_for_tests(box):
    """What is kept there is ignored by git and looks like nothing that pytest collects."""
    box.spec(MEASURED)
    box.run()
    assert (box.path / ".circuits_cache" / ".gitignore").read_text() == "*\n"
    box.run("--collect-only", "-q")
    assert [line for line in box.result.outlines if "::" in line] == ["s.circuits.yaml::c::tiny::swap"]
    assert Path(box.path / ".circuits_cache" / "CACHEDIR.TAG").exists()
