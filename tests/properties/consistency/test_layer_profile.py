"""layer_profile against numbers worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.properties.consistency.layer_profile import LayerProfile, third
from tests.fakes.components import Fake, Study, planted_scores
from tests.fakes.known_circuits import EVALUATION, UNIVERSE, N, circuits, plain, study


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
        ({"layers": [2, 4]}, "the claim is about layers 2–4, and this model has layers 0–3"),
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
