"""Skewness-corrected intervals: against closed forms, pairwise brute force and simulated populations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.groups import group_sums
from pytest_circuits.stats.hall_interval import crossed_bounds, mean_bounds, simultaneous, smaller_counts

SKEWED = {
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5))),
    "one in five": (lambda rng, shape: (rng.random(shape) < 0.2) * rng.exponential(size=shape), 0.2),
}


def test_symmetric_values_have_students_interval():
    values = np.array([-3.0, -1.0, -1.0, 0.0, 1.0, 1.0, 3.0])
    mean, low, high = mean_bounds(values[:, None], np.ones(7), 0.9)
    wanted = oracle.t.interval(0.9, 6, loc=0, scale=values.std(ddof=1) / np.sqrt(7))
    assert (mean[0], low[0], high[0]) == pytest.approx((0, *wanted), abs=1e-12)


def test_the_ends_are_where_halls_transformation_meets_the_quantiles():
    """The defining equation, solved by root finding instead of the closed inverse."""
    from scipy.optimize import brentq

    values = np.random.default_rng(0).exponential(size=40)
    g, skew = 40, oracle.skew(values)
    error = values.std(ddof=1) / np.sqrt(g)

    def transformed(mu):
        t = (values.mean() - mu) / error
        return t + skew * t**2 / (3 * g**0.5) + skew**2 * t**3 / (27 * g) + skew / (6 * g**0.5)

    q = oracle.t.ppf(0.975, g - 1)
    ends = [brentq(lambda mu, y=y: transformed(mu) - y, -5, 5) for y in (q, -q)]
    mean, low, high = mean_bounds(values[:, None], np.ones(g))
    assert (low[0], high[0]) == pytest.approx(ends)
    assert high[0] - mean[0] > mean[0] - low[0], "the long tail is above"


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("groups", [32, 128])
def test_coverage_of_skewed_populations_and_better_than_students(name, groups):
    draw, truth = SKEWED[name]
    values = draw(np.random.default_rng(1), (groups, 4000))
    _, low, high = mean_bounds(values, np.ones(groups))
    covered = ((low <= truth) & (truth <= high)).mean()
    half = oracle.t.ppf(0.975, groups - 1) * values.std(0, ddof=1) / np.sqrt(groups)
    students = (np.abs(values.mean(0) - truth) <= half).mean()
    assert covered >= 0.92 and covered >= students
    assert (low > truth).mean() <= 0.032, "the lower bound, which certifies that something costs, must hold"


def test_all_bounds_of_a_family_hold_at_once():
    rng = np.random.default_rng(2)
    held = []
    for _ in range(300):
        _, low, high = mean_bounds(rng.exponential(size=(100, 20)), np.ones(100), simultaneous(0.95, 20))
        held.append(((low <= 1) & (high >= 1)).all())
    assert np.mean(held) >= 0.93


@given(st.integers(0, 10_000), st.floats(0.01, 100))
@settings(deadline=None, max_examples=40)
def test_the_mean_is_over_examples_and_units_do_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    values = rng.gamma(1, 1, (30, 3))
    groups = [f"g{i}" for i in rng.integers(0, 12, 30)]
    one = mean_bounds(*group_sums(values, groups))
    assert one[0] == pytest.approx(values.mean(0))
    other = mean_bounds(*group_sums(-scale * values, groups))
    assert other[1] == pytest.approx(-scale * one[2]) and other[2] == pytest.approx(-scale * one[1])
    assert (one[1] <= one[0]).all() and (one[0] <= one[2]).all()


def test_copies_of_examples_in_a_group_are_no_further_evidence():
    values = np.random.default_rng(3).exponential(size=(20, 2))
    alone = mean_bounds(values, np.ones(20))
    copied = mean_bounds(*group_sums(np.repeat(values, 5, axis=0), [f"g{i // 5}" for i in range(100)]))
    for a, b in zip(alone, copied, strict=True):
        assert b == pytest.approx(a)


def test_equal_values_have_no_width_and_too_few_groups_are_refused():
    mean, low, high = mean_bounds(np.full((9, 1), 0.1) * 3, np.full(9, 3))
    assert low[0] == mean[0] == high[0] == pytest.approx(0.1)
    with pytest.raises(Invalid, match="5 examples form 1 group"):
        mean_bounds([[1.0]], [5])
    with pytest.raises(Invalid, match="NaN"):
        smaller_counts([[1.0, np.nan], [1.0, 2.0]], [1, 1])
    with pytest.raises(OptionError, match="sums"):
        mean_bounds([1.0, 2.0], [1, 1])


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_smaller_counts_equal_an_interval_for_each_pair(seed):
    """Third moments of differences come from three matrix products; here each difference is formed."""
    rng = np.random.default_rng(seed)
    k, groups = 6, 25
    sums = rng.gamma(1, 1, (groups, k)) * np.linspace(1, 3, k)
    sums[:, 4] = sums[:, 1]
    sizes = rng.integers(1, 4, groups)
    surely, possibly = smaller_counts(sums, sizes, 0.8)
    for i in range(k):
        rest = [j for j in range(k) if j != i and {i, j} != {1, 4}]
        bounds = [mean_bounds((sums[:, i] - sums[:, j])[:, None], sizes, 1 - 0.2 / 15) for j in rest]
        assert surely[i] == sum(low[0] > 0 for _, low, _ in bounds)
        assert possibly[i] == sum(high[0] > 0 for _, _, high in bounds)


def test_ties_and_rounding_are_not_smaller():
    base = np.random.default_rng(4).gamma(1, 1, (30, 1))
    sums = np.concatenate([base, base, 10 * base, np.full((30, 1), 6e-8), np.zeros((30, 1))], 1)
    surely, possibly = smaller_counts(sums, np.ones(30))
    assert surely.tolist() == [2, 2, 4, 0, 0] and possibly.tolist() == [2, 2, 4, 0, 0]


def test_the_order_bounds_hold_at_once():
    rng = np.random.default_rng(5)
    means = np.array([0.2, 0.2, 0.5, 0.9, 1.0, 1.0, 2.0])
    truth = (means[None, :] < means[:, None]).sum(1)
    wrong = 0
    for _ in range(200):
        surely, possibly = smaller_counts(rng.exponential(size=(60, 7)) * means, np.ones(60))
        wrong += not ((surely <= truth) & (truth <= possibly)).all()
    assert wrong <= 17, "at most 5% beyond Monte-Carlo error"


def test_crossed_bounds_add_the_variance_of_draws_and_examples():
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(150):
        draws, examples = rng.normal(0, 0.5, (20, 1)), rng.exponential(size=60)
        value, (low, high), parts = crossed_bounds(draws + rng.exponential(size=(20, 60)), examples, [f"g{i}" for i in range(60)])
        hits += low <= 0 <= high
        assert low <= value <= high and parts["n_draws"] == 20 and parts["n_groups"] == 60
    assert hits >= 137
    with pytest.raises(Invalid, match="1 draw"):
        crossed_bounds([[1.0, 2.0]], [0.0, 0.0], ["a", "b"])
    with pytest.raises(OptionError, match="reference"):
        crossed_bounds([[1.0, 2.0]] * 2, [0.0], ["a", "b"])
