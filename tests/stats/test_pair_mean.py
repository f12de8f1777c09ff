"""The mean over pairs: against its definition, and its coverage."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import t

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.pair_mean import pair_mean
from pytest_circuits.stats.ranks import ranks


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 7).flatmap(lambda m: arrays(np.float64, (m, m), elements=st.floats(-1, 1))), st.sampled_from([0.8, 0.95]))
def test_the_mean_and_its_jackknife_are_those_of_the_definition(square, confidence):
    """Leaving out each thing in turn, by enumeration; the diagonal does not count."""
    matrix = (square + square.T) / 2
    m = len(matrix)

    def mean(things):
        return np.mean([matrix[i, j] for i, j in combinations(things, 2)])

    value, (low, high), parts = pair_mean(matrix, confidence, -9, 9)
    left = [mean([k for k in range(m) if k != i]) for i in range(m)]
    error = np.sqrt((m - 1) / m * np.sum((np.array(left) - np.mean(left)) ** 2))
    half = t.ppf(0.5 + confidence / 2, m - 1) * error
    assert (value, low, high) == pytest.approx((mean(range(m)), mean(range(m)) - half, mean(range(m)) + half), abs=1e-9)
    assert parts["left_out"] == pytest.approx(left, abs=1e-9) and parts["pairs"] == m * (m - 1) // 2
    clipped = pair_mean(matrix, confidence)[1]
    assert clipped == (max(-1, low), min(1, high))


def _correlations(table):
    centred = ranks(table) - (table.shape[1] + 1) / 2
    centred /= np.sqrt((centred**2).sum(1, keepdims=True))
    return centred @ centred.T


@pytest.mark.parametrize("things", [3, 10])
@pytest.mark.parametrize("common", [0.0, 1.0, 3.0])
def test_the_interval_holds_the_truth_as_often_as_it_says(things, common):
    """Noisy rankings of 20 items around one ranking: 95% intervals in at least 93% of 400 studies (the standard error is 1.1%)."""
    rng = np.random.default_rng(7)
    ranking = common * rng.normal(size=20)
    many = _correlations(ranking + rng.normal(size=(1500, 20)))
    truth = many[np.triu_indices(1500, 1)].mean()
    held = 0
    for _ in range(400):
        low, high = pair_mean(_correlations(ranking + rng.normal(size=(things, 20))))[1]
        held += low <= truth <= high
    assert held >= 0.93 * 400


def test_two_things_have_no_spread():
    """Without one of them there is no pair."""
    with pytest.raises(Invalid, match="fewer than 3 items, got 2"):
        pair_mean(np.eye(2))
    with pytest.raises(OptionError, match=r"got shape \(2, 3\)"):
        pair_mean(np.zeros((2, 3)))
    with pytest.raises(Invalid, match="NaN"):
        pair_mean(np.full((3, 3), np.nan))
