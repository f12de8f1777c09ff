"""Differences, matching and set noise, against other ways of computing them and against simulated truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pytest_circuits.errors import OptionError
from pytest_circuits.stats import overlap
from pytest_circuits.stats.assignment import best_assignment, concordance
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.distributions import t_quantile
from pytest_circuits.stats.model_overlap import beyond_noise_rows
from pytest_circuits.stats.paired_difference import paired_difference, share_difference, simultaneous_difference

squares = st.integers(1, 6).flatmap(lambda k: arrays.arrays(np.float64, (k, k), elements=st.integers(-9, 9).map(lambda v: v / 4)))


@given(squares)
def test_the_assignment_is_as_good_as_the_best_of_all(gain):
    found = best_assignment(gain)
    assert sorted(found) == list(range(len(gain)))
    best = max(sum(gain[i, order[i]] for i in range(len(gain))) for order in itertools.permutations(range(len(gain))))
    assert gain[np.arange(len(gain)), found].sum() == pytest.approx(best)


def test_large_assignments_agree_with_scipy():
    from scipy.optimize import linear_sum_assignment

    for seed in range(5):
        gain = np.random.default_rng(seed).normal(size=(64, 64))
        rows, columns = linear_sum_assignment(-gain)
        assert gain[np.arange(64), best_assignment(gain)].sum() == pytest.approx(gain[rows, columns].sum())


def test_a_matrix_that_is_not_square_is_refused():
    with pytest.raises(OptionError, match="square"):
        best_assignment(np.zeros((2, 3)))


def test_concordance_by_hand_and_its_limits():
    x = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    found = concordance(x, np.column_stack([x[:, 0] + 1, 4 - x[:, 0]]))
    # variances 2/3, covariance 2/3, means differ by 1: 2·(2/3)/(4/3 + 1); mirrored: covariance −2/3 and equal means
    assert found[0] == pytest.approx([4 / 7, -1.0])
    assert concordance(x, x)[1, 1] == 1.0, "two columns of zeros are the same"
    assert concordance(x, x)[0, 1] == 0.0
    assert concordance(x, 2 * x)[0, 0] < 1, "another size is not the same profile"


@given(st.permutations(range(6)), st.integers(0, 100))
@settings(max_examples=40)
def test_matching_undoes_any_permutation_of_profiles(order, seed):
    profiles = np.random.default_rng(seed).normal(size=(40, 6))
    found = best_assignment(concordance(profiles, profiles[:, list(order)]))
    assert [order[i] for i in found] == list(range(6))


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0])), min_size=5, max_size=60))
def test_a_paired_difference_is_the_interval_of_the_differences(pairs):
    now, then = map(np.array, zip(*pairs, strict=True))
    value, interval = paired_difference(now, then, 0.95, 0.0, 1.0)
    other = grouped_mean_interval(now - then, [str(i) for i in range(len(now))], 0.95, -1, 1)
    assert (value, interval) == (other[0], pytest.approx(other[1], abs=1e-12))
    back = paired_difference(then, now, 0.95, 0.0, 1.0)
    assert back[0] == -value
    assert back[1] == pytest.approx((-interval[1], -interval[0]), abs=1e-6)


def test_pairing_sees_what_two_intervals_cannot():
    hard = np.random.default_rng(0).random(200) < 0.5
    then, now = hard.astype(float), hard.copy().astype(float)
    now[:4] = 0
    low, high = paired_difference(now, then, 0.95, 0.0, 1.0)[1]
    sides = [grouped_mean_interval(side, [str(i) for i in range(200)], 0.95)[1] for side in (now, then)]
    wide = simultaneous_difference(*sides)
    assert wide[1] - wide[0] > 3 * (high - low)
    assert (wide[0], wide[1]) == (sides[0][0] - sides[1][1], sides[0][1] - sides[1][0])


def test_draws_widen_a_paired_difference_in_quadrature():
    now, then = np.tile([1.0, 0.0], 50), np.tile([0.0, 1.0], 50)
    (low, high), (wide, wider) = (paired_difference(now, then, 0.95, -1.0, 1.0, draws)[1] for draws in ((), [(0.1, 19), (0.05, 19)]))
    half = np.hypot(0.1, 0.05) * t_quantile(0.95, 19)
    assert wide == pytest.approx(-np.hypot(low, half))
    assert wider == pytest.approx(np.hypot(high, half))


def test_equivalence_is_claimed_falsely_at_most_as_often_as_the_error_allows():
    """Two one-sided tests: where the true difference is the margin itself, an interval inside the margin comes up in at most 2.5%."""
    rng, margin, inside = np.random.default_rng(1), 0.2, 0
    for _ in range(400):
        then = rng.random(150) < 0.9
        now = then & (rng.random(150) >= margin / 0.9)
        low, high = paired_difference(now.astype(float), then.astype(float), 0.95, 0.0, 1.0)[1]
        inside += -margin < low and high < margin
    assert inside <= 0.025 * 400 + 2 * (400 * 0.025 * 0.975) ** 0.5


def test_share_differences_are_newcombes():
    """The example of Newcombe's paper: 56/70 against 48/80, method 10, gives 0.0524 to 0.3339."""
    assert share_difference(56 / 70, 48 / 80, (70, 80), 0.95) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    low, high = share_difference(0.0, 0.0, (10, 10), 0.95)
    assert low < 0 < high


def circuits(rng, n, often, k=4, units=12):
    members = np.zeros((n, units), bool)
    for row in members:
        weights = np.where(np.isin(np.arange(units), often), 1.0, 0.1) * rng.random(units)
        row[np.argsort(-weights)[:k]] = True
    return members


def deficit(a, b, p=0.6, repeats=10):
    groups = [str(i) for i in range(len(a))]
    (x, sizes), (y, _) = overlap.group_tallies(a, groups), overlap.group_tallies(b, groups)
    across, within = beyond_noise_rows(np.ones((1, len(sizes)), np.int64), x, y, sizes, p, overlap.halves(len(sizes), repeats))
    return float(across[0] - within[0])


def test_two_models_with_the_same_circuits_in_distribution_do_not_drift_on_average():
    rng = np.random.default_rng(2)
    found = [deficit(circuits(rng, 40, [0, 1, 2, 3, 4]), circuits(rng, 40, [0, 1, 2, 3, 4])) for _ in range(200)]
    assert abs(np.mean(found)) < 3 * np.std(found) / 200**0.5
    other = [deficit(circuits(rng, 40, [0, 1, 2, 3, 4]), circuits(rng, 40, [0, 1, 7, 8, 9])) for _ in range(20)]
    assert np.mean(other) < -0.3


def test_the_same_circuits_drift_by_exactly_nothing():
    """Both comparisons are between halves that share no example, so that noise that both models have in common counts alike."""
    members = circuits(np.random.default_rng(3), 30, [0, 1, 2, 3, 4, 5])
    assert overlap.split_half(members, [str(i) for i in range(30)], 0.6)[0] < 0.9, "the halves of one model differ"
    assert deficit(members, members) == 0.0
