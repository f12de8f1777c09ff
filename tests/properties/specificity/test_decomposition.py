"""decomposition: parts of two shared sets, what each costs which task, beside controls; by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_circuits.core.units import head_mlp_split
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Ablate, MeasureNorms
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.distributions import t_quantile
from tests.fakes.sets import UNITS, UNIVERSE, Table, World, rows

N = 40
A = ["L0H0", "L0H1", "L0MLP", "L1H0"]
B = ["L0H1", "L0MLP", "L1H1", "L1H2"]
CORE, SPECIFIC, COMPLEMENTARY = {"L0H1", "L0MLP"}, {"L0H0", "L1H0"}, {"L1H1", "L1H2"}
LEFT = {  # share of answers that survive, by part and task
    "core": {"a": 0.2, "b": 0.4, "c": 0.9},
    "specific": {"a": 0.5, "b": 0.9, "c": 1.0},
    "complementary": {"a": 0.8, "b": 0.3, "c": 1.0},
}
PARTS = {"core": frozenset(CORE), "specific": frozenset(SPECIFIC), "complementary": frozenset(COMPLEMENTARY)}


def mask(share, seed):
    return np.random.default_rng(seed).permutation(N) < share * N


def survive(task):
    def alive(names):
        for part, units in PARTS.items():
            if units == names:
                return mask(LEFT[part][task], 7)
        return mask(0.95, sum(UNITS.index(u) for u in names))  # any other set, such as a control

    return alive


def world(**tables):
    made = {
        "a": Table(rows(N, (N, A)), survive("a")),
        "b": Table(rows(N, (N, B)), survive("b")),
        "c": Table(rows(N, (N, ["L2H0"])), survive("c")),
    }
    return World(made | tables, norms=np.arange(12.0))


def decompose(made, part="core", **parameters):
    return made.measure("decomposition", **{"tasks": ["a", "b"], "part": part, "draws": 20} | parameters)


def drops(made, part, task):
    _, e = made.sides(task)
    return 1.0 - mask(LEFT[part][task], 7)[e]


@pytest.mark.parametrize(("part", "own", "other"), [("core", "a", "b"), ("specific", "a", "b"), ("complementary", "b", "a")])
def test_selectivity_is_the_drop_on_the_own_task_minus_that_on_the_other(part, own, other):
    made = world()
    found = decompose(made, part)
    one, two = drops(made, part, own), drops(made, part, other)
    assert found.value == pytest.approx(one.mean() - two.mean())
    assert found.details["part"]["own_task"] == own
    assert set(found.details["part"]["units"]) == PARTS[part]
    assert [found.details["measured_on"][t]["drop"] for t in (own, other)] == pytest.approx([one.mean(), two.mean()])
    json.dumps(found.details, allow_nan=False)


def test_the_interval_joins_those_of_independent_tasks_in_quadrature():
    made = world()
    found = decompose(made, "specific", measure_on=["a", "b", "c"])
    groups = [str(i) for i in range(20)]
    (x, (xl, xh), _), (y, (yl, yh), _), (z, (zl, zh), _) = (
        grouped_mean_interval(drops(made, "specific", t), groups, 0.95, -1, 1) for t in "abc"
    )
    assert found.value == pytest.approx(x - (y + z) / 2)
    low = found.value - ((x - xl) ** 2 + ((yh - y) / 2) ** 2 + ((zh - z) / 2) ** 2) ** 0.5
    high = found.value + ((xh - x) ** 2 + ((y - yl) / 2) ** 2 + ((z - zl) / 2) ** 2) ** 0.5
    assert found.interval == pytest.approx((max(-1, low), min(1, high)))


def test_a_third_task_needs_no_shared_set_and_its_circuits_are_not_asked_for():
    made = world(c=Table(np.zeros((N, 12), bool), survive("c")))
    found = decompose(made, "core", measure_on=["c", "a"])
    assert found.value == pytest.approx(drops(made, "core", "a").mean() - drops(made, "core", "c").mean())
    assert list(found.details["measured_on"]) == ["a", "c"]
    assert {r.task.name for asked in made.asked for r in asked if isinstance(r, Ablate) and r.sets != ((),)} == {"a", "c"}


def test_controls_are_of_the_parts_types_and_outside_both_sets():
    found = decompose(world(), "core")
    control = found.details["control"]
    assert control["draws"] == 20 and control["expected_share_outside_both"] == 1
    for one in control["sets"]:
        assert head_mlp_split(one) == {"heads": 1, "mlps": 1}
        assert not set(one) & (set(A) | set(B))
    entry = found.details["measured_on"]["a"]["control"]
    _, e = world().sides("a")
    without = np.asarray([mask(0.95, sum(UNITS.index(u) for u in one))[e].mean() for one in control["sets"]])
    assert entry["accuracy_without"] == pytest.approx(without.mean())
    assert entry["necessity"] == pytest.approx(without.mean() - mask(0.2, 7)[e].mean())
    assert entry["necessity_interval"][0] < entry["necessity"] < entry["necessity_interval"][1]
    assert control["distinct_sets"] < 20 and entry["rank_p"] is None
    assert f"only {control['distinct_sets']} different" in entry["rank_p_reason"]


def test_where_both_sets_leave_too_little_the_control_is_drawn_outside_the_part_alone_and_says_so():
    both = [*A, "L1MLP", "L2MLP"]
    made = world(a=Table(rows(N, (N, both)), survive("a")), b=Table(rows(N, (N, both[1:3])), survive("b")))
    found = decompose(made, "core")
    control = found.details["control"]
    assert set(found.details["part"]["units"]) == CORE and control["expected_share_outside_both"] == 0.5  # the MLP cannot avoid A
    assert all("L0MLP" not in one and not {"L0H0", "L1H0"} & set(one) for one in control["sets"])


def test_against_control_subtracts_what_random_sets_cost_and_counts_the_draws():
    made = world()
    found = decompose(made, "core", against="control")
    sets = found.details["control"]["sets"]
    sides = {}
    for task in "ab":
        _, e = made.sides(task)
        table = np.stack([mask(0.95, sum(UNITS.index(u) for u in one))[e] for one in sets]).astype(float)
        sides[task] = (table, table.mean(0) - mask(LEFT["core"][task], 7)[e])
    assert found.value == pytest.approx(sides["a"][1].mean() - sides["b"][1].mean())
    by_draw = sides["a"][0].mean(1) - sides["b"][0].mean(1)
    half = t_quantile(0.95, 19) * by_draw.std(ddof=1) / 20**0.5
    assert found.details["interval_parts"]["draws_half_width"] == pytest.approx(half)
    groups = [str(i) for i in range(20)]
    (x, (xl, _), _), (y, (_, yh), _) = (grouped_mean_interval(sides[t][1], groups, 0.95, -1, 1) for t in "ab")
    assert found.interval[0] == pytest.approx(max(-1, found.value - ((x - xl) ** 2 + (yh - y) ** 2 + half**2) ** 0.5))


def test_a_matched_control_asks_for_norms_and_takes_neighbours():
    made = world()
    found = decompose(made, "specific", control="c3_matched")
    assert found.details["control"]["matched_by_layer"] == 1  # layer 1 has no head outside both sets
    (request,) = [r for asked in made.asked for r in asked if isinstance(r, MeasureNorms)]
    assert (request.task.name, request.part.which) == ("a", "discovery")
    assert {u[:2] for one in found.details["control"]["sets"] for u in one} <= {"L0", "L1", "L2"}
    assert all(not set(one) & (set(A) | set(B)) for one in found.details["control"]["sets"])


def test_a_control_that_cannot_be_drawn_is_a_reason_or_invalid_where_it_is_subtracted():
    mlps = ["L0MLP", "L1MLP", "L2MLP", "L0H1"]
    made = world(a=Table(rows(N, (N, mlps)), survive("a")), b=Table(rows(N, (N, mlps)), survive("b")))
    reason = "3 MLPs are needed but only 0 of 3 lie outside the shared set"
    found = decompose(made, "core")
    assert found.details["control"]["sets"] == [] and reason in found.details["control"]["reason"]
    assert any(reason in line for line in found.details["notes"])
    with pytest.raises(Invalid, match=reason):
        decompose(made, "core", against="control")


def test_a_control_that_is_always_the_same_set_is_none():
    two = ["L0MLP", "L1H0"]
    made = world(a=Table(rows(N, (N, [*two, "L0H0", "L0H1", "L0H2", "L1H1", "L1H2", "L2MLP"])), survive("a")),
                 b=Table(rows(N, (N, [*two, "L2H1", "L2H2"])), survive("b")))  # fmt: skip
    with pytest.raises(Invalid, match="'c3' allows a single set, which is not a random control"):
        decompose(made, "core", against="control", size=9)


def test_no_control_spares_the_draws():
    made = world()
    found = decompose(made, control="none")
    assert max(len(r.sets) for asked in made.asked for r in asked if isinstance(r, Ablate)) == 1
    assert "not compared with random sets: control: none" in found.details["notes"]
    assert found.value == decompose(world()).value


def test_a_part_below_the_minimum_is_invalid_with_the_arithmetic():
    made = world(b=Table(rows(N, (N, A)), survive("b")))
    with pytest.raises(
        Invalid, match=r"specific part has 0 components and at least 2 .* sets of 4 \(a\) and 4 \(b\) components have 4 in common"
    ):
        decompose(made, "specific")
    with pytest.raises(Invalid, match="core part has 2 components and at least 3 are needed"):
        decompose(world(), "core", minimum=3)
    one = world(b=Table(rows(N, (N, A[:3])), survive("b")))
    with pytest.raises(Invalid, match=r"specific part has 1 components .* lower minimum"):
        decompose(one, "specific")
    assert decompose(one, "specific", minimum=1).details["part"]["units"] == ["L1H0"]


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"tasks": ["a", "a"]}, "both tasks are 'a'"),
        ({"tasks": ["a"]}, "at least 2"),
        ({"part": "rest"}, "complementary"),
        ({"measure_on": ["b", "c"]}, "must name the part's own task 'a' and others"),
        ({"measure_on": ["a"]}, "and others, each once"),
        ({"measure_on": ["a", "b", "b"]}, "each once"),
        ({"part": "complementary", "measure_on": ["a", "c"]}, "own task 'b'"),
        ({"control": "c4"}, "unknown control 'c4'"),
        ({"control": "none", "against": "control"}, "needs a control"),
        ({"minimum": 0}, "greater than or equal to 1"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, reason):
    with pytest.raises(ValueError, match=reason):
        decompose(world(), **parameters)


@pytest.mark.parametrize("task", ["a", "b", "c"])
def test_every_measured_task_must_pass_the_gate(task):
    made = world()
    made.tables[task].right = np.zeros(N, bool)
    with pytest.raises(Invalid, match=f"of task '{task}' correctly"):
        decompose(made, measure_on=["a", "b", "c"])


def test_tasks_of_the_same_prompts_are_not_independent():
    made = world()
    for name in "ac":
        made.tables[name].prompts = tuple(f"p{i}" for i in range(N))
    made.tables["b"].prompts = tuple(f"q{i}" for i in range(N))
    decompose(made)
    with pytest.raises(Invalid, match="'a' and 'c' have 40 clean prompts in common"):
        decompose(made, measure_on=["a", "b", "c"])


def test_the_universe_of_the_fakes_is_what_the_hand_calculations_assume():
    assert (UNIVERSE.components, len(UNITS)) == (12, 12)
