"""Claims over series of models: node ids, records, options, plans, Python."""

from __future__ import annotations

import pytest

from tests.fakes import torch_side
from tests.fakes.project import DEFAULTS, header, save_tokenizer, tiny_llama

SERIES = header("run: {checkpoints: run/step-*}")
CLAIMS = """
each:
  stated: {task: swap, value: 0.2, low: 0.1, high: 0.3, slope: 0.01}
  at_least: 0.16
falling:
  trajectory: {of: {stated: {task: swap, value: 0.9, low: 0.89, high: 0.91, slope: -0.01}}, shape: no_drop}
  at_most: 0.2
early:
  trajectory: {of: {stated: {value: 0.5, low: 0.49, high: 0.51, slope: 0.01, from_on: 10}}, shape: non_decreasing}
  at_most: 0.05
late:
  trajectory: {of: {stated: {from_on: 10}}, shape: spread, invalid: fail}
  at_most: 0.05
one:
  stated: {}
  at_least: 0.15
  model: run@step-10
"""


@pytest.fixture
def run(box):
    """A project with three checkpoints."""
    for step in (5, 10, 30):
        torch_side.fake_model(box.path / "run" / f"step-{step}", f"weights {step}".encode())
    return box


def test_a_claim_is_made_of_each_checkpoint_or_of_the_series(run):
    run.spec(CLAIMS, header=SERIES)
    run.run().assert_outcomes(passed=4, failed=3)
    assert run.verdicts == {
        "each::run@step-5::swap": "inconclusive",
        "each::run@step-10::swap": "certified",
        "each::run@step-30::swap": "certified",
        "falling::run::swap": "refuted",
        "early::run": "certified",
        "late::run": "invalid",
        "one::run@step-10": "certified",
    }
    text = run.result.stdout.str()
    assert "s.circuits.yaml:8 claim 'falling', model 'run'" in text
    assert "stated over 3 models" in text and "0.850 at 5 and 0.600 at 30" in text
    assert "invalid for 'run@step-5', and `invalid: fail` leaves none out: no behaviour yet at 5" in text


def test_the_report_says_which_models_a_claim_is_about(run):
    run.spec(CLAIMS, header=SERIES)
    run.run()
    falling = run.claims["falling"]
    assert (falling["model"], falling["tasks"], falling["parameters"]["shape"]) == ("run", ["swap"], "no_drop")
    assert falling["parameters"]["of"]["stated"]["slope"] == -0.01
    assert falling["series"] == [{"model": f"run@step-{at}", "at": float(at)} for at in (5, 10, 30)]
    assert [point["fingerprint"] for point in falling["details"]["curve"]] == [f"weights of step-{at}" for at in (5, 10, 30)]
    assert run.claims["early"]["details"]["left_out"] == ["run@step-5"]
    assert "checkpoint" not in falling and "series" not in run.claims["one"]
    assert run.claims["one"]["checkpoint"] == {"of": "run", "at": 10.0}
    assert run.report["models"]["run@step-10"]["fingerprint"] == "weights of step-10"
    assert run.report["models"]["run"]["fingerprint"] == "weights of step-30", "of a series, the last"


def test_a_series_costs_nothing_beyond_its_checkpoints(run):
    run.spec(CLAIMS, header=SERIES)
    run.run("-k", "each")
    before = run.calls
    run.run("-k", "falling")
    assert run.calls == before and sum(call.startswith("attribute") for call in before) == 3
    assert sorted(call for call in before if call.startswith("open")) == ["open step-10", "open step-30", "open step-5"], (
        "none is opened twice"
    )


def test_node_ids_select_a_checkpoint(run):
    run.spec(CLAIMS, header=SERIES)
    run.run("s.circuits.yaml::each::run@step-10::swap").assert_outcomes(passed=1)
    run.run("-k", "step-10").assert_outcomes(passed=2, deselected=5)


@pytest.mark.parametrize(
    ("option", "ids"),
    [
        ("run=run/step-[13]*", ["each::run@step-10::swap", "each::run@step-30::swap"]),
        ("run=model", ["each::run::swap"]),
        ("run@step-5=model", ["each::run@step-5::swap", "each::run@step-10::swap", "each::run@step-30::swap"]),
    ],
)
def test_other_models_take_the_place_of_a_series_or_of_a_checkpoint(run, option, ids):
    run.spec(CLAIMS.partition("late:")[0], header=SERIES)
    run.run(f"--circuits-model={option}")
    assert [one for one in run.verdicts if one.startswith("each")] == ids
    assert [claim["series"][0]["model"] for claim in run.report["claims"] if claim["claim"] == "early"] == [ids[0].split("::")[1]]
    if option.endswith("=model"):
        assert "open model" in run.calls


def test_a_series_of_one_is_a_mistake_of_the_spec_with_what_to_do(run):
    run.spec("c:\n  trajectory: {of: {stated: {}}, shape: no_drop}\n  at_most: 0.1")
    assert run.run().ret == pytest.ExitCode.INTERRUPTED
    told = "a trajectory needs at least 2 models, and 'tiny' is a series of 1: give the model `checkpoints`, or name the series*"
    run.result.stdout.fnmatch_lines([f"*s.circuits.yaml:8:3: claims.c: {told}"])
    assert run.calls == []


def test_a_series_of_one_on_the_command_line_is_invalid_and_refuses_no_spec(run):
    run.spec(CLAIMS.partition("late:")[0], header=SERIES)
    run.run("--circuits-model=run=model").assert_outcomes(failed=3)
    told = "a trajectory needs at least 2 models, and 'run' is a series of 1: give the model `checkpoints`"
    assert run.claims["early"]["reason"] == run.claims["falling"]["reason"] == told


def test_a_model_from_a_fixture_is_a_series_of_one(run):
    run.pytester.makeconftest("import pytest\n@pytest.fixture\ndef my_model(): return 'run/step-5'\n")
    run.spec("c:\n  trajectory: {of: {stated: {}}, shape: no_drop}\n  at_most: 0.1", header=header("made: {fixture: my_model}"))
    assert run.run().ret == pytest.ExitCode.INTERRUPTED
    run.result.stdout.fnmatch_lines(["*s.circuits.yaml:*'made' is a series of 1*"])


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("run=nothing-*", "*--circuits-model run=nothing-[*]: no directory matches*"),
        ("run@step-6=model", "*--circuits-model run@step-6=…: no collected spec has a model of that name"),
    ],
)
def test_a_replacement_that_cannot_be_is_told_before_anything_is_measured(run, option, told):
    run.spec(CLAIMS, header=SERIES)
    assert run.run(f"--circuits-model={option}").ret != 0
    (run.result.stderr if "@" in option else run.result.stdout).fnmatch_lines([told])
    assert run.calls == []


def test_a_pattern_that_matches_nothing_is_a_mistake_of_the_spec(run):
    run.spec(CLAIMS, header=header("run: {checkpoints: runs/step-*}"))
    assert run.run().ret == pytest.ExitCode.INTERRUPTED
    run.result.stdout.fnmatch_lines(
        ["*s.circuits.yaml:2:29: models.run.checkpoints: no directory matches 'runs/step-[*]' (looked for */runs/step-[*])"]
    )
    assert run.report["suite"]["errors"][0]["line"] == 2


def test_a_plan_counts_the_checkpoints_once(run):
    run.spec(CLAIMS, header=SERIES)
    assert run.run("--circuits-plan").ret == 0
    run.result.stdout.fnmatch_lines([
        "s.circuits.yaml::each::run@step-30::swap",
        "    to measure: 1 Attribute, 1 Describe, 1 Encode; *",
        "s.circuits.yaml::falling::run::swap",
        "    nothing to measure (0 stored)",
        "7 claims; to measure: 3 Attribute, 3 Describe, 3 Encode; *",
    ])  # fmt: skip
    assert run.calls == []


def test_a_broken_last_checkpoint_makes_the_claim_invalid(run):
    torch_side.fake_model(run.path / "run" / "broken-step-40")
    run.spec(CLAIMS.partition("late:")[0], header=header("run: {checkpoints: run/*}"))
    run.run("-k", "falling")
    assert run.claims["falling"]["verdict"] == "invalid" and "is broken" in run.claims["falling"]["reason"]


PYTHON = """
import pytest
from pytest_circuits.errors import OptionError

def stated(**parameters):
    return {"stated": {"low": 0.49, "high": 0.51, **parameters}}

def test_pattern(circuits):
    series = circuits.series("run/step-*", name="run")
    assert [(one.name, one.at) for one in series] == [("run@step-5", 5), ("run@step-10", 10), ("run@step-30", 30)]
    task = circuits.task("pairs.jsonl", name="swap")
    found = series.trajectory(of=stated(task=task, slope=0.01), shape="no_drop")
    assert found.value == pytest.approx(-0.05) and list(found.claim.tasks) == ["swap"]
    circuits.check(found, at_most=0.0, claim="rises")

def test_list(circuits):
    models = [circuits.model("run/step-30", name="big"), "run/step-5"]
    series = circuits.series(models, at=[2, 1], name="two")
    assert [(one.name, one.at) for one in series] == [("two@step-5", 1), ("two@big", 2)] and len(series) == 2
    assert [(one.name, one.at) for one in circuits.series(models)] == [("series@big", 0), ("series@step-5", 1)]
    assert [one.name for one in circuits.series(["run/step-5"] * 2, at=[0, 1])] == ["series@step-5", "series@step-5-2"]
    assert series.models[0].measure("stated").value == 0.5

def test_mistakes(circuits):
    series = circuits.series("run/step-*")
    for call, told in (
        (lambda: series.measure("stated"), "stated is about one model: measure it on each"),
        (lambda: series.trajectory(of={"state": {}}, shape="no_drop"), "trajectory, of: unknown property 'state'; did you mean 'stated'"),
        (lambda: series.trajectory(of=stated(valu=1), shape="no_drop"), "trajectory has no parameter 'of.stated.valu'"),
        (lambda: circuits.series([]), "needs at least one model"),
        (lambda: circuits.series("run/nothing-*"), "no directory matches 'run/nothing-"),
        (lambda: circuits.series("run/step-*", at=[1, 2]), "`at` has 2 places for 3 models"),
        (lambda: circuits.series("run/step-*", at=[1, 2, 2]), "must be different finite numbers, got 1, 2, 2"),
        (lambda: circuits.series("run/step-*", at=[1, 2, float("nan")]), "must be different finite numbers"),
        (lambda: circuits.check(series.trajectory(of=stated(), shape="spread"), at_least=0), "every value is at least 0"),
    ):
        with pytest.raises(OptionError, match=told):
            call()
    alone = circuits.model("model").measure("trajectory", of=stated(), shape="no_drop")
    assert "'model' is a series of 1" in str(alone)
"""


def test_series_in_python(run):
    run.python(PYTHON)
    run.run().assert_outcomes(passed=3)
    claim = run.claims["rises"]
    assert (claim["model"], claim["verdict"], claim["tasks"]) == ("run", "certified", ["swap"])
    assert [one["at"] for one in claim["series"]] == [5, 10, 30]


def test_real_models_have_the_curve_of_their_own_claims(real):
    """Three random models; the trajectory of a property is what the property says of each, and roles are compared."""
    for seed in range(3):
        tiny_llama(seed).save_pretrained(real.path / "seeds" / f"seed-{seed}")
        save_tokenizer(real.path / "seeds" / f"seed-{seed}")
    spec = """
alone:
  reuse: {task: swap, p: 0.3, confidence: 0.99}
  at_most: 0.9
course:
  trajectory: {of: {reuse: {task: swap, p: 0.3}}, shape: spread, confidence: 0.97}
  at_most: 0.9
roles:
  role_stability: {task: swap, gradient: atp, gap: 4, resamples: 200}
  within: [-0.9, 0.9]
"""
    real.spec(spec, header=header("seeds: {checkpoints: seeds/*}", more=DEFAULTS))
    real.run("-p", "no:randomly")
    claims = real.report["claims"]
    alone = [c for c in claims if c["claim"] == "alone"]
    course = real.claims["course"]
    assert [one["value"] for one in course["details"]["curve"]] == [one["estimate"] for one in alone]
    assert [one["interval"] for one in course["details"]["curve"]] == [pytest.approx(one["interval"]) for one in alone]
    assert course["estimate"] == pytest.approx(max(c["estimate"] for c in alone) - min(c["estimate"] for c in alone))
    roles = real.claims["roles"]
    assert roles["n"] > 0 and len(roles["details"]["models"]) == 3 and -1 <= roles["estimate"] <= 1
    assert list(roles["details"]["roles"]["heroes"]["counts"]) == list(roles["details"]["importance"]["seeds@seed-0"])
