"""Drift between made-up models whose difference is known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.protocol import BaselineReference
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.split import split_by_group
from tests.fakes.two_models import N, baseline, drift, permuted, world

ACCURACY = {"accuracy": {"task": "t"}}
GROUPS = [f"g{i}" for i in range(N)]
EVALUATION = split_by_group(GROUPS, 0.5, 0)[1]


@pytest.mark.parametrize("recorded", [True, False])
def test_accuracy_drifts_by_the_mean_difference_on_the_same_examples(recorded):
    lost, gained = EVALUATION[:6], EVALUATION[6:8]
    then, now = world(wrong=gained), world(wrong=lost)
    found = drift(now, baseline(then, of=ACCURACY) if recorded else then, of=ACCURACY)
    difference = np.zeros(N)
    difference[lost], difference[gained] = -1, 1
    expected = grouped_mean_interval(difference[EVALUATION], [GROUPS[i] for i in EVALUATION], 0.95, -1, 1)
    assert found.value == pytest.approx(-4 / 40) == expected[0]
    assert found.interval == pytest.approx(expected[1], abs=1e-6)
    assert found.details["paired"] and found.details["groups_compared"] == 40
    assert f"at the release ({'baseline' if recorded else 'released'})" in found.details["notes"][0]


def test_the_interval_of_a_pair_is_narrower_than_that_of_two_sides_with_the_same_noise():
    hard = EVALUATION[::2]
    found = drift(world(wrong=hard), world(wrong=hard), of=ACCURACY)
    alone = grouped_mean_interval(np.tile([1.0, 0.0], 20), [str(i) for i in range(40)], 0.95)[1]
    assert found.interval[1] - found.interval[0] < 0.8 * (alone[1] - alone[0])
    assert found.value == 0


def test_necessity_pairs_and_counts_the_draws_of_both_sides():
    of = {"necessity": {"task": "t", "p": 0.8, "size": 2, "control": "c3", "draws": 20}}
    found = drift(world(), world(seed=1), of=of)
    assert found.details["paired"] and "draws in quadrature" in found.kind
    assert abs(found.value) < 0.05 and found.interval[0] < found.value < found.interval[1]
    assert found.details["then"]["confidence"] == 0.975


def test_other_properties_are_compared_by_an_interval_of_each_side():
    of = {"jaccard": {"tasks": ["t", "other"], "p": 0.8, "size": 3}}
    then, now = world(), world()
    for side, causal in ((then, ("L0H1", "L1H2")), (now, ("L0H3", "L1H2"))):
        side.tasks["other"] = world(causal, seed=3).tasks["t"]
    found = drift(now, then, of=of)
    then, now = found.details["then"], found.details["now"]
    assert not found.details["paired"]
    assert found.value == pytest.approx(now["estimate"] - then["estimate"])
    assert found.interval == pytest.approx((now["interval"][0] - then["interval"][1], now["interval"][1] - then["interval"][0]))
    assert {then["confidence"], now["confidence"]} == {0.975}


def test_units_that_entered_or_left_the_set_of_the_claim_are_named():
    found = drift(world(("L0H1", "L1H0")), baseline(world(("L0H1", "L1MLP"))), of=None)
    assert found.details["sets"]["shared_set"] | {"shares": 0} == {
        "entered": ["L1H0"], "left": ["L1MLP"], "shares": 0, "beyond_noise": ["L1H0", "L1MLP"]
    }  # fmt: skip
    assert "shared set: L1H0 entered; L1MLP left" in found.details["notes"]


def borderline(share, seed=0):
    """L0H1 and L1MLP are in every circuit; L0H2 in this share of the discovery circuits and of the others, else L0H3."""
    found = world(("L0H1", "L1MLP"), seed=seed)
    scores, rows = found.tasks["t"].scores, [i for i in range(N) if i not in set(EVALUATION)]
    scores[:, [2, 3]] = [0.0, 0.9]
    for side in (rows, EVALUATION):
        chosen = side[: round(share * len(side))]
        scores[chosen, 2], scores[chosen, 3] = 0.9, 0.0
    return found


def test_a_unit_that_only_crossed_the_threshold_is_no_drift_that_could_refute():
    """Of 40 circuits 33 and 31 have L0H2, and P = 80% needs 32: reuse falls by a quarter, which another sample would not show."""
    found = drift(borderline(31 / 40), baseline(borderline(33 / 40)))
    assert found.value == pytest.approx(2 / 3 - (33 * 1 + 7 * 2 / 3) / 40, abs=1e-5)
    assert found.interval[0] < -0.25 and found.interval[1] == 0.0
    assert found.details["sets"]["shared_set"] == {
        "entered": [], "left": ["L0H2"], "shares": {"L0H2": [0.825, 0.775]}, "beyond_noise": []
    }  # fmt: skip
    assert "only crossed the threshold" in found.details["notes"][-1]
    moved = drift(borderline(10 / 40), baseline(borderline(33 / 40)))
    assert moved.interval[1] < 0 and moved.details["sets"]["shared_set"]["beyond_noise"] == ["L0H2"]


CIRCUIT = {"overlap": "jaccard"}
FUNCTION = {"overlap": "jaccard", "match": "function"}


@pytest.mark.parametrize("recorded", [True, False])
def test_a_moved_circuit_is_told_from_the_same_one_with_other_noise(recorded):
    def found(now, then):
        return drift(now, baseline(then, **CIRCUIT) if recorded else then, **CIRCUIT)

    same = found(world(seed=1), world(seed=0))
    assert abs(same.value) < 0.1 and same.interval[0] > -0.25
    moved = found(world(("L0H2", "L1H0"), seed=1), world(seed=0))
    assert moved.interval[1] < -0.5
    assert (moved.details["entered"], moved.details["left"]) == (["L0H2", "L1H0"], ["L0H1", "L1MLP"])
    assert moved.details["jaccard"] == 0.0
    assert moved.details["within"] > 0.9


def test_the_same_circuits_on_every_example_have_not_moved_at_all():
    found = drift(world(), baseline(world(), **CIRCUIT), **CIRCUIT)
    assert (found.value, tuple(found.interval)) == (0.0, (0.0, 0.0)) and not found.details["compared_with_itself"]
    assert "nor whether that settles the claim" in found.details["notes"][-1], "an interval without a width is no promise of one"
    assert not any("no width" in line for line in drift(world(seed=1), world(seed=0), **CIRCUIT).details["notes"])


@pytest.mark.parametrize("recorded", [True, False])
def test_a_permuted_model_is_equivalent_by_function_and_not_by_name(recorded):
    order = [2, 0, 3, 1]
    profile = np.random.default_rng(5).random((N, 10)) * np.linspace(0.2, 1, 10)  # each component has a story of its own
    original = world(("L0H1", "L1H2"), scores=world(("L0H1", "L1H2")).tasks["t"].scores + profile)
    moved = permuted(original, order)

    def found(**how):
        return drift(moved, baseline(original, **how) if recorded else original, **how)

    assert found(**CIRCUIT).interval[1] < 0
    matched = found(**FUNCTION)
    assert (matched.value, tuple(matched.interval)) == (0.0, (0.0, 0.0))
    assert matched.details["entered"] == matched.details["left"] == []
    places = [(old, new) for new, old in enumerate(order) if new != old]
    assert matched.details["became"] == {f"L{layer}H{old}": f"L{layer}H{new}" for layer in (0, 1) for old, new in places}
    assert matched.details["mean_match_quality"] > 0.99 > matched.details["mean_quality_by_name"]
    assert any("not by name" in line and "L0H0 is now L0H1" in line for line in matched.details["notes"])
    assert matched.details["shared_now"] != matched.details["shared_now_as_then"] == matched.details["shared_then"]


def test_matching_does_not_make_another_circuit_the_same():
    """Heads of one layer may trade places; a circuit that went to another layer, or from a head to an MLP, has moved."""
    found = drift(world(("L0H2", "L0MLP"), seed=1), world(("L1H2", "L1MLP"), seed=0), **FUNCTION)
    assert found.interval[1] < -0.3


def test_the_kept_part_is_plain_json_and_survives_it():
    for how in ({}, CIRCUIT, FUNCTION):
        made = baseline(world(), **how)
        through = replace(made, entry=json.loads(json.dumps(made.entry, allow_nan=False)))
        assert drift(world(seed=2), through, **how).value == drift(world(seed=2), made, **how).value


REFUSED = {
    "nothing at all": (lambda: None, {}, "there is nothing to compare with"),
    "no baseline": (
        lambda: BaselineReference(None, "measure the release once, with pytest x"), {}, "measure the release once, with pytest x",
    ),
    "other parameters": (
        lambda: baseline(world(), of={"reuse": {"task": "t", "p": 0.9, "size": 3}}), {},
        "of another claim: p was 0.9 and is 0.8; if .* pytest again",
    ),
    "another property": (lambda: baseline(world(), of=ACCURACY), {}, "accuracy then, reuse now"),
    "other data": (lambda: baseline(world(digest="other")), {}, "encoded prompts of task 't' are not those of the release: the"),
    "a value and no circuits": (lambda: baseline(world()), CIRCUIT, "the baseline has no circuits"),
    "circuits and no value": (lambda: baseline(world(), **CIRCUIT), {}, "has circuits but no value"),
    "no profiles": (lambda: baseline(world(), **CIRCUIT), FUNCTION, "no profiles for matching heads"),
    "another shape": (lambda: world(universe=Universe(2, 5)), CIRCUIT, "has 2 layers of 5 heads and the model 2 layers of 4 heads"),
    "an empty set": (
        lambda: world(scores=np.random.default_rng(0).random((N, 10))), CIRCUIT, "in the release, the shared set .* is empty"
    ),
    "other groups": (lambda: world(groups=tuple(f"h{i}" for i in range(N))), CIRCUIT, "the discovery examples of task 't' differ from"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_compare_is_invalid_and_says_why(name):
    against, how, message = REFUSED[name]
    with pytest.raises(Invalid, match=message):
        drift(world(), against(), **how)


def test_a_run_that_writes_the_baseline_compares_what_does_not_compare_with_itself():
    old = replace(baseline(world(), of={"reuse": {"task": "t", "p": 0.9, "size": 3}}), writes=True)
    found = drift(world(), old)
    assert found.details["compared_with_itself"] and "p was 0.9 and is 0.8" in found.details["notes"][-1]
    moved = replace(baseline(world()), writes=True)
    assert not drift(world(("L0H2", "L1H0")), moved).details["compared_with_itself"], "what compares is compared first"


def test_the_release_says_why_prompts_may_differ():
    with pytest.raises(Invalid, match=r"\(the tokenizer's files differ\)"):
        drift(world(), replace(baseline(world(digest="other")), hints=("the tokenizer's files differ",)))


def test_a_wide_confidence_is_not_drawn_from_a_narrower_baseline():
    of = {"shared_size": {"task": "t", "p": 0.8, "size": 3}}
    made = baseline(world(), of=of)
    with pytest.raises(Invalid, match=r"confidence 0\.975, and 0\.995 is needed"):
        drift(world(seed=1), made, of=of, confidence=0.99)
    assert drift(world(seed=1), made, of=of, confidence=0.9).interval


def test_the_range_is_the_width_of_the_inner_range_both_ways():
    prop = PROPERTIES.get("drift")
    unbounded = {"neuron_faithfulness": {"task": "t", "neurons": 5}}
    for of, limits in ((ACCURACY, (-1, 1)), ({"necessity": {"task": "t"}}, (-2, 2)), (unbounded, (None, None))):
        assert prop.range(prop.parameters.model_validate({"of": of})) == limits
