"""stability: the same shared set, found again under another choice; values by plain loops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Attribute
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.stats.overlap import halves, typed_null
from pytest_circuits.stats.split import split_by_group
from tests.fakes.sets import UNITS, Table, World, rows

N = 60
CORE = ["L0H0", "L0MLP", "L1H1"]


def noisy(seed=0, n=N, flicker=0.7):
    """The core always; four other units with probability `flicker`."""
    rng = np.random.default_rng(seed)
    members = rows(n, (n, CORE))
    for unit in ("L1H0", "L2H0", "L2H1", "L2MLP"):
        members[:, UNITS.index(unit)] = rng.random(n) < flicker
    return members


def world(members=None, **more):
    return World({"t": Table(noisy() if members is None else members, **more)})


def stable(made, under, **parameters):
    return made.measure("stability", **{"task": "t", "under": under, "p": 0.7, "size": 7, "resamples": 200} | parameters)


def shared(members, p=0.7):
    """By counting, in integers."""
    return {UNITS[j] for j in range(12) if 10 * members[:, j].sum() >= round(10 * p) * len(members)} if len(members) else set()


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 0.0


def test_halves_of_the_discovery_groups_are_compared_over_several_splits():
    groups = tuple(f"g{i // 2}" for i in range(N))
    made = world(groups=groups)
    found = stable(made, "resampling", repeats=7)
    discovery, _ = made.sides("t")
    members = noisy()[discovery]
    names = list(dict.fromkeys(groups[int(i)] for i in discovery))
    values = []
    for half in halves(len(names), 7):
        first = np.asarray([half[names.index(groups[int(i)])] == 1 for i in discovery])
        values.append(jaccard(shared(members[first]), shared(members[~first])))
    assert found.value == pytest.approx(np.mean(values)) and 0 < found.value < 1
    assert found.details["by_split"] == pytest.approx(values)
    assert found.interval[0] <= found.value <= found.interval[1]
    json.dumps(found.details, allow_nan=False)


def test_a_set_without_noise_is_found_again_exactly():
    found = stable(world(rows(N, (N, CORE))), "resampling")
    assert (found.value, found.interval) == (1.0, (1.0, 1.0))
    assert found.details["bootstrap"]["distinct"] == 1


def test_more_noise_is_less_stable():
    calm, wild = (stable(world(noisy(1, 200, q)), "resampling").value for q in (0.95, 0.7))
    assert calm > 0.9 > wild


def templates(n=N, size=6, odd=None):
    """Groups of `size` examples, t0, t1 …; the odd one has another circuit."""
    members = noisy(2, n, 0.2)
    groups = tuple(f"t{i // size}" for i in range(n))
    mine = np.asarray(groups) == odd
    members[mine] = False
    members[mine, UNITS.index("L2H2")] = True
    return members, groups


def test_each_template_is_compared_with_all_others():
    discovery, _ = world(*templates(120)[:1], groups=templates(120)[1]).sides("t")
    odd = templates(120)[1][int(discovery[0])]
    members, groups = templates(120, odd=odd)
    found = stable(world(members, groups=groups), "template")
    group = np.asarray(groups)[discovery]
    values = {g: jaccard(shared(members[discovery][group == g]), shared(members[discovery][group != g])) for g in dict.fromkeys(group)}
    assert found.value == pytest.approx(np.mean(list(values.values())))
    assert found.details["by_group"] == pytest.approx(values)
    assert values[odd] == 0 and min(v for g, v in values.items() if g != odd) > 0
    assert f"10 of 10 groups compared with all others; least overlap 0.00, of {odd!r}" in found.details["notes"]


def test_templates_that_have_no_set_of_their_own_are_invalid():
    """Two templates of many examples, each with a circuit of its own on every example; what is shared is that of the single ones."""
    n = 200
    members = rows(n, (n, CORE))
    groups = [f"g{i}" for i in range(n)]
    discovery, _ = world(members, groups=tuple(groups)).sides("t")
    for name, start in (("big", 0), ("large", 6)):
        for k, i in enumerate(discovery[start : start + 6]):
            groups[int(i)] = name
            members[int(i)] = False
            members[int(i), 3 + k] = True
    split = None
    for seed in range(200):  # a split that has both on the side of discovery
        chosen = {groups[int(i)] for i in split_by_group(groups, 0.5, seed)[0]}
        if {"big", "large"} <= chosen:
            split = seed
            break
    assert split is not None
    with pytest.raises(Invalid, match="no group of at least 5 discovery examples has a shared set of its own"):
        stable(world(members, groups=tuple(groups)), "template", split_seed=split)


def test_small_templates_belong_to_the_rest_only():
    members, groups = templates(120)
    groups = (*groups[:-12], *[f"s{i // 3}" for i in range(12)])  # the last two templates fall into four of three examples
    made = world(members, groups=groups)
    found = stable(made, "template", split="in_sample")
    assert set(found.details["by_group"]) == {f"t{i}" for i in range(18)}
    assert found.details["groups_compared"] == 22
    assert set(stable(made, "template", split="in_sample", least=3).details["by_group"]) == set(groups)


def test_groups_of_single_examples_are_no_templates():
    with pytest.raises(Invalid, match=r"0 of 30 groups have at least 5 discovery examples.*use under: resampling"):
        stable(world(), "template")
    members, groups = templates(60, 3)
    with pytest.raises(Invalid, match=r"p: 0\.3 of 3 discovery examples is a single one"):
        stable(world(members, groups=groups), "template", least=3, p=0.3)


def test_another_method_finds_another_set_on_the_same_examples():
    members = {"eap": rows(N, (N, CORE)), "atp": rows(N, (N, ["L0H0", "L0MLP", "L2H2", "L2MLP"]))}
    made = world(members)
    found = stable(made, "method", other="atp")
    assert found.value == pytest.approx(2 / 5)
    assert found.interval == pytest.approx((0.4, 0.4))
    assert found.details["other_set"]["units"] == ["L0H0", "L0MLP", "L2H2", "L2MLP"] and found.details["overlap"]["both"] == [
        "L0H0",
        "L0MLP",
    ]
    assert [r.method for asked in made.asked for r in asked if isinstance(r, Attribute)] == ["eap", "atp"]
    assert any("found by atp instead of eap" in line and "(Jaccard 0.40)" in line for line in found.details["notes"])


def test_both_sets_are_found_anew_in_each_resample():
    """Sets that vary together, being the same, agree in every resample; sets that vary apart do not."""
    one = noisy(3)
    same = stable(world({"eap": one, "atp": one}), "method", other="atp")
    assert (same.value, same.interval) == (1.0, (1.0, 1.0))
    apart = stable(world({"eap": one, "atp": noisy(4)}), "method", other="atp")
    assert apart.interval[1] - apart.interval[0] > 0.2


def corruption(order, other, **more):
    """Two tasks of the same prompts, the second in another order."""
    prompts = tuple(f"p{i}" for i in range(N))
    tables = {"t": Table(noisy(), prompts=prompts), "u": Table(other[order], prompts=tuple(prompts[i] for i in order), **more)}
    return World(tables)


def test_another_corruption_is_matched_by_prompt():
    other = noisy(5)
    order = np.random.default_rng(0).permutation(N)
    made = corruption(order, other)
    found = stable(made, "corruption", other_task="u")
    discovery, _ = made.sides("t")
    assert found.value == pytest.approx(jaccard(shared(noisy()[discovery]), shared(other[discovery]))) and found.value < 1
    assert found.n == found.details["matched"] == len(discovery)
    straight = stable(corruption(np.arange(N), other), "corruption", other_task="u")
    assert straight.interval == found.interval


def test_the_other_corruption_needs_no_answers_of_its_own():
    made = corruption(np.arange(N), noisy(5), right=np.zeros(N, bool))
    assert stable(made, "corruption", other_task="u").value < 1


def test_prompts_that_are_not_in_both_are_left_out_up_to_a_half():
    made = corruption(np.arange(N), noisy(5))
    discovery, _ = made.sides("t")
    for missing, fine in ((10, True), (16, False)):
        lost = set(discovery[:missing].tolist())
        made.tables["u"].prompts = tuple(f"{'q' if i in lost else 'p'}{i}" for i in range(N))
        if fine:
            assert stable(made, "corruption", other_task="u").n == 20
        else:
            with pytest.raises(Invalid, match=r"14 of 30 discovery prompts of task 't' are also clean prompts of 'u'.*jaccard"):
                stable(made, "corruption", other_task="u")


def test_the_same_pairs_under_another_name_are_invalid():
    made = corruption(np.arange(N), noisy(5))
    made.tables["t"].digest = made.tables["u"].digest = "d"
    with pytest.raises(Invalid, match="'t' and 'u' are the same prompt pairs"):
        stable(made, "corruption", other_task="u")


def test_a_repeated_prompt_is_matched_once():
    made = corruption(np.arange(N), noisy(5))
    made.tables["u"].prompts = tuple(f"p{i // 2 * 2}" for i in range(N))  # every even prompt twice, no odd one
    made.tables["t"].prompts = tuple(f"p{i // 2 * 2}" for i in range(N))
    found = stable(made, "corruption", other_task="u", split="in_sample")
    assert found.n == N and found.value == pytest.approx(jaccard(shared(noisy()), shared(noisy(5))))


def test_over_chance_subtracts_what_random_sets_of_the_types_would_score():
    members = {"eap": rows(N, (N, CORE)), "atp": rows(N, (N, ["L0H0", "L0MLP", "L2H2", "L2MLP"]))}
    plain, over = (stable(world(members), "method", other="atp", over_chance=flag) for flag in (False, True))
    a, b = (np.asarray([u in units for u in UNITS]) for units in (CORE, ["L0H0", "L0MLP", "L2H2", "L2MLP"]))
    null = typed_null(a, b, ["mlp" if u.endswith("MLP") else "head" for u in UNITS])
    assert over.value == pytest.approx(plain.value - null.mean)
    prop = PROPERTIES.get("stability")
    assert prop.range(prop.parameters(task="t", under="template")) == (0, 1)
    assert prop.range(prop.parameters(task="t", under="template", over_chance=True)) == (-1, 1)


def test_at_p_one_the_number_settles_nothing():
    assert "p: 0.99 or less" in stable(world(), "resampling", p=1).unsettled
    assert stable(world(), "resampling").unsettled is None


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"under": "method"}, "under: method needs other"),
        ({"under": "corruption"}, "under: corruption needs other_task"),
        ({"under": "resampling", "other": "atp"}, "other belongs to under: method, not to under: resampling"),
        ({"under": "template", "other_task": "u"}, "other_task belongs to under: corruption"),
        ({"under": "method", "other": "eap"}, "is the attribution itself"),
        ({"under": "method", "other": "apt"}, "unknown attribution method 'apt'"),
        ({"under": "method", "other": "atp", "other_options": {"nil": 1}}, "no option 'nil'"),
        ({"under": "corruption", "other_task": "t"}, "is the task itself"),
        ({"under": "seed"}, "resampling"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(parameters, reason):
    with pytest.raises(ValueError, match=reason):
        world().measure("stability", task="t", **parameters)


@pytest.mark.parametrize("under", ["resampling", "template", "method"])
@pytest.mark.parametrize(
    ("table", "parameters", "reason"),
    [
        ({"members": rows(N, *[(1, [UNITS[i % 12]]) for i in range(N)])}, {}, "the shared set of task 't' is empty"),
        ({"members": np.zeros((N, 12), bool)}, {}, "scores of task 't' are zero"),
        ({"right": np.zeros(N, bool)}, {}, "of task 't' correctly"),
        ({"groups": tuple("ab"[i % 2] for i in range(N))}, {}, "form 2 groups"),
        ({}, {"p": 0.03}, "is a single one"),
        ({}, {"size": "100%"}, "all 12 components"),
    ],
)
def test_what_cannot_be_measured_is_invalid(under, table, parameters, reason):
    more = {"other": "atp"} if under == "method" else {}
    with pytest.raises(Invalid, match=reason):
        stable(world(**table), under, **parameters, **more)


def test_a_method_without_any_score_is_invalid():
    members = {"eap": rows(N, (N, CORE)), "atp": np.zeros((N, 12), bool)}
    with pytest.raises(Invalid, match="all atp scores of task 't' are zero"):
        stable(world(members), "method", other="atp")


def test_no_set_at_all_by_the_other_method_is_an_overlap_of_nothing():
    members = {"eap": rows(N, (N, CORE)), "atp": rows(N, *[(1, [UNITS[i % 12]]) for i in range(N)])}
    found = stable(world(members), "method", other="atp")
    assert (found.value, found.interval) == (0.0, (0.0, 0.0))
    assert "found by atp instead of eap: no shared set at all, so nothing is in common" in found.details["notes"]
