"""What a baseline keeps of a measurement: lists and tables as text, and sets by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pytest_circuits.core.results import CircuitSet
from pytest_circuits.properties import payload

numbers = st.floats(-1, 1, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e-7])


@given(st.lists(numbers, min_size=1, max_size=40), st.integers(1, 4))
def test_values_of_groups_come_back_to_six_digits(values, repeats):
    groups = [f"g{i // repeats}" for i in range(len(values))]
    made = json.loads(json.dumps(payload.per_group(values, groups, -1.0, 1.0)))
    means = [np.mean(values[i : i + repeats]) for i in range(0, len(values), repeats)]
    found = payload.group_values(made)
    assert len(found) == len(means)
    assert np.allclose(found, means, rtol=1e-5, atol=1e-12)


def test_runs_of_equal_values_are_counted_and_one_line_holds_them():
    made = payload.per_group([1.0] * 12 + [0.5] + [-0.0, 0.0, 0.0], [f"g{i}" for i in range(16)], 0.0, 1.0)
    assert made["values"] == "1x12 0.5 0x3"
    assert list(payload.group_values(made)) == [1.0] * 12 + [0.5] + [0.0] * 3


@given(arrays.arrays(bool, arrays.array_shapes(min_dims=2, max_dims=2, max_side=30)))
def test_a_table_of_bits_comes_back(table):
    assert np.array_equal(payload.unpack_bits(json.loads(json.dumps(payload.pack_bits(table)))), table)


@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 8)), elements=st.floats(-5, 5)))
def test_profiles_come_back_to_within_half_a_level_of_their_column(table):
    found = payload.unpack_columns(json.loads(json.dumps(payload.pack_columns(table))))
    assert (np.abs(found - table) <= np.abs(table).max(0) * (0.5 / 127 + 1e-4)).all()


@pytest.mark.parametrize(
    ("read", "made"),
    [
        (payload.unpack_bits, {"shape": [3, 9], "bits": payload.pack_bits(np.ones((2, 9), bool))["bits"]}),
        (payload.unpack_bits, {"shape": [2, 9], "bits": "not base 85 {"}),
        (payload.unpack_columns, {**payload.pack_columns(np.ones((2, 3))), "scale": "1 1"}),
        (payload.group_values, {"values": "1 x 2"}),
        (payload.group_values, {"values": "1x99999999999"}),
        (payload.group_values, {}),
    ],
)
def test_damaged_text_is_noticed(read, made):
    with pytest.raises(ValueError):
        read(made)


def test_values_pair_only_on_the_same_groups_in_the_same_order_and_range():
    one = payload.per_group([1, 0, 1], ["a", "b", "c"], 0.0, 1.0)
    assert payload.is_paired(one, payload.per_group([0, 0, 1], ["a", "b", "c"], 0.0, 1.0))
    assert not payload.is_paired(one, payload.per_group([0, 0, 1], ["a", "c", "b"], 0.0, 1.0))
    assert not payload.is_paired(one, payload.per_group([0, 0, 1], ["a", "b", "c"], -1.0, 1.0))
    assert not payload.is_paired({}, one) and not payload.is_paired({}, {})


def test_sets_are_found_in_details_by_their_place_and_draws_of_controls_are_no_sets():
    details = {
        "shared_set": {"units": ["L0H1", "L0MLP"], "size": 2, "heads": 1},
        "shared_sets": {"ioi": {"units": [], "size": 0}, "sva": {"units": ["L1H0"], "size": 1}},
        "control": {"sets": [["L0H2"]], "units": 5},
        "large": {"units": [f"L0N{i}" for i in range(600)], "size": 600},
        "number": 3,
    }
    assert payload.named_sets(details) == {"shared_set": ["L0H1", "L0MLP"], "shared_sets.ioi": [], "shared_sets.sva": ["L1H0"]}


def test_frequencies_leave_rare_units_out():
    members = np.zeros((40, 3), bool)
    members[:30, 0] = members[:1, 1] = members[:2, 2] = True
    found = payload.frequencies(CircuitSet(members, ("L0H0", "L0H1", "L0MLP")), [f"g{i // 2}" for i in range(40)])
    assert found == {"frequency": {"groups": 20, "shares": {"L0H0": 0.75, "L0MLP": 0.05}}}


def test_parameters_that_only_one_side_knows_are_no_change():
    assert payload.parameter_changes({"p": 0.8, "old": 1}, {"p": 0.9, "new": 2}) == ["p was 0.8 and is 0.9"]
