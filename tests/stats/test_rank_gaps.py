"""Differences of ranks, what chance gives, and the noise ceiling of a ranking."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from pytest_circuits.errors import Invalid
from pytest_circuits.stats.ranks import chance_gaps, chance_of_gap, coarse, gap_rows, ranks, reliability, spearman_rows, split_half

tied = st.integers(3, 6).flatmap(lambda k: st.tuples(*[st.lists(st.integers(0, 3), min_size=k, max_size=k)] * 2, st.integers(1, k)))


@given(tied)
@settings(deadline=None, max_examples=60)
def test_the_number_expected_by_chance_is_the_mean_over_all_matchings(case):
    a, b, gap = case
    rank_a, rank_b = oracle.rankdata(a), oracle.rankdata(b)
    counts = [int((rank_a - rank_b[list(order)] >= gap).sum()) for order in permutations(range(len(a)))]
    expected, _ = chance_gaps(a, b, gap)
    assert expected == pytest.approx(np.mean(counts))


def test_chance_is_the_published_trap_by_simulation():
    """Of 20 components ranked at random, 0.53 are 6 or more ranks apart: 5.25 heroes and as many bloats."""
    rng = np.random.default_rng(0)
    a, b = (rng.permuted(np.tile(np.arange(20.0), (4000, 1)), axis=1) for _ in range(2))
    delta = gap_rows(a, b)
    assert (np.abs(delta) >= 6).mean() == pytest.approx(0.525, abs=0.01)
    assert (delta <= -6).sum(1).mean() == pytest.approx(5.25, abs=0.1)
    expected, counts = chance_gaps(np.arange(20.0), rng.permutation(20), 6)
    assert expected == pytest.approx(20 * chance_of_gap(20, 6) / 2) == pytest.approx(5.25)
    assert counts.mean() == pytest.approx(5.25, abs=0.1)
    assert np.quantile(counts, [0.1, 0.9]) == pytest.approx(np.quantile((delta <= -6).sum(1), [0.1, 0.9]), abs=1)


def test_rounding_makes_no_ranks():
    rows = np.array([[0.0, 6e-8, 0.0, 32.0, 16.0]])
    assert ranks(coarse(rows))[0].tolist() == [2, 2, 2, 5, 4]
    assert gap_rows(rows, np.array([[0.0, 3.0, 0.0, 0.0, 3.0]]))[0].tolist() == [0, -2.5, 0, 3, -0.5]
    assert coarse([0.0, 0.0]).tolist() == [0, 0]


def test_a_ranking_without_noise_has_a_ceiling_of_one_and_one_of_noise_has_none():
    rng = np.random.default_rng(1)
    same = np.tile(np.arange(12.0), (20, 1))
    assert split_half(same, np.ones(20), spearman_rows) == pytest.approx(np.ones(100))
    noise = split_half(rng.normal(size=(40, 12)), np.ones(40), spearman_rows)
    assert noise.mean() < 0.3
    assert reliability(noise - noise.mean() - 0.1) == 0 and reliability(np.full(5, 0.6)) == pytest.approx(0.75)
    assert reliability([np.nan]) is None and reliability([np.nan, 1.0]) == 1


def test_split_halves_predict_what_a_second_sample_would_give():
    rng = np.random.default_rng(2)
    found, truth = [], []
    for _ in range(60):
        means = rng.normal(size=25)
        one, two = (means + rng.normal(0, 6, (40, 25)) for _ in range(2))
        found.append(reliability(split_half(one, np.ones(40), spearman_rows)))
        truth.append(oracle.spearmanr(one.mean(0), two.mean(0)).statistic)
    assert np.mean(found) == pytest.approx(np.mean(truth), abs=0.05)


def test_halves_go_by_group_and_need_two():
    sizes = np.array([1, 3, 1, 9])  # the last outweighs any other in its half
    sums = sizes[:, None] * np.array([[0.0, 1, 2], [0, 1, 2], [0, 1, 2], [2, 1, 0]])
    assert split_half(sums, sizes, spearman_rows) == pytest.approx(-np.ones(100))
    with pytest.raises(Invalid, match="2 groups"):
        split_half([[1.0, 2.0]], [3], spearman_rows)
