"""reuse compared with chance, the noise ceiling and the sets of other tasks: by hand, by plain loops, by drawing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_circuits.stats.overlap import halves
from tests.fakes.sets import UNITS, Table, rows
from tests.fakes.two_tasks import CORE, KIND, N, noisy, world


def reuse(made, **parameters):
    return made.measure("reuse", **{"task": "t", "p": 0.8} | parameters)


def test_the_sets_of_other_tasks_are_scored_on_the_same_circuits():
    made = world()
    found = reuse(made, beside=["u"])
    _, e = made.sides("t")
    members = noisy()[e]
    mask = np.isin(UNITS, ["L0H0", "L2MLP", "L2H2"])
    assert found.details["beside"]["u"]["reuse"] == pytest.approx(np.mean((members & mask).sum(1) / members.sum(1)))
    assert found.details["beside"]["u"]["units"] == ["L0H0", "L2H2", "L2MLP"]
    own = np.isin(UNITS, CORE)
    assert found.value == pytest.approx(np.mean((members & own).sum(1) / members.sum(1)))
    json.dumps(found.details, allow_nan=False)


def test_the_value_does_not_depend_on_what_is_beside_it():
    assert reuse(world(), beside=["u"]).interval == reuse(world()).interval
    assert reuse(world()).details["beside"] == {}


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (Table(noisy(), right=np.zeros(N, bool)), "of task 'u' correctly"),
        (Table(rows(N, *[(1, [UNITS[i % 12]]) for i in range(N)])), "shared set of task 'u' is empty"),
        (Table(np.zeros((N, 12), bool)), "scores of task 'u' are zero"),
    ],
)
def test_a_task_beside_that_has_no_set_is_told_and_not_judged(table, reason):
    found = reuse(world(u=table), beside=["u"])
    assert found.details["beside"]["u"]["reuse"] is None and reason in found.details["beside"]["u"]["reason"]
    assert any("set of u none" in line for line in found.details["notes"])


def test_chance_is_the_mean_over_random_sets_of_the_same_types():
    every = noisy()
    every[:, UNITS.index("L1H1")], every[:, UNITS.index("L1MLP")] = False, True  # the shared set: one head of nine, two MLPs of three
    made = world(t=Table(every))
    found = reuse(made)
    _, e = made.sides("t")
    members = every[e]
    rng = np.random.default_rng(0)
    mlps, heads = (np.flatnonzero([k == kind for k in KIND]) for kind in ("mlp", "head"))
    scores = []
    for _ in range(4000):
        mask = np.zeros(12, bool)
        mask[rng.choice(heads, 1)] = mask[rng.choice(mlps, 2, replace=False)] = True
        scores.append(np.mean((members & mask).sum(1) / members.sum(1)))
    assert found.details["chance"] == pytest.approx(np.mean(scores), abs=5 * np.std(scores) / 4000**0.5)
    assert reuse(made, definition="size").details["chance"] is None


def test_the_ceiling_is_reuse_between_halves_of_the_discovery_examples():
    groups = tuple(f"g{i // 2}" for i in range(N))
    every = noisy(flicker=0.8)  # so that halves differ in what they share
    made = world(t=Table(every, groups=groups))
    found = reuse(made)
    discovery, _ = made.sides("t")
    members, group = every[discovery], [groups[int(i)] for i in discovery]
    names = list(dict.fromkeys(group))
    scores = []
    for half in halves(len(names), 20):
        first = np.asarray([half[names.index(g)] == 1 for g in group])
        for side in (first, ~first):
            mask = 5 * members[side].sum(0) >= 4 * side.sum()
            scores.append(np.mean((members[~side] & mask).sum(1) / members[~side].sum(1)))
    assert found.details["noise_ceiling"] == pytest.approx(np.mean(scores))
    assert any(f"noise ceiling {np.mean(scores):.2f}" in line for line in found.details["notes"])


def test_an_empty_set_is_zero_with_its_most_frequent_components_and_chance_zero():
    found = reuse(world(t=Table(rows(N, *[(1, [UNITS[i % 12]]) for i in range(N)]))))
    assert (found.value, found.details["chance"], found.details["empty_shared_set"]) == (0, 0, True)
    assert found.details["notes"][0].startswith("the shared set is empty; most frequent: ")


def test_beside_names_others():
    for wrong in (["t"], ["u", "u"]):
        with pytest.raises(ValueError, match="beside names other tasks than 't', each once"):
            reuse(world(), beside=wrong)
