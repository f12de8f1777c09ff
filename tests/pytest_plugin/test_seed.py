"""`--circuits-seed`: the same claims on other prompts."""

from __future__ import annotations

import pytest

from pytest_circuits.claims.replication import reseed_parameters, reseed_task
from pytest_circuits.core.sources import TaskSource
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.stats.split import split_by_group
from pytest_circuits.tasks.load import load_source
from tests.fakes.project import header

SPEC = """
drawn:
  stated: {task: ioi, split_seed: 3, value: 0.5}
  at_least: 0.7
given:
  stated: {task: swap, value: 0.5}
  at_least: 0.1
"""
HEADER = header("tiny: {path: model}", "ioi: {builtin: ioi, n: 20, seed: 5}, swap: {file: pairs.jsonl}")


def test_both_seeds_are_raised_and_the_report_says_so(box):
    box.spec(SPEC, header=HEADER)
    box.run()
    assert box.report["suite"]["seed"] == 0
    assert box.claims["drawn"]["parameters"]["split_seed"] == 3
    before = len(box.calls)
    box.run("--circuits-seed=4")
    assert box.report["suite"]["seed"] == 4
    drawn = box.claims["drawn"]
    assert (drawn["parameters"]["split_seed"], drawn["seed"]) == (7, 4)
    assert box.claims["given"]["parameters"]["split_seed"] == 4
    assert box.calls[before:].count("encode ioi") == 1 and "encode swap" not in box.calls[before:]
    box.result.stdout.fnmatch_lines(
        ["*(n = 100 examples, split by seed 7)", "  rerun: pytest s.circuits.yaml::drawn::tiny::ioi --circuits-seed=4"]
    )
    assert drawn["nodeid"] == "s.circuits.yaml::drawn::tiny::ioi"


def test_of_prompts_that_cannot_be_drawn_anew_the_report_says_that_they_are_the_same(box):
    box.spec(SPEC, header=HEADER)
    box.run("--circuits-seed=1")
    (warning,) = box.claims["given"]["warnings"]
    assert warning == "--circuits-seed draws no new prompts for swap, since no built-in task makes them: only their split is new"
    assert box.claims["drawn"]["warnings"] == []
    box.run()
    assert box.claims["given"]["warnings"] == []


def test_python_tests_get_other_prompts_as_well(box):
    box.python("""
def test_it(circuits, request):
    seed = request.config.getoption("circuits_seed")
    task = circuits.task("ioi", n=20, seed=2)
    assert task.options["seed"] == 2 + seed
    found = circuits.model("model").measure("stated", task=task, split_seed=1)
    assert found.parameters.split_seed == 1 + seed
    circuits.check(found, at_least=0.1)
""")
    box.run().assert_outcomes(passed=1)
    box.run("--circuits-seed=3").assert_outcomes(passed=1)
    assert box.report["claims"][0]["parameters"]["split_seed"] == 4


@pytest.mark.parametrize("wrong", ["-1", "x"])
def test_a_seed_is_a_whole_number(box, wrong):
    box.spec(SPEC, header=HEADER)
    assert box.run(f"--circuits-seed={wrong}").ret == pytest.ExitCode.USAGE_ERROR


def test_a_plan_is_made_for_the_same_prompts(box):
    box.spec(SPEC, header=HEADER)
    box.run("--circuits-seed=2")
    assert box.run("--circuits-plan").ret == 0
    box.result.stdout.fnmatch_lines(["2 claims; to measure: 1 Attribute, 1 Encode; *"])
    assert box.run("--circuits-plan", "--circuits-seed=2").ret == 0
    box.result.stdout.fnmatch_lines(["2 claims; nothing to measure *"])


def test_prompts_of_another_seed_are_other_prompts_on_other_sides():
    source = TaskSource.make("t", "builtin", "addition", {"n": 100, "seed": 0})
    first, second = load_source(source), load_source(reseed_task(source, 1))
    assert len({p.clean for p in first} & {p.clean for p in second}) < 10
    groups = [str(i) for i in range(40)]
    assert split_by_group(groups, 0.5, 0)[1].tolist() != split_by_group(groups, 0.5, 1)[1].tolist()
    assert reseed_task(source, 0) == source


def test_a_property_inside_another_one_is_judged_on_the_same_new_split():
    parameters = PROPERTIES.get("trajectory").parameters(of={"reuse": {"task": "t", "split_seed": 2}}, shape="spread")
    made = reseed_parameters(parameters, 5)
    assert made.of.parameters.split_seed == 7 and parameters.of.parameters.split_seed == 2
    assert made.model_copy(update={"of": parameters.of}) == parameters
    assert reseed_parameters(parameters, 0) is parameters


def test_no_baseline_is_kept_of_other_prompts(box, monkeypatch):
    """A baseline belongs to the spec's own prompts."""
    monkeypatch.delenv("CI", raising=False)
    box.spec(SPEC, header=HEADER)
    result = box.run("--circuits-seed=4", "--circuits-update-baseline=new")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--circuits-update-baseline with --circuits-seed would keep the results of other prompts*"])
    assert not list(box.path.glob("**/*baseline*"))
