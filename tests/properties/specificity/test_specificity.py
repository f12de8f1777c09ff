"""specificity: down a column of the cross-task matrix, by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Ablate
from pytest_circuits.stats.betting import betting_interval, shuffled
from tests.fakes.sets import Table, World, rows

N = 40
A, B, C = ["L0H0", "L0MLP"], ["L0H0", "L1H1"], ["L2H2"]
OWN, BY_B, BY_C = (np.random.default_rng(s).random(N) < q for s, q in ((0, 0.2), (1, 0.6), (2, 0.9)))  # answers of A that survive


def world(a_set=A, b_set=B):
    def survive(names):
        alive = np.ones(N, bool)
        for units, left in ((C, BY_C), (b_set, BY_B), (a_set, OWN)):
            if frozenset(units) == names:
                alive = left
        return alive

    never = Table(rows(N, (N, C)), lambda names: np.zeros(N, bool))
    return World({"a": Table(rows(N, (N, a_set)), survive), "b": Table(rows(N, (N, b_set)), lambda names: np.zeros(N, bool)), "c": never})


def specificity(made, **parameters):
    return made.measure("specificity", **{"task": "a", "tasks": ["b", "c"]} | parameters)


def test_the_value_is_what_the_own_set_costs_beyond_the_mean_of_the_others_on_the_same_examples():
    made = world()
    found = specificity(made)
    _, e = made.sides("a")
    own, b, c = (1 - left[e].mean() for left in (OWN, BY_B, BY_C))
    assert found.value == pytest.approx(own - (b + c) / 2)
    paired = (BY_B[e].astype(float) + BY_C[e]) / 2 - OWN[e]
    assert found.interval == pytest.approx(betting_interval(paired[shuffled(20)], 0.95, -1, 1))
    column = found.details["column"]
    assert [column[t]["drop"] for t in "abc"] == pytest.approx([own, b, c])
    assert column["b"]["relative_drop"] == pytest.approx(b)
    assert found.details["overlap"]["b"]["jaccard"] == pytest.approx(1 / 3) and found.details["overlap"]["c"]["both"] == []
    assert any("the sets differ in size" in line for line in found.details["notes"])
    json.dumps(found.details, allow_nan=False)


def test_only_the_examples_of_the_task_itself_are_ablated():
    """The other tasks' answers under ablation are all wrong in this world, and nobody asks."""
    made = world()
    specificity(made)
    removed = [r for asked in made.asked for r in asked if isinstance(r, Ablate) and r.sets != ((),)]
    assert {r.task.name for r in removed} == {"a"}
    assert [r.sets[0] for r in removed] == [tuple(A), tuple(B), tuple(C)]


def test_pairing_makes_a_constant_difference_of_noisy_answers_narrow():
    """Its own set and B's break the same examples: the difference does not vary although both drops do."""
    made = world()
    made.tables["a"].survive = lambda names: OWN
    found = specificity(made, tasks=["b"])
    drop = made.measure("cross_task_ablation", task="a")
    assert found.value == 0
    assert found.interval[1] - found.interval[0] < 0.75 * (drop.interval[1] - drop.interval[0])


def test_equal_sets_are_zero_and_said_to_be_equal():
    found = specificity(world(b_set=A), tasks=["b"])
    assert found.value == 0 and found.interval[0] < 0 < found.interval[1]
    assert found.details["equal_sets"] == ["b"]
    assert "the set of b is the very same set, so it costs the same by definition" in found.details["notes"]


def test_one_equal_set_of_two_is_named_and_counts_as_it_is():
    found = specificity(world(b_set=A))
    assert found.details["equal_sets"] == ["b"]
    _, e = world().sides("a")
    assert found.value == pytest.approx((BY_C[e].mean() - OWN[e].mean()) / 2)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"tasks": ["a", "b"]}, "'a' is the task itself"),
        ({"tasks": ["b", "b"]}, "names a task twice"),
        ({"tasks": []}, "at least 1"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, reason):
    with pytest.raises(ValueError, match=reason):
        specificity(world(), **parameters)


@pytest.mark.parametrize("task", ["a", "b"])
@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("members", rows(N, (20, ["L0H0"]), (20, ["L0H1"])), "shared set of task '{}' is empty"),
        ("members", np.zeros((N, 12), bool), "scores of task '{}' are zero"),
        ("right", np.zeros(N, bool), "of task '{}' correctly"),
        ("chance", 0.99, "accuracy on task '{}'"),
    ],
)
def test_every_task_must_have_a_behaviour_and_a_set(task, key, value, reason):
    made = world()
    setattr(made.tables[task], key, value)
    with pytest.raises(Invalid, match=reason.format(task)):
        specificity(made)


def test_two_names_for_one_task_are_invalid():
    made = world()
    for name in "ab":
        made.tables[name].prompts = tuple(f"p{i}" for i in range(N))
    with pytest.raises(Invalid, match="tasks 'a' and 'b' have 40 clean prompts in common"):
        specificity(made)
    made.tables["b"].prompts = tuple(f"q{i}" if i >= 4 else f"p{i}" for i in range(N))
    specificity(made)  # a tenth is let pass
