"""Groups, and splits that keep them whole."""

import subprocess
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.groups import finite, group_means, group_sums
from pytest_circuits.stats.split import MIN_GROUPS, split_by_group

many = st.lists(st.integers(1, 7), min_size=10, max_size=30).map(
    lambda sizes: [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
)


def test_group_means_weight_each_group_once_and_weights_recover_the_mean_over_examples():
    """Two examples of `b` and one of `a`."""
    means, weights = group_means([1.0, 0.0, 0.5], ["b", "a", "b"])
    assert means.tolist() == [0.75, 0.0]
    assert weights @ means == pytest.approx(0.5)
    assert means.mean() == 0.375


def test_group_sums_keep_trailing_axes():
    sums, sizes = group_sums(np.arange(6.0).reshape(3, 2), ["x", "y", "x"])
    assert sums.tolist() == [[4.0, 6.0], [2.0, 3.0]]
    assert sizes.tolist() == [2, 1]


def test_wrong_inputs_are_refused_with_their_numbers():
    with pytest.raises(OptionError, match="2 group names for values of shape"):
        group_sums([1.0, 2.0, 3.0], ["a", "b"])
    with pytest.raises(Invalid, match="1 of 2 values are NaN"):
        finite([1.0, float("nan")])
    with pytest.raises(Invalid, match="there are no values"):
        finite([])


@given(many, st.sampled_from([0.2, 0.5, 0.8]), st.integers(0, 99))
@settings(deadline=None)
def test_no_group_is_on_both_sides_and_none_is_lost(groups, share, seed):
    discovery, evaluation = split_by_group(groups, share, seed)
    left, right = {groups[i] for i in discovery}, {groups[i] for i in evaluation}
    assert left & right == set()
    assert sorted([*discovery, *evaluation]) == list(range(len(groups)))
    assert discovery.tolist() == sorted(discovery) and evaluation.tolist() == sorted(evaluation)
    assert min(len(left), len(right)) >= MIN_GROUPS


@given(many, st.integers(0, 99), st.randoms())
@settings(deadline=None)
def test_a_split_does_not_depend_on_the_order_of_examples_when_groups_are_of_one_size(groups, seed, random):
    singles = sorted(set(groups))
    mixed = random.sample(singles, len(singles))
    first, second = split_by_group(singles, 0.5, seed)[0], split_by_group(mixed, 0.5, seed)[0]
    assert {singles[i] for i in first} == {mixed[i] for i in second}


@given(many, st.integers(0, 99), st.randoms())
@settings(deadline=None)
def test_a_split_does_not_depend_on_the_order_of_examples(groups, seed, random):
    mixed = random.sample(groups, len(groups))
    first, second = split_by_group(groups, 0.5, seed)[0], split_by_group(mixed, 0.5, seed)[0]
    assert {groups[i] for i in first} == {mixed[i] for i in second}


@given(st.lists(st.integers(1, 6), min_size=4, max_size=9), st.sampled_from([0.3, 0.5, 0.7]), st.integers(0, 9))
@settings(deadline=None)
def test_the_share_is_as_near_as_whole_groups_allow(sizes, share, seed):
    """Against all subsets that leave a group on each side."""
    groups = [f"g{i}" for i, size in enumerate(sizes) for _ in range(size)]
    target = Fraction(str(share)) * len(groups)
    every = [sum(sizes[i] for i in some) for r in range(1, len(sizes)) for some in combinations(range(len(sizes)), r)]
    found = len(split_by_group(groups, share, seed, minimum=1)[0])
    assert abs(found - target) == min(abs(total - target) for total in every)


def test_shares_are_exact_decimals():
    """0.07 · 50 is 3.5 and equally near to 3 and 4; in floats it is 3.5000000000000004."""
    assert len(split_by_group([str(i) for i in range(50)], 0.07, 0, minimum=1)[0]) == 3


def test_seeds_give_different_splits_and_each_example_is_equally_likely():
    groups = [str(i) for i in range(20)]
    hits = sum(np.bincount(split_by_group(groups, 0.5, seed)[0], minlength=20) for seed in range(400))
    assert hits.min() > 200 - 5 * 10 and hits.max() < 200 + 5 * 10  # binomial, five standard deviations


def test_a_giant_group_still_leaves_enough_groups_on_its_side():
    groups = ["giant"] * 50 + [str(i) for i in range(50)]
    for seed in range(20):
        discovery, evaluation = split_by_group(groups, 0.5, seed)
        assert min(len({groups[i] for i in side}) for side in (discovery, evaluation)) >= MIN_GROUPS
        assert len(discovery) in range(45, 56)


def test_too_few_groups_are_invalid_with_the_count():
    with pytest.raises(Invalid, match=r"90 examples form 9 groups .* at least 5") as caught:
        split_by_group([str(i % 9) for i in range(90)], 0.5, 0)
    assert caught.value.details == {"n": 90, "groups": 9, "groups_needed": 10}
    with pytest.raises(OptionError, match="between 0 and 1"):
        split_by_group(["a"] * 20, 1.0, 0)


def test_a_split_does_not_depend_on_the_hash_seed():
    code = "from pytest_circuits.stats.split import split_by_group as s; print(s([str(i) for i in range(30)], .5, 7)[0].tolist())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": h, "PYTHONPATH": "."}, capture_output=True, text=True, check=True
        ).stdout
        for h in "12"
    }
    assert len(runs) == 1
