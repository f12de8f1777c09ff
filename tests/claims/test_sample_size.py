"""What an open claim is told to do: more prompts where they help, counted as they count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_circuits import load_task as real_task
from pytest_circuits.claims.evaluation import evaluate_claim
from pytest_circuits.claims.sample_size import sample_size_of
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.verdict import Bound, Estimate, SampleSize, decide
from pytest_circuits.measurement.requests import Describe, Encode
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import CircuitParameters, Parameters, TaskName
from pytest_circuits.properties.protocol import Property
from pytest_circuits.properties.release.drift import Drift
from pytest_circuits.report.messages.verdicts import reason
from tests.fakes.executor import TASK, load_task


def _judge(claim: Any) -> Any:
    yield Describe(claim.model)
    for task in claim.tasks.values():
        yield Encode(claim.model, task)
    return Estimate(0.5, (0.4, 0.6), 12, claim.parameters.confidence)


@pytest.fixture
def question(model, register):
    def ask(grows=True, **parameters):
        register(PROPERTIES, "open", Property("open", Parameters, _judge, grows=grows))
        return Claim("open", Parameters(**parameters), model, {"swap": TASK})

    return ask


def with_most(executor, most):
    """24 pairs in 12 groups, of which the task could have `most`."""
    executor.provide_task(TASK, replace(load_task(TASK), most_groups=most))
    return executor


@pytest.mark.parametrize(("most", "told"), [
    (None, "about 26 groups of prompts instead of 6 would probably settle it"),
    (200, "about 26 groups of prompts instead of 6 would probably settle it"),
    (12, "about 26 groups of prompts instead of 6 would probably settle it, but task 'swap' has only 6 for this: widen the task"),
    (40, "task 'swap' has only 20 for this"),
])  # fmt: skip
def test_groups_are_counted_where_prompts_come_in_groups_and_it_is_said_when_there_are_no_more(new_executor, question, most, told):
    """A gap of half the half-width takes 4.4 times as much; half of the groups are evaluation ones."""
    text = reason(evaluate_claim(with_most(new_executor(), most), question().with_bound(Bound(at_least=0.45))).verdict)
    assert told in text and ("has only" in told or text.endswith(told))


@pytest.mark.parametrize(
    ("grows", "parameters", "groups"), [(True, {"split": 0.75}, 5), (False, {"split": 0.75}, 7), (True, {"split": "in_sample"}, 12)]
)
def test_the_side_that_the_estimate_is_made_of_is_the_one_that_is_counted(new_executor, question, grows, parameters, groups):
    """Of 12 groups at least five are kept for either side."""
    executor = with_most(new_executor(), 24)
    asked = question(grows, **parameters)
    evaluate_claim(executor, asked.with_bound(Bound(at_least=0.45)))
    assert sample_size_of(executor, asked) == SampleSize("swap", groups, 2 * groups, 2 * groups)


@pytest.mark.parametrize(("grows", "given", "groups"), [
    (True, {}, 5), (False, {}, 7), (True, {"overlap": "jaccard"}, 7),
])  # fmt: skip
def test_drift_has_the_examples_of_the_claim_that_it_is_about(new_executor, question, model, register, monkeypatch, grows, given, groups):
    """Also where there are no more groups, which it is told like that claim. Overlaps compare circuits of discovery examples."""

    class Circuits(CircuitParameters):
        task: TaskName = "swap"
        p: float = 0.8

    register(PROPERTIES, "open", Property("open", Circuits, _judge, grows=grows))
    monkeypatch.setitem(vars(PROPERTIES.get("drift")), "estimate", _judge)
    executor = with_most(new_executor(), 12)
    asked = Claim("drift", Drift.model_validate({"of": {"open": {"split": 0.75}}, "against": "old", **given}), model, {"swap": TASK})
    text = reason(evaluate_claim(executor, asked.with_bound(Bound(at_least=0.45))).verdict)
    assert sample_size_of(executor, asked) == SampleSize("swap", groups, 2 * groups, groups)
    assert f"instead of {groups} would" in text and f"task 'swap' has only {groups} for this" in text


def test_a_number_that_nobody_has_is_not_promised():
    estimate, supply = Estimate(0.2, (-0.4, 0.8), 40), SampleSize("swap", 20, 40, 39)
    close = reason(decide(estimate, Bound(at_least=0.19), supply))
    assert "so close to the bound that settling it would take about 4000 times as many examples: move the bound" in close
    assert "about 790 groups of prompts instead of 20" in reason(decide(estimate, Bound(at_least=0.1), supply))


def test_nothing_is_measured_to_find_out(new_executor, question):
    executor = new_executor()
    assert sample_size_of(executor, question()) is None and executor.opener.opened == []


def test_a_count_is_not_told_a_number_of_examples():
    """Intervals of counts do not shrink with the square root of n."""
    for bound in (Bound(at_most=400), Bound(at_least=390), Bound(at_most=977)):
        verdict = decide(Estimate(400.0, (388.0, 977.0), 64, shrinks=False), replace(bound, at_most=bound.at_most and bound.at_most - 1))
        assert verdict.arguments["outlook"] == "steps"
        assert reason(verdict).endswith("so the number of examples that would settle it is unknown: add prompts, or move the bound")


@pytest.mark.parametrize(("name", "parameters", "most"), [
    ("sva", {}, 39), ("capitals", {}, 40), ("addition", {}, None), ("ioi", {}, None), ("copycolors", {}, None),
])  # fmt: skip
def test_built_in_tasks_know_how_many_groups_they_can_have(name, parameters, most):
    """Those with few; drawn often enough, all of them turn up and no more."""
    task = real_task(name, n=64, **parameters)
    if name == "copycolors":
        assert task.most_groups > 100
        return
    assert task.most_groups == most
    if most is not None:
        found = {pair.group for pair in real_task(name, n=400).pairs}
        assert len(found) == most


def test_a_file_knows_all_of_its_groups_also_those_beyond_n(tmp_path):
    rows = "".join(
        f'{{"clean": "a{i}", "corrupt": "b{i}", "answer": "x", "foil": "y"{group}}}\n'
        for i, group in enumerate([', "group": "g"', ', "group": "g"', "", "", ', "group": "h"'])
    )
    (tmp_path / "t.jsonl").write_text(rows, encoding="utf-8")
    assert real_task(tmp_path / "t.jsonl").most_groups == 4 == real_task(tmp_path / "t.jsonl", n=2).most_groups
