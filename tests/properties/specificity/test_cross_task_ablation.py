"""cross_task_ablation: entries of the matrix, by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Ablate
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.stats.betting import betting_interval, shuffled
from tests.fakes.sets import Table, World, rows

N = 40
A, B = ["L0H0", "L0MLP"], ["L0H0", "L1H1", "L2MLP"]


def every(share, seed=0):
    """A mask [N] with that share of every side of the split; scattered, but the same for all tasks."""
    return np.random.default_rng(seed).permutation(N) >= share * N


def world(**changes):
    """Removing A's set costs A the answers outside `every(.5)`, and B those outside `every(.75)`, of which it had nine in ten."""
    intact = every(0.1, 1)
    tables = {
        "a": Table(rows(N, (N, A)), lambda names: every(0.5) if set(A) <= names else np.ones(N, bool)),
        "b": Table(rows(N, (N, B)), lambda names: every(0.75, 2) & intact if set(A) <= names else every(0.25, 3) & intact, right=intact),
    }
    for name, values in changes.items():
        for key, value in values.items():
            setattr(tables[name], key, value)
    return World(tables)


def cross(made, **parameters):
    return made.measure("cross_task_ablation", **{"task": "b", "circuit": {"task": "a"}} | parameters)


def test_the_value_is_the_mean_paired_difference_on_the_evaluation_examples_of_the_other_task():
    made = world()
    found = cross(made)
    _, evaluation = made.sides("b")
    difference = every(0.1, 1)[evaluation].astype(float) - (every(0.75, 2) & every(0.1, 1))[evaluation]
    assert found.value == pytest.approx(difference.mean())
    assert found.interval == pytest.approx(betting_interval(difference[shuffled(20)], 0.95, -1, 1))
    assert (found.n, found.details["circuit_of"], found.details["evaluated_on"]) == (20, "a", "b")
    assert found.details["accuracy"]["b"] == pytest.approx(every(0.1, 1)[evaluation].mean())
    assert found.details["drop"] == pytest.approx(found.value)
    json.dumps(found.details, allow_nan=False)


def test_the_set_is_that_of_the_other_task_and_its_own_is_compared():
    found = cross(world())
    assert found.details["shared_sets"]["a"]["units"] == A and found.details["shared_sets"]["b"]["units"] == B
    assert found.details["overlap"] == {"both": ["L0H0"], "jaccard": 0.25, "share_of_first": 0.5, "share_of_second": pytest.approx(1 / 3)}
    _, evaluation = world().sides("b")
    intact = every(0.1, 1)[evaluation]
    assert found.details["own_set"]["drop"] == pytest.approx(intact.mean() - (intact & every(0.25, 3)[evaluation]).mean())
    assert "removed: shared set of a {L0H0, L0MLP} (1 head, 1 MLP)" in found.details["notes"]
    assert any("1 in common (Jaccard 0.25)" in line for line in found.details["notes"])


@pytest.mark.parametrize("circuit", [None, {"task": "a"}])
def test_a_task_with_its_own_set_is_the_plain_drop_and_measures_nothing_else(circuit):
    made = world()
    found = made.measure("cross_task_ablation", task="a", circuit=circuit)
    _, evaluation = made.sides("a")
    assert found.value == pytest.approx(1 - every(0.5)[evaluation].mean())
    ablations = [r for asked in made.asked for r in asked if isinstance(r, Ablate)]
    assert [r.sets for r in ablations] == [((),), (tuple(A),)]
    assert "overlap" not in found.details


def test_relative_is_the_drop_as_a_share_of_the_intact_accuracy():
    made = world(b={"survive": lambda names: every(0.4, 2) & every(0.1, 1)})
    found = cross(made, definition="relative")
    _, evaluation = made.sides("b")
    intact = every(0.1, 1)[evaluation].astype(float)
    left = intact * every(0.4, 2)[evaluation]
    assert found.value == pytest.approx(1 - left.sum() / intact.sum())
    low, high = found.interval
    assert low < found.value < high < 1

    def possible(r):
        ends = betting_interval((left - r * intact)[shuffled(20)], 0.95, -r, 1)
        return ends[0] <= 0 <= ends[1]

    assert possible(1 - low - 1e-3) and not possible(1 - low + 1e-3)
    assert possible(1 - high + 1e-3) and not possible(1 - high - 1e-3)


def test_row_divides_by_what_the_set_costs_its_own_task():
    made = world()
    found = cross(made, normalised="row")
    own, other = made.measure("cross_task_ablation", task="a"), cross(made)
    assert found.value == pytest.approx(other.value / own.value)
    assert found.details["own_drop"] == pytest.approx(own.value) and found.details["own_drop_interval"] == list(own.interval)
    low, high = found.interval
    for end, sign in ((low, -1), (high, 1)):  # the contrast of both intervals in quadrature passes 0 there
        below, above = other.value - other.interval[0], other.interval[1] - other.value
        one, two = own.value - own.interval[0], own.interval[1] - own.value
        half = np.hypot(below, end * two) if sign < 0 else np.hypot(above, end * one)
        assert other.value - end * own.value == pytest.approx(-sign * half, abs=1e-6)


def test_row_needs_a_set_that_clearly_hurts_its_own_task():
    with pytest.raises(Invalid, match=r"removing the set costs its own task 'a' is 0\.000 with interval .* not clearly above 0"):
        cross(world(a={"survive": lambda names: np.ones(N, bool)}), normalised="row")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"normalised": "row", "definition": "relative"}, "leave out definition: relative"),
        ({"normalised": "row", "circuit": {"task": "b"}}, "name another task in circuit"),
        ({"normalised": "row", "circuit": None}, "name another task in circuit"),
        ({"normalised": "column"}, "'row'"),
        ({"ablation": "nil"}, "unknown ablation 'nil'"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, reason):
    with pytest.raises(ValueError, match=reason):
        cross(world(), **parameters)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"a": {"members": rows(N, (20, ["L0H0"]), (20, ["L0H1"]))}}, "the shared set of task 'a' is empty"),
        ({"a": {"members": np.zeros((N, 12), bool)}}, "all eap scores of task 'a' are zero"),
        ({"a": {"right": np.zeros(N, bool)}}, "of task 'a' correctly"),
        ({"b": {"right": np.zeros(N, bool)}}, "of task 'b' correctly"),
        ({"b": {"chance": 0.97}}, "not clearly above 0.970"),
        ({"b": {"groups": tuple("xyz"[i % 3] for i in range(N))}}, "form 3 groups"),
    ],
)
def test_what_cannot_be_measured_is_invalid(changes, reason):
    with pytest.raises(Invalid, match=reason):
        cross(world(**changes))


def test_only_discovery_examples_find_the_set():
    """The circuits of the evaluation examples are others in every member."""
    made = world()
    for task, units in (("a", A), ("b", B)):
        _, evaluation = made.sides(task)
        members = rows(N, (N, units))
        members[evaluation] = ~members[evaluation]
        made.tables[task].members = members
    found = cross(made, size=11)
    assert [found.details["shared_sets"][task]["units"] for task in "ab"] == [A, B]


def test_a_task_without_a_shared_set_of_its_own_can_be_evaluated_all_the_same():
    made = world(b={"members": rows(N, *[(1, [f"L{i % 3}H{i // 3 % 3}"]) for i in range(N)])})
    found = cross(made)
    assert found.value == pytest.approx(cross(world()).value)
    assert "b has no shared set of its own to compare with" in found.details["notes"]
    assert list(found.details["shared_sets"]) == ["a"]


def test_a_set_is_not_evaluated_on_prompts_that_it_was_found_on():
    made = world()
    _, evaluation = made.sides("b")
    discovery, _ = made.sides("a")
    prompts = [f"p{i}" for i in range(N)]
    other = [f"q{i}" for i in range(N)]
    for i in range(3):  # 3 of 20 evaluation prompts
        other[int(evaluation[i])] = prompts[int(discovery[i])]
    made.tables["a"].prompts, made.tables["b"].prompts = tuple(prompts), tuple(other)
    with pytest.raises(Invalid, match="3 of 20 evaluation prompts of task 'b' are among the discovery prompts of 'a'"):
        cross(made)
    cross(made, split="in_sample")
    made.tables["b"].prompts = tuple(f"q{i}" for i in range(N))
    cross(made)


def test_what_is_asked_for_next_is_asked_for_at_once():
    made = world()
    cross(made, normalised="row")
    assert [len(asked) for asked in made.asked] == [3, 2, 2, 3]


def test_the_range_depends_on_the_definition():
    prop = PROPERTIES.get("cross_task_ablation")

    def limits(**parameters):
        return prop.range(prop.parameters.model_validate({"task": "b", "circuit": {"task": "a"}, **parameters}))

    assert limits() == (-1, 1)
    assert limits(definition="relative") == (None, 1)
    assert limits(normalised="row") == (None, None)


def test_the_interval_is_over_groups():
    """Twenty groups of two equal examples say no more than twenty examples."""
    groups = tuple(f"g{i // 2}" for i in range(N))
    twice = np.repeat(np.random.default_rng(5).random(20) < 0.4, 2)
    made = world(a={"groups": groups, "survive": lambda names: twice})
    found = made.measure("cross_task_ablation", task="a")
    _, evaluation = made.sides("a")
    values = 1.0 - twice[evaluation][::2]
    assert found.value == pytest.approx(values.mean())
    assert found.interval == pytest.approx(betting_interval(values[shuffled(10)], 0.95, -1, 1))
