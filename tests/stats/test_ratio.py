"""Fieller intervals and exact binomial bounds."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.binomial import binomial_interval, binomial_lower, binomial_upper
from pytest_circuits.stats.ratio import fieller


def tolerated(trials: int, rate: float = 0.05) -> float:
    return trials * rate + 3.4 * sqrt(trials * rate * (1 - rate))


def sample(seed: int, n: int = 40, groups: int = 20):
    rng = np.random.default_rng(seed)
    y = rng.normal(4, 1, n)
    return 0.8 * y + rng.normal(0, 0.6, n), y, [str(i % groups) for i in range(n)]


def test_the_ends_are_the_slopes_at_which_a_t_test_of_the_contrast_is_just_significant():
    x, y, groups = sample(0)
    _, ends = fieller(x, y, groups)
    for slope in ends:
        sums = [sum((x - slope * y)[i] for i in range(40) if groups[i] == g) for g in dict.fromkeys(groups)]
        assert oracle.ttest_1samp(sums, 0).pvalue == pytest.approx(0.05, abs=1e-9)


def test_the_value_is_the_ratio_of_means_over_examples_even_for_unequal_groups():
    value, (low, high) = fieller([1.0, 3.0, 2.0, 2.2], [2.0, 4.0, 3.0, 3.0], list("aabc"), 0.5)
    assert value == pytest.approx(8.2 / 12)
    assert low <= value <= high


@given(st.integers(0, 500), st.floats(0.1, 10), st.floats(0.1, 10))
@settings(deadline=None, max_examples=40)
def test_scaling_numerator_and_denominator_scales_the_interval(seed, a, b):
    x, y, groups = sample(seed)
    value, ends = fieller(x, y, groups)
    scaled, scaled_ends = fieller(a * x, b * y, groups)
    assert [scaled, *scaled_ends] == pytest.approx([e * a / b for e in [value, *ends]], rel=1e-7)


@given(st.integers(0, 500), st.randoms())
@settings(deadline=None, max_examples=40)
def test_order_and_names_of_groups_do_not_matter(seed, random):
    x, y, groups = sample(seed)
    mixed = random.sample(range(40), 40)
    other = fieller(x[mixed], y[mixed], [f"z{groups[i]}" for i in mixed])
    assert [other[0], *other[1]] == pytest.approx([fieller(x, y, groups)[0], *fieller(x, y, groups)[1]], rel=1e-9)


def test_a_proportional_numerator_has_an_interval_of_no_width():
    y = np.array([1.0, 2.0, 4.0, 3.0])
    value, (low, high) = fieller(0.5 * y, y, list("abcd"))
    assert [value, low, high] == pytest.approx([0.5] * 3, abs=1e-7)


def test_coverage_is_nominal_for_skewed_groups():
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(600):
        size = rng.exponential(1, 40)
        y, x = size + 2, 0.7 * (size + 2) + rng.exponential(1, 40) - 1
        low, high = fieller(x, y, [str(i) for i in range(40)])[1]
        missed += not low <= 0.7 <= high
    assert missed <= tolerated(600)


def test_clustered_examples_do_not_count_as_evidence():
    x, y, groups = sample(3, 20, 20)
    assert fieller(np.tile(x, 9), np.tile(y, 9), groups * 9)[1] == pytest.approx(fieller(x, y, groups)[1], rel=1e-9)


def test_a_denominator_that_may_be_zero_is_invalid_with_the_numbers():
    with pytest.raises(Invalid, match=r"denominator is 0\.5 with 95% interval \[-0\.\d+, 1\.\d+\], which contains 0") as caught:
        fieller([1.0] * 4, [0.0, 1.0, 0.2, 0.8], list("abcd"))
    low, high = caught.value.details["denominator_interval"]
    assert (low, high) == pytest.approx(oracle.t.interval(0.95, 3, 0.5, oracle.sem([0.0, 1.0, 0.2, 0.8])))
    with pytest.raises(Invalid, match="contains 0"):
        fieller([1.0, 2.0], [0.0, 0.0], list("ab"))


def test_one_group_is_invalid_and_shapes_must_agree():
    with pytest.raises(Invalid, match="3 examples form 1 group"):
        fieller([1.0, 2.0, 3.0], [1.0, 2.0, 2.0], list("aaa"))
    with pytest.raises(OptionError, match="same examples"):
        fieller([1.0, 2.0], [1.0], list("ab"))


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None)
def test_binomial_intervals_are_clopper_pearson(case, confidence):
    successes, n = case
    exact = oracle.binomtest(successes, n).proportion_ci(confidence, "exact")
    assert binomial_interval(successes, n, confidence) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_one_sided_binomial_bounds_have_their_closed_forms_at_the_edges():
    assert binomial_lower(0, 10) == 0.0
    assert binomial_lower(10, 10) == pytest.approx(0.05 ** (1 / 10))
    assert binomial_upper(0, 10) == pytest.approx(1 - 0.05 ** (1 / 10))
    with pytest.raises(Invalid, match="no trials"):
        binomial_lower(0, 0)
    with pytest.raises(OptionError, match="impossible"):
        binomial_lower(3, 2)
