"""Betting intervals: validity, shape, equivariance."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.betting import TRUNCATION, betting_interval, grouped_mean_interval

unit = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40)

POPULATIONS = {
    "fair coin": (lambda rng, n: (rng.random(n) < 0.5) * 1.0, 0.5),
    "rare": (lambda rng, n: (rng.random(n) < 0.05) * 1.0, 0.05),
    "skewed": (lambda rng, n: rng.beta(0.3, 2.7, n), 0.1),
    "narrow": (lambda rng, n: rng.beta(40, 10, n), 0.8),
    "three values": (lambda rng, n: rng.choice([0.0, 0.5, 1.0], n, p=[0.1, 0.5, 0.4]), 0.65),
}


def tolerated(trials: int, rate: float = 0.05) -> float:
    """Misses that a rate of exactly `rate` exceeds once in about 3000 tests."""
    return trials * rate + 3.4 * sqrt(trials * rate * (1 - rate))


def slow_lower(x: list[float], alpha: float) -> float:
    """The definition, written as loops, on a grid of means."""
    n, best = len(x), 0.0
    for step in range(1, 2000):
        m, capital, peak, total, squares = step / 2000, 0.0, 0.0, 0.5, 0.25
        for i, value in enumerate(x):
            bet = min(sqrt(2 * log(2 / alpha) / (n * (squares / (i + 1)))), TRUNCATION / m)
            capital += log(1 + bet * (value - m))
            peak = max(peak, capital)
            total += value
            squares += (value - total / (i + 2)) ** 2
        if peak >= log(2 / alpha):
            best = m
    return best


def test_the_lower_end_is_the_largest_mean_that_the_capital_process_rules_out():
    for name, n in (("skewed", 25), ("fair coin", 30), ("three values", 40)):
        x = POPULATIONS[name][0](np.random.default_rng(0), n)
        assert betting_interval(x)[0] == pytest.approx(slow_lower(list(x), 0.05), abs=1 / 2000 + 1e-9)


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("n", [8, 60])
def test_coverage_is_at_least_nominal(name, n):
    draw, mean = POPULATIONS[name]
    rng = np.random.default_rng(n)
    ends = np.array([betting_interval(draw(rng, n)) for _ in range(300)])
    assert ((ends[:, 0] > mean) | (ends[:, 1] < mean)).sum() <= tolerated(300)


def test_intervals_shrink_to_the_mean_as_examples_are_added():
    rng = np.random.default_rng(1)
    widths = [np.diff(betting_interval((rng.random(n) < 0.6) * 1.0))[0] for n in (16, 64, 256, 1024)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.09  # a normal interval would be 0.06 wide
    assert np.diff(betting_interval(np.full(200, 0.7)))[0] < 0.04


@given(unit)
@settings(deadline=None)
def test_the_sample_mean_is_always_inside_and_the_range_never_left(x):
    low, high = betting_interval(x)
    assert 0 <= low <= np.mean(np.asarray(x)) + 1e-12 and np.mean(np.asarray(x)) - 1e-12 <= high <= 1


def test_even_an_order_made_to_mislead_cannot_push_the_mean_out():
    low, high = betting_interval([1.0] * 50 + [0.0] * 50)
    assert low <= 0.5 <= high


@given(unit, st.sampled_from([(-1.0, 1.0), (0.0, 8.0), (-3.0, 5.0)]))
@settings(deadline=None)
def test_intervals_move_and_stretch_with_the_values(x, bounds):
    lowest, highest = bounds
    moved = lowest + np.asarray(x) * (highest - lowest)
    plain = betting_interval(x)
    assert betting_interval(moved, lowest=lowest, highest=highest) == pytest.approx(
        [lowest + e * (highest - lowest) for e in plain], abs=1e-6
    )


@given(unit)
@settings(deadline=None)
def test_mirrored_values_have_the_mirrored_interval(x):
    low, high = betting_interval(x)
    assert betting_interval(1 - np.asarray(x)) == pytest.approx([1 - high, 1 - low], abs=1e-6)


@given(unit)
@settings(deadline=None)
def test_more_confidence_never_gives_a_narrower_interval(x):
    narrow, wide = betting_interval(x, 0.8), betting_interval(x, 0.99)
    assert wide[0] <= narrow[0] + 1e-9 and narrow[1] <= wide[1] + 1e-9


def test_one_observation_and_constant_data():
    assert betting_interval([1.0]) == (0.0, 1.0)
    low, high = betting_interval([1.0] * 64)
    assert high == 1.0
    first = sqrt(2 * log(40) / (0.25 * 64))  # before anything was seen; all later bets are truncated
    capital = (1 + first * (1 - low)) * (1 + TRUNCATION / low * (1 - low)) ** 63
    assert capital == pytest.approx(40, rel=1e-6)


def test_values_outside_the_range_are_refused_but_float32_rounding_is_not():
    with pytest.raises(OptionError, match=r"must lie in \[0, 1\], got 0.2 to 1.5"):
        betting_interval([0.2, 1.5])
    assert betting_interval([1.0000001, 0.5])[1] == 1.0
    with pytest.raises(OptionError, match="confidence"):
        betting_interval([0.5], confidence=1.0)
    with pytest.raises(Invalid, match="no values"):
        betting_interval([])


def test_the_grouped_mean_counts_every_group_once():
    """Group a: 1, 1, 1; group b: 0."""
    value, (low, high), count = grouped_mean_interval([1, 1, 1, 0], list("aaab"))
    assert (value, count) == (0.5, 2)
    assert low <= 0.5 <= high


@given(unit, st.integers(0, 5))
@settings(deadline=None)
def test_repeating_the_examples_of_a_group_is_no_evidence(x, times):
    names = [str(i) for i in range(len(x))]
    repeated = grouped_mean_interval(np.repeat(x, times + 1), np.repeat(names, times + 1).tolist())
    assert repeated[1] == pytest.approx(grouped_mean_interval(x, names)[1], abs=1e-9)


@given(unit)
@settings(deadline=None)
def test_names_of_groups_do_not_matter(x):
    groups = [str(i % 7) for i in range(len(x))]
    assert grouped_mean_interval(x, groups) == grouped_mean_interval(x, [f"z{9 - int(g)}" for g in groups])


def test_a_sorted_file_does_not_distort_the_grouped_interval():
    """In file order the first half alone would rule out every mean below 0.8."""
    value, (low, high), _ = grouped_mean_interval([1.0] * 50 + [0.0] * 50, [str(i) for i in range(100)])
    assert value == 0.5
    assert 0.3 < low < 0.45 and 0.55 < high < 0.7


def test_clustered_data_are_covered_by_groups_and_not_by_examples():
    rng = np.random.default_rng(3)
    groups = [str(i // 20) for i in range(400)]
    by_group = by_example = 0
    for _ in range(150):
        x = np.repeat((rng.random(20) < 0.5) * 1.0, 20)
        low, high = grouped_mean_interval(x, groups)[1]
        by_group += not low <= 0.5 <= high
        low, high = betting_interval(x[rng.permutation(400)])
        by_example += not low <= 0.5 <= high
    assert by_group <= tolerated(150)
    assert by_example > tolerated(150)
