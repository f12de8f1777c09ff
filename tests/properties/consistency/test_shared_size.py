"""shared_size against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits.properties.consistency.shared_size import SHARED_SIZE, SharedSize
from pytest_circuits.stats.split import split_by_group
from tests.fakes.components import Fake, Study, planted_scores
from tests.fakes.known_circuits import EVALUATION, GROUPS, UNIVERSE, N, circuits, plain, study


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
