"""Ranks and rank correlations against scipy and closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.ranks import chance_of_gap, gap_rows, kendall_tau_b, kendall_tau_b_rows, ranks, spearman, spearman_rows

small = st.integers(2, 12).flatmap(lambda k: st.tuples(*[st.lists(st.integers(-3, 3), min_size=k, max_size=k)] * 2))


@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 999))
@settings(deadline=None)
def test_ranks_are_average_ranks_along_the_last_axis(rows, k, seed):
    values = np.random.default_rng(seed).integers(0, 6, (rows, k)).astype(float)
    assert ranks(values).tolist() == oracle.rankdata(values, axis=-1).tolist()
    assert ranks(values[0]).tolist() == oracle.rankdata(values[0]).tolist()


@given(small)
@settings(deadline=None, max_examples=200)
def test_correlations_equal_scipy_and_refuse_constant_input(pair):
    a, b = pair
    if len(set(a)) == 1 or len(set(b)) == 1:
        for correlation in (spearman, kendall_tau_b):
            with pytest.raises(Invalid, match="are equal"):
                correlation(a, b)
        return
    assert spearman(a, b) == pytest.approx(oracle.spearmanr(a, b).statistic, abs=1e-12)
    assert kendall_tau_b(a, b) == pytest.approx(oracle.kendalltau(a, b).statistic, abs=1e-12)


@given(small)
@settings(deadline=None)
def test_only_order_matters_and_reversal_flips_the_sign(pair):
    a, b = (np.asarray([side], dtype=float) for side in pair)
    for rows in (spearman_rows, kendall_tau_b_rows):
        plain = rows(a, b)
        assert rows(a**3, 2 * b + 1) == pytest.approx(plain, nan_ok=True)
        assert rows(-a, b) == pytest.approx(-plain, nan_ok=True)
        assert rows(b, a) == pytest.approx(plain, nan_ok=True)


def test_rows_are_independent_and_undefined_rows_are_nan(monkeypatch):
    monkeypatch.setattr("pytest_circuits.stats.ranks._PAIRS_AT_ONCE", 12)  # two rows at a time
    a = np.array([[1, 2, 3, 4], [1, 1, 1, 1], [1, 2, np.nan, 4], [2, 1, 4, 3], [4, 3, 2, 1]], dtype=float)
    b = np.tile([1.0, 2.0, 3.0, 4.0], (5, 1))
    assert spearman_rows(a, b) == pytest.approx([1, np.nan, np.nan, 0.6, -1], nan_ok=True)
    assert kendall_tau_b_rows(a, b) == pytest.approx([1, np.nan, np.nan, 1 / 3, -1], nan_ok=True)


def test_wrong_inputs_are_refused():
    with pytest.raises(Invalid, match="at least 2 items"):
        spearman([1.0], [2.0])
    with pytest.raises(Invalid, match="NaN"):
        spearman([1.0, float("nan")], [1.0, 2.0])
    with pytest.raises(OptionError, match="equal length"):
        kendall_tau_b([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(OptionError, match="rows of values"):
        spearman_rows(np.ones(3), np.ones(3))


def test_rank_gaps_sum_to_zero_and_follow_the_definition():
    gaps = gap_rows([[0.1, 0.9, 0.5, 0.5]], [[4.0, 1.0, 2.0, 3.0]])[0]
    assert gaps.tolist() == [-3.0, 3.0, 0.5, -0.5]


def test_the_chance_of_a_rank_gap_is_the_published_trap():
    """±6 of 20 is no threshold: half of all random ranks are that far apart."""
    assert chance_of_gap(20, 6) == 0.525
    gaps = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    for gap in range(1, 25):
        assert chance_of_gap(20, gap) == pytest.approx((gaps >= gap).mean())
    with pytest.raises(OptionError):
        chance_of_gap(20, 0)
