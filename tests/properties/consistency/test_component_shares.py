"""accuracy, shared_size, composition and layer_profile against numbers worked out by hand."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.properties.consistency.layer_profile import LayerProfile, third
from pytest_circuits.properties.consistency.shared_size import SHARED_SIZE, SharedSize
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.split import split_by_group
from tests.fakes.components import Fake, Study, planted_scores

UNIVERSE = Universe(4, 3)  # 16 components: L0H0 L0H1 L0H2 L0MLP L1H0 …
N = 40
GROUPS = tuple(f"g{i}" for i in range(N))
EVALUATION = split_by_group(GROUPS, 0.5, 0)[1]


def circuits(*rows):
    """Scores: row i gives the units of example i's circuit, the first ones the stronger; all examples cycle through the rows."""
    scores = np.zeros((N, UNIVERSE.components))
    for i in range(N):
        units = rows[i % len(rows)]
        scores[i, UNIVERSE.index(units)] = np.arange(len(units), 0, -1)
    return scores


def study(scores=None, **fake):
    return Study(UNIVERSE, {"t": Fake(planted_scores(N, UNIVERSE, ["L0H0"]) if scores is None else scores, **fake)})


def plain(details):
    """Details survive JSON, without NaN."""
    return json.loads(json.dumps(details, allow_nan=False))


# accuracy


def test_accuracy_is_the_mean_over_the_groups_of_the_evaluation_examples():
    """Groups of one and of three examples count the same; the interval is the betting interval."""
    groups = tuple(f"g{i // 2}" if i < 20 else f"h{i // 4}" for i in range(N))
    right = np.arange(N) % 3 > 0
    found = study(correct=lambda s, mode, n: right, groups=groups, chance=0.25).estimate("accuracy", task="t")
    rows = split_by_group(groups, 0.5, 0)[1]
    means = [np.mean([right[i] for i in rows if groups[i] == g]) for g in dict.fromkeys(groups[i] for i in rows)]
    assert found.value == pytest.approx(np.mean(means))
    assert found.interval == grouped_mean_interval(right[rows], [groups[i] for i in rows], 0.95)[1]
    details = plain(found.details)
    assert (details["correct"], details["n"], details["chance"]) == (int(right[rows].sum()), len(rows), 0.25)
    assert details["groups_evaluated"] == len(means)
    assert details["per_group"]["standard_deviation"] == pytest.approx(np.std(means, ddof=1))
    worst = min(means)
    assert min(details["per_group"]["lowest"].values()) == pytest.approx(worst, abs=1e-4)


def test_accuracy_has_no_gate_since_it_is_the_accuracy():
    """A model that is always wrong is measured, not refused, whatever min_accuracy says."""
    found = study(correct=lambda s, mode, n: np.zeros(n, bool), chance=0.5).estimate("accuracy", task="t", min_accuracy=0.9)
    assert found.value == 0 and found.interval[0] == 0 and 0 < found.interval[1] < 0.3
    assert "not clearly above the 0.500" in found.details["notes"][0]


def test_accuracy_in_sample_counts_all_examples():
    """And only them: the intact model is the only thing that is measured."""
    made = study(correct=lambda s, mode, n: np.arange(n) < 30)
    found = made.estimate("accuracy", task="t", split="in_sample")
    assert (found.n, found.value) == (N, 0.75)
    assert [type(one).__name__ for one in made.asked] == ["Encode", "Ablate"]
    assert made.asked[1].sets == ((),)


def test_accuracy_with_too_few_groups_is_invalid():
    with pytest.raises(Invalid, match="form 3 groups"):
        study(groups=tuple(f"g{i % 3}" for i in range(N))).estimate("accuracy", task="t")


# shared_size


def test_shared_size_counts_the_units_in_a_share_p_of_the_discovery_circuits():
    """L0H0 is in all circuits, L0MLP in half of them, the others in a quarter (30% of these discovery examples at most)."""
    scores = circuits(["L0H0", "L0MLP"], ["L0H0", "L3H1"], ["L0H0", "L0MLP"], ["L0H0", "L2MLP"])
    made = study(scores)
    for p, units in ((0.9, ["L0H0"]), (0.35, ["L0H0", "L0MLP"])):
        found = made.estimate("shared_size", task="t", p=p, size=2)
        assert found.value == len(units) / 16
        assert found.details["shared_set"]["units"] == units
        assert found.interval[0] <= found.value <= found.interval[1]
        of_circuit = made.estimate("shared_size", task="t", p=p, size=2, of="circuit")
        assert of_circuit.value == len(units) / 2
    details = plain(found.details)
    assert details["shared_set"] | {"units": 0} == {"units": 0, "size": 2, "heads": 1, "mlps": 1, "per_layer": [2, 0, 0, 0]}


def test_shared_size_of_a_threshold_circuit_is_a_share_of_the_mean_circuit():
    """Circuits above 30%: scores 2 and 1 give both units; 4 and 1 only the first."""
    scores = np.zeros((N, 16))
    scores[:, 0] = np.where(np.arange(N) % 2, 4, 2)
    scores[:, 5] = 1
    found = study(scores).estimate("shared_size", task="t", p=0.9, threshold=0.3, of="circuit")
    discovery = split_by_group(GROUPS, 0.5, 0)[0]
    mean = 2 - np.mean(discovery % 2)
    assert found.details["mean_circuit_size"] == pytest.approx(mean)
    assert found.value == pytest.approx(1 / mean)
    assert found.details["divided_by"] == pytest.approx(mean)
    assert found.interval[0] < found.value < found.interval[1]


def test_more_units_than_a_circuit_has_can_be_shared_but_not_more_than_1_over_p_times_as_many():
    """Each of three units is in two of three circuits of two: S at P = 0.6 has three, 1.5 circuits."""
    scores = circuits(["L0H0", "L0H1"], ["L0H1", "L0H2"], ["L0H2", "L0H0"])[:39]
    made = Study(UNIVERSE, {"t": Fake(scores)})
    found = made.estimate("shared_size", task="t", p=0.5, size=2, of="circuit", split="in_sample")
    assert found.value == 1.5 and found.interval[1] <= 2
    assert SHARED_SIZE.range(SharedSize(task="t", p=0.5, of="circuit")) == (0, 2)
    assert SHARED_SIZE.range(SharedSize(task="t", p=0.5)) == (0, 1)


def test_the_shared_set_comes_from_the_discovery_examples():
    """On the evaluation examples other units are the strongest, and more of them."""
    scores = planted_scores(N, UNIVERSE, ["L0H0"])
    scores[EVALUATION] = planted_scores(N, UNIVERSE, ["L3H0", "L3MLP"], 1)[EVALUATION]
    made = study(scores)
    found = made.estimate("shared_size", task="t", p=0.9, size=2)
    assert (found.details["shared_set"]["units"], found.n) == (["L0H0"], 20)
    assert made.estimate("circuit_match", task="t", known=["L0H0"], p=0.9, size=2).value == 1
    assert made.estimate("composition", task="t", size=2).value == 0.5


def test_an_empty_shared_set_has_size_0_and_says_so():
    scores = np.zeros((N, 16))
    scores[np.arange(N), np.arange(N) % 16] = 1
    found = study(scores).estimate("shared_size", task="t", p=0.9, size=1)
    assert found.value == 0 and found.details["empty_shared_set"] and "it is empty" in found.details["notes"][0]


@pytest.mark.parametrize(("p", "settled"), [(1.0, False), (0.95, False), (0.9, True)])
def test_a_shared_set_that_needs_every_example_settles_nothing(p, settled):
    """20 discovery examples: P = 0.95 asks for 19.0 of them, in exact arithmetic; of 19 it would be all."""
    made = Study(UNIVERSE, {"t": Fake(planted_scores(38, UNIVERSE, ["L0H0"]))})
    found = made.estimate("shared_size", task="t", p=p, size=1)
    assert found.details["discovery"] == 19
    assert (found.unsettled is None) == settled


def test_a_bound_of_p_exactly_at_all_but_one_example_settles():
    found = study().estimate("shared_size", task="t", p=0.95, size=1)
    assert found.details["discovery"] == 20 and found.unsettled is None


# composition


def test_composition_averages_the_shares_of_the_evaluation_examples():
    """Circuits of 4: one with 1 MLP, one with 3; 12 heads and 4 MLPs in the model."""
    scores = circuits(["L0H0", "L0H1", "L1H0", "L1MLP"], ["L0MLP", "L1MLP", "L3MLP", "L2H1"])
    made = study(scores)
    second = np.mean(EVALUATION % 2)
    expected = {
        "mlp_share": 0.25 + 0.5 * second,
        "head_share_of_heads": (3 - 2 * second) / 12,
        "mlp_share_of_mlps": (1 + 2 * second) / 4,
    }
    for what, value in expected.items():
        found = made.estimate("composition", task="t", size=4, what=what)
        assert found.value == pytest.approx(value)
        assert found.interval[0] < value < found.interval[1]
    details = plain(found.details)
    assert details["means"] == pytest.approx(expected)
    assert details["chance"] == {"mlp_share": 0.25, "head_share_of_heads": 0.25, "mlp_share_of_mlps": 0.25}
    assert details["per_layer"]["mlps"] == pytest.approx([second, 1, 0, second])
    assert details["per_layer"]["heads"] == pytest.approx([2 * (1 - second), 1 - second, second, 0])


def test_examples_without_a_circuit_are_left_out_of_the_composition_and_counted():
    """Otherwise their 0 of 0 MLPs would count as something."""
    scores = circuits(["L0MLP", "L1MLP"])
    scores[EVALUATION[:5]] = 0
    found = study(scores).estimate("composition", task="t", size=2)
    assert (found.value, found.n, found.details["examples_without_circuit"]) == (1, 15, 5)
    scores[EVALUATION] = 0
    with pytest.raises(Invalid, match="none of the 20 evaluation examples"):
        study(scores).estimate("composition", task="t", size=2)


# layer_profile


@given(st.integers(1, 300))
def test_thirds_are_symmetric_ordered_and_of_nearly_equal_size(layers):
    """Early and late are as many, in order, and no third is off by more than a layer from the exact one."""
    parts = [third(layer, layers) for layer in range(layers)]
    assert parts == sorted(parts, key=["early", "middle", "late"].index)
    counts = [parts.count(name) for name in ("early", "middle", "late")]
    assert counts[0] == counts[2]
    assert all(abs(count - Fraction(layers, 3)) < 1 for count in counts)
    assert [{"early": "late", "late": "early"}.get(part, part) for part in reversed(parts)] == parts


@pytest.mark.parametrize(
    ("layers", "counts"),
    [(1, (0, 1, 0)), (2, (1, 0, 1)), (3, (1, 1, 1)), (4, (1, 2, 1)), (5, (2, 1, 2)), (12, (4, 4, 4)), (28, (9, 10, 9))],
)
def test_thirds_of_some_models(layers, counts):
    parts = [third(layer, layers) for layer in range(layers)]
    assert tuple(parts.count(name) for name in ("early", "middle", "late")) == counts


def test_layer_profile_averages_the_share_of_the_layers_by_count_and_by_score():
    """A circuit with scores 3, 2, 1 in layers 0, 0, 3 and one with 2, 1 in layers 3, 1."""
    made = study(circuits(["L0H0", "L0MLP", "L3H2"], ["L3MLP", "L1H1"]))
    second = np.mean(EVALUATION % 2)
    for given_layers, count, score in (
        ({"part": "early"}, 2 / 3 * (1 - second), 5 / 6 * (1 - second)),
        ({"part": "middle"}, second / 2, second / 3),
        ({"part": "late"}, 1 / 3 * (1 - second) + second / 2, 1 / 6 * (1 - second) + 2 / 3 * second),
        ({"layers": [0, 2]}, 2 / 3 * (1 - second) + second / 2, 5 / 6 * (1 - second) + second / 3),
    ):
        assert made.estimate("layer_profile", task="t", size=3, **given_layers).value == pytest.approx(count)
        found = made.estimate("layer_profile", task="t", size=3, weight="attribution", **given_layers)
        assert found.value == pytest.approx(score)
        assert found.interval[0] <= found.value <= found.interval[1]
    details = plain(found.details)
    assert (details["layers"], details["chance"]) == ([0, 1, 2], 0.75)
    assert details["count_per_layer"] == pytest.approx([2 * (1 - second), second, 0, 1])
    assert sum(details["share_per_layer"]["attribution"]) == pytest.approx(1, abs=1e-5)


def test_only_scores_inside_the_circuit_weigh_in_the_layer_profile():
    """Half of all |score| lies outside, in another layer."""
    scores = circuits(["L0H0", "L3H0"])
    scores[:, UNIVERSE.index(["L1H0", "L1H1", "L1H2"])] = -0.9
    assert study(scores).estimate("layer_profile", task="t", size=2, part="early", weight="attribution").value == pytest.approx(2 / 3)


def test_layer_profile_says_that_sums_over_readers_favour_early_layers():
    told = [study().estimate("layer_profile", task="t", part="early", attribution=method).details["notes"] for method in ("eap", "atp")]
    assert [any("favours early" in line for line in lines) for lines in told] == [True, False]


@pytest.mark.parametrize(
    ("given_layers", "reason"),
    [
        ({"layers": [2, 4]}, "layers 2–4 are asked for, but this model has layers 0–3"),
        ({"layers": [0, 3]}, "all 4 layers"),
    ],
)
def test_layers_that_do_not_exist_and_all_layers_are_invalid(given_layers, reason):
    with pytest.raises(Invalid, match=reason):
        study().estimate("layer_profile", task="t", **given_layers)


def test_a_third_without_layers_is_invalid():
    made = Study(Universe(1, 20), {"t": Fake(planted_scores(N, Universe(1, 20), ["L0H0"]))})
    with pytest.raises(Invalid, match="a model of 1 layers has none in its early third"):
        made.estimate("layer_profile", task="t", part="early")


@pytest.mark.parametrize(
    "wrong", [{}, {"part": "early", "layers": [0, 1]}, {"layers": [2, 1]}, {"layers": [-1, 1]}, {"layers": [1]}, {"part": "first"}]
)
def test_a_range_of_layers_is_given_once_and_in_order(wrong):
    with pytest.raises(ValidationError):
        LayerProfile(task="t", **wrong)


# all of them


CALLS = [
    ("shared_size", {}),
    ("composition", {}),
    ("layer_profile", {"part": "early"}),
    ("circuit_match", {"known": ["L0H0"]}),
    ("sufficiency", {}),
]


@pytest.mark.parametrize(("name", "more"), CALLS)
def test_the_gate_and_the_degenerate_scores_hold_for_every_property(name, more):
    """A model that cannot do the task, zero scores, K of all components, and a P that asks for a single example."""
    with pytest.raises(Invalid, match="no behaviour to explain"):
        study(correct=lambda s, mode, n: np.zeros(n, bool)).estimate(name, task="t", **more)
    with pytest.raises(Invalid, match="may be no behaviour to explain"):
        study(correct=lambda s, mode, n: np.arange(n) % 8 > 1, chance=0.7).estimate(name, task="t", **more)
    with pytest.raises(Invalid, match="scores of task 't' are zero"):
        study(np.zeros((N, 16))).estimate(name, task="t", **more)
    with pytest.raises(Invalid, match="all 16 components"):
        study().estimate(name, task="t", size="100%", **more)
    with pytest.raises(Invalid, match="form 4 groups"):
        study(groups=tuple(f"g{i % 4}" for i in range(N))).estimate(name, task="t", **more)
    if name not in ("composition", "layer_profile"):
        with pytest.raises(Invalid, match="is a single one"):
            study().estimate(name, task="t", p=0.01, **more)


@pytest.mark.parametrize(("name", "more"), [("accuracy", {}), *CALLS])
def test_the_same_study_gives_the_same_numbers(name, more):
    first, second = (study().estimate(name, task="t", **({} if name == "accuracy" else {"size": 2}), **more) for _ in range(2))
    assert first == second
    plain(first.details)
    assert all(isinstance(line, str) for line in first.details["notes"]) and first.details["notes"]
