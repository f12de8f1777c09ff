"""Drift beyond a baseline: over a series of models, with more examples, in Python, and between models without a common ancestor."""

from __future__ import annotations

import pytest

from pytest_circuits.core.verdict import Bound, decide
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.spec.load import SpecErrors, load_suite
from pytest_circuits.stats.betting import grouped_mean_interval
from tests.fakes import torch_side
from tests.fakes.project import header
from tests.fakes.scored import RIGHT, SCORED
from tests.fakes.two_models import baseline, drift, permuted, world

STEPS = {5: 0.25, 10: 0.5, 30: 0.75}


@pytest.fixture
def run(box, monkeypatch, register):
    """A release that is right on all examples, and checkpoints that are on more and more of them."""
    register(PROPERTIES, "scored", SCORED)
    for step, right in STEPS.items():
        torch_side.fake_model(box.path / "run" / f"step-{step}", f"weights {step}".encode())
        monkeypatch.setitem(RIGHT, f"weights of step-{step}", right)
    torch_side.fake_model(box.path / "old", b"old weights")
    return box


SERIES = header("run: {checkpoints: run/step-*}, old: {path: old}")
CURVE = "curve:\n  trajectory: {of: {drift: {of: {scored: {task: swap}}, against: %s}}, shape: %s}\n  at_most: 0.2\n"


def test_a_trajectory_of_drift_compares_every_model_of_the_series_with_the_one_in_against(run):
    run.spec(CURVE % ("old", "spread"), header=SERIES)
    run.run()
    claim = run.claims["curve"]
    assert [(one["at"], one["value"]) for one in claim["details"]["curve"]] == [(5, -0.75), (10, -0.5), (30, -0.25)]
    assert (claim["estimate"], claim["verdict"], claim["model"]) == (0.5, "refuted", "run"), "the model in against is no series of its own"


def test_the_model_in_against_may_be_one_of_the_series(run):
    run.spec(CURVE % ("run@step-30", "no_drop"), header=header("run: {checkpoints: run/step-*}"))
    run.run().assert_outcomes(passed=1)
    assert [one["value"] for one in run.claims["curve"]["details"]["curve"]] == [-0.5, -0.25, 0.0]


def test_a_trajectory_of_the_drift_of_a_claim_by_name_is_about_that_claim(run):
    core = "core:\n  scored: {task: swap}\n  at_least: 0.1\n  model: run@step-30\n"
    run.spec(core + CURVE.replace("{scored: {task: swap}}", "core") % ("old", "spread") + "  model: run\n", header=SERIES)
    run.run("-k", "curve")
    assert run.claims["curve"]["parameters"]["of"]["drift"]["of"]["scored"]["keeps"] is True
    assert run.claims["curve"]["estimate"] == 0.5


def test_a_plan_counts_the_release_of_a_trajectory(run):
    run.spec(CURVE % ("old", "spread"), header=SERIES)
    run.run("--circuits-plan").stdout.fnmatch_lines(["1 claim; to measure: 4 Describe, 4 Encode; *"])
    assert "note:" not in run.result.stdout.str()


GROWING = header("tiny: {path: model}, old: {path: old}", "ioi: {builtin: ioi, n: 64}", "defaults: {min_accuracy: 0.0}\n")
MOVED = "moved:\n  drift: {of: {scored: {task: ioi}}, against: old, max_n: 512}\n  at_most: -0.18\n  model: tiny\n"


def test_max_n_takes_more_examples_of_both_models_until_the_verdict_is_settled(run):
    run.spec(MOVED, header=GROWING)
    run.run().assert_outcomes(passed=1)
    claim = run.claims["moved"]
    assert claim["looks_planned"] == 4 and 1 < len(claim["looks"]) < 4
    assert [look["prompts"]["ioi"] for look in claim["looks"]] == [64, 128, 256, 512][: len(claim["looks"])]
    assert claim["n"] == claim["details"]["groups_compared"] == claim["looks"][-1]["n"] > 64
    last = claim["n"]
    values = [0.0] * round(0.75 * last) + [-1.0] * round(0.25 * last)
    expected = grouped_mean_interval(values, [str(i) for i in range(last)], 1 - 0.05 / 4, -1, 1)
    assert claim["interval"] == pytest.approx(expected[1], abs=1e-6), "the error is spent over the planned looks"
    run.spec(MOVED.replace(", max_n: 512", ""), header=GROWING)
    run.run()
    assert run.claims["moved"]["verdict"] == "inconclusive"


HEAD = """\
version: 1
models:
  candidate: {path: m}
  released: {path: n}
  run: {checkpoints: [step-10, step-20]}
  grows: {checkpoints: "runs/step-*"}
  starts: {checkpoints: ["runs/*-10"]}
tasks: {addition: {builtin: addition}}
claims:
  core: {reuse: {task: addition, p: 0.8}, at_least: 0.4, model: candidate}
"""  # the claim under test starts on line 11
ON_RUN = "at_most: 0.2, model: run"
MISTAKES = {
    "max_n without another model": (
        "drift: {of: core, within: 0.1, max_n: 512}", 38, "a baseline has only the examples that the release was measured on"
    ),
    "max_n of circuits": (
        "drift: {of: core, against: released, overlap: jaccard, within: 0.1, max_n: 512}", 75, "overlap compares circuits"
    ),
    "max_n of discovery examples": (
        "drift: {of: {shared_size: {task: addition}}, against: released, max_n: 512}, at_most: 3, model: candidate",
        71, "shared_size is estimated on discovery examples"
    ),
    "max_n in sample": (
        "drift: {of: {reuse: {task: addition, split: in_sample}}, against: released, max_n: 512}, at_most: 0.1, model: candidate",
        83, "split: in_sample has no separate ones"
    ),
    "a drift without against over a series": (
        f"trajectory: {{of: {{drift: {{of: core}}}}, shape: spread}}, {ON_RUN}", 7, "needs against: NAME"
    ),
    "a margin inside": (
        f"trajectory: {{of: {{drift: {{of: core, against: released, within: 0.1}}}}, shape: spread}}, {ON_RUN}",
        7, "give its bound instead"
    ),
    "an unknown model over a series": (
        f"trajectory: {{of: {{drift: {{of: core, against: release}}}}, shape: spread}}, {ON_RUN}",
        52, "unknown model 'release'; did you mean 'relea"
    ),
    "an unknown claim over a series": (
        f"trajectory: {{of: {{drift: {{of: cor, against: released}}}}, shape: spread}}, {ON_RUN}",
        37, "unknown claim 'cor'; did you mean 'core'?"
    ),
    "a series that is one model": (
        "trajectory: {of: {accuracy: {task: addition}}, shape: spread}, at_most: 0.2, model: candidate",
        91, "claims.d.model: a trajectory needs at least 2 models, and 'candidate' is a series of 1"
    ),
    "all models": (
        "trajectory: {of: {accuracy: {task: addition}}, shape: spread}, at_most: 0.2", 3, "'candidate' is a series of 1: give the model"
    ),
    "roles of one model": ("role_stability: {task: addition}, at_least: 0.2, models: [candidate]", 64, "'candidate' is a series of 1"),
    "a place after the series": (
        "trajectory: {of: {accuracy: {task: addition}}, shape: emerges_by, at: 21}, at_least: 0.2, model: run",
        77, "claims.d.trajectory.at: emerges_by at 21 has no model from there on: its models are at 10, 20"
    ),
    "one of several places": (
        "trajectory: {of: {accuracy: {task: addition}}, shape: peaks_before, at: [15, 30]}, at_least: 0.2, model: run",
        79, "peaks_before at 30 has no model from there on"
    ),
    "a place before the series": (
        "trajectory: {of: {accuracy: {task: addition}}, shape: peaks_before, at: 10}, at_least: 0.2, model: grows",
        79, "peaks_before at 10 has no model before it: its models are at 10, 20"
    ),
}  # fmt: skip


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in (10, 20):
        (tmp_path / "runs" / f"step-{step}").mkdir(parents=True)

    def load(text):
        path = tmp_path / "s.circuits.yaml"
        path.write_text(f"{HEAD}  d: {{{text}}}\n", encoding="utf-8")
        return load_suite(path).claims

    return load


def test_another_model_on_the_command_line_is_no_mistake_of_the_spec(load, tmp_path):
    load("trajectory: {of: {accuracy: {task: addition}}, shape: emerges_by, at: 15}, at_least: 0.2, model: run")
    (case,) = [one for one in load_suite(tmp_path / "s.circuits.yaml", models={"run": "elsewhere"}).claims if one.name == "d"]
    assert [model.path for model in case.series] == [str(tmp_path / "elsewhere")], "which makes the claim invalid, and refuses no spec"


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_in_the_spec_with_its_place(load, name):
    text, column, message = MISTAKES[name]
    with pytest.raises(SpecErrors) as caught:
        load(text)
    first = caught.value.errors[0]
    assert message in first.problem
    assert (first.line, first.column) == (11, column), str(first)


@pytest.mark.parametrize(
    "text",
    [
        "trajectory: {of: {accuracy: {task: addition}}, shape: spread}, at_most: 0.2, model: starts",
        "trajectory: {of: {accuracy: {task: addition}}, shape: emerges_by, at: 1000}, at_least: 0.2, model: grows",
        "trajectory: {of: {accuracy: {task: addition}}, shape: spread}, at_most: 0.2, model: grows",
        "trajectory: {of: {accuracy: {task: addition}}, shape: emerges_by, at: 20}, at_least: 0.2, model: run",
        "trajectory: {of: {accuracy: {task: addition}}, shape: peaks_before, at: 15}, at_least: 0.2, model: run",
    ],
)
def test_a_pattern_may_match_more_checkpoints_later_and_is_no_mistake_yet(load, text):
    assert load(text)[-1].series


def test_max_n_from_the_defaults_is_left_unused_and_that_is_said(box):
    box.spec("steady:\n  stated: {task: ioi}\n  at_least: 0.1\nmoved:\n  drift: {of: steady, within: 0.3}",
             header=header("tiny: {path: model}", "ioi: {builtin: ioi, n: 16}", "defaults: {max_n: 64}\n"))  # fmt: skip
    box.run("--circuits-update-baseline=new").assert_outcomes(passed=2)
    assert any("max_n is not used: a baseline has only the examples" in one for one in box.claims["moved"]["warnings"])


PYTHON = """
import pytest
from pytest_circuits.errors import OptionError

def test_it(circuits):
    task = circuits.task("pairs.jsonl", name="swap")
    old, new = circuits.model("old"), circuits.model("run/step-30")
    found = new.drift({"scored": {"task": task}}, against=old)
    assert (found.value, found.details["release"], found.parameters.against) == (-0.25, "old", "old")
    circuits.check(found, within=(-0.4, 0), claim="moved")
    assert new.measure("drift", of={"scored": {"task": task}}, against="old").interval == found.interval

def test_series(circuits):
    task = circuits.task("pairs.jsonl", name="swap")
    found = circuits.series("run/step-*").trajectory({"drift": {"of": {"scored": {"task": task}}, "against": "old"}}, "spread")
    assert [point["value"] for point in found.details["curve"]] == [-0.75, -0.5, -0.25]
    circuits.check(found, at_least=0.2, claim="curve")

def test_more_examples(circuits):
    task = circuits.task("ioi", n=64)
    found = circuits.model("model").drift({"scored": {"task": task}}, against="old", max_n=512)
    circuits.check(found, at_most=-0.18, claim="grown")

def test_mistakes(circuits):
    task = circuits.task("pairs.jsonl", name="swap")
    model, of = circuits.model("model"), {"scored": {"task": task}}
    for call, told in (
        (lambda: model.measure("drift", of=of), "drift in Python needs against="),
        (lambda: circuits.series("run/step-*").trajectory({"drift": {"of": of}}, "spread"), "drift in Python needs against="),
        (lambda: model.drift(of, "old", within=0.1), "within is how a spec writes a bound of drift; in Python give it to check"),
        (lambda: model.drift(of, "old", no_worse_by=0.1), "no_worse_by is how a spec"),
        (lambda: model.drift(of, "model"), "against itself says nothing"),
        (lambda: model.drift(of, "old", max_n=512), "max_n needs tasks that make more prompts"),
        (lambda: model.drift({"scord": {"task": task}}, "old"), "did you mean 'scored'"),
    ):
        with pytest.raises(OptionError, match=told):
            call()
"""


def test_drift_in_python_compares_with_another_model(run):
    run.python(PYTHON)
    run.run().assert_outcomes(passed=4)
    assert run.verdicts["test_it"] == "certified"
    assert run.claims["moved"]["parameters"]["against"] == "old"
    assert [point["value"] for point in run.claims["curve"]["details"]["curve"]] == [-0.75, -0.5, -0.25]
    assert len(run.claims["grown"]["looks"]) > 1


CIRCUIT = {"overlap": "jaccard"}


@pytest.mark.parametrize("recorded", [True, False])
def test_a_circuit_that_is_another_one_by_name_only_is_told_with_how_to_compare_by_function(recorded):
    original = world(("L0H1", "L1H2"))
    moved = permuted(original, [2, 0, 3, 1])
    for how in (CIRCUIT, {}):
        message = drift(moved, baseline(original, **how) if recorded else original, **how).details["notes"]
        assert "heads are defined up to a permutation" in message[-1] and "match: function" in message[-1], how


def test_nothing_is_said_of_names_where_the_circuit_is_the_same_or_was_matched_by_function():
    same, function = drift(world(seed=1), world(), **CIRCUIT), drift(world(), world(), overlap="jaccard", match="function")
    stayed = drift(world(("L0H1", "L1H0")), world(("L0H1", "L1MLP")))
    assert not [line for found in (same, function, stayed) for line in found.details["notes"] if "permutation" in line]


def test_an_interval_of_nothing_moved_certifies_only_what_examples_can():
    """What the page says: 64 groups on which nothing changed give ±0.08, 256 give ±0.02."""
    for groups, half in ((64, 0.08), (256, 0.02)):
        low, high = grouped_mean_interval([0.0] * groups, [str(i) for i in range(groups)], 0.95, -1, 1)[1]
        assert (round(-low, 2), round(high, 2)) == pytest.approx((half, half), abs=0.011)
    found = drift(world(), baseline(world()))
    assert decide(found, Bound(-0.5, 0.5)).kind == "certified" and decide(found, Bound(-0.001, 0.001)).kind == "inconclusive"
