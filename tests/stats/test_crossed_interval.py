"""Intervals that count both draws and examples."""

from math import hypot, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.crossed_interval import crossed_interval


def names(n):
    return [str(i) for i in range(n)]


def table(seed, draws=6, n=12):
    rng = np.random.default_rng(seed)
    return (rng.random((draws, n)) < 0.6) * 1.0, (rng.random(n) < 0.3) * 1.0


def test_the_interval_is_the_quadrature_of_its_two_parts():
    values, reference = table(0)
    value, (low, high), parts = crossed_interval(values, reference, names(12), 0.9)
    assert value == pytest.approx((values - reference).mean())
    _, examples, _ = grouped_mean_interval((values - reference).mean(0), names(12), 0.9, -1, 1)
    draws = oracle.t.interval(0.9, 5, value, oracle.sem(values.mean(1)))
    assert parts["examples"] == pytest.approx(examples) and parts["draws"] == pytest.approx(draws)
    assert low == pytest.approx(max(-1, value - hypot(value - examples[0], value - draws[0])))
    assert high == pytest.approx(min(1, value + hypot(examples[1] - value, draws[1] - value)))
    assert (parts["n_draws"], parts["n_groups"]) == (6, 12)


@given(st.integers(0, 999), st.randoms())
@settings(deadline=None, max_examples=40)
def test_order_of_draws_does_not_matter_and_repeated_examples_of_a_group_are_no_evidence(seed, random):
    values, reference = table(seed)
    value, ends, _ = crossed_interval(values, reference, names(12))
    mixed = random.sample(range(6), 6)
    again, more, _ = crossed_interval(np.repeat(values[mixed], 3, axis=1), np.repeat(reference, 3), np.repeat(names(12), 3).tolist())
    assert [again, *more] == pytest.approx([value, *ends], abs=1e-9)
    assert -1 <= ends[0] <= value <= ends[1] <= 1


def test_groups_of_unequal_size_count_the_same_for_both_parts():
    value, _, parts = crossed_interval([[1, 1, 1, 0], [1, 1, 1, 1]], [0, 0, 0, 0], list("aaab"))
    assert value == pytest.approx(0.75)
    assert parts["draw_sd"] == pytest.approx(np.std([0.5, 1.0], ddof=1))


def test_equal_draws_leave_the_example_interval_alone():
    _, reference = table(1)
    _value, ends, parts = crossed_interval(np.ones((5, 12)), reference, names(12))
    assert parts["draw_sd"] == 0.0
    assert ends == pytest.approx(parts["examples"])


def test_constant_data_still_have_the_width_that_their_number_of_examples_deserves():
    value, (low, high), _ = crossed_interval(np.ones((20, 10)), np.zeros(10), names(10))
    assert value == high == 1.0
    assert low < 0.5


def test_wrong_inputs_are_refused():
    with pytest.raises(Invalid, match="cannot be estimated from 1 draw"):
        crossed_interval(np.ones((1, 4)), np.ones(4), names(4))
    with pytest.raises(OptionError, match="n_draws, n_examples"):
        crossed_interval(np.ones((2, 4)), np.ones(3), names(4))
    with pytest.raises(Invalid, match="NaN"):
        crossed_interval([[np.nan, 1.0], [1.0, 1.0]], [0.0, 0.0], names(2))


SCENARIOS = {
    "small draw effects": lambda rng, m: (rng.uniform(-0.05, 0.05, m), 0.0),
    "heavy draw effects": lambda rng, m: (rng.uniform(-0.4, 0.4, m), 0.0),
    "one draw in ten does the damage": lambda rng, m: (-0.4 * (rng.random(m) < 0.1), -0.04),
    "no draw effects": lambda rng, m: (np.zeros(m), 0.0),
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize(("draws", "n"), [(20, 64), (49, 200)])
def test_coverage_with_planted_draw_and_example_effects(name, draws, n):
    rng = np.random.default_rng(5)
    missed, trials = 0, 200
    for _ in range(trials):
        effect, shift = SCENARIOS[name](rng, draws)
        difficulty = rng.uniform(-0.1, 0.1, n)
        values = rng.random((draws, n)) < 0.5 + effect[:, None] + difficulty
        reference = rng.random(n) < 0.2 + difficulty
        low, high = crossed_interval(values * 1.0, reference * 1.0, names(n))[1]
        missed += not low <= 0.3 + shift <= high
    assert missed <= trials * 0.05 + 3.4 * sqrt(trials * 0.05 * 0.95)


def test_counting_examples_alone_would_miss_heavy_draw_effects():
    """The reason for crossing: with 20 draws of very different effect the example interval alone is far too narrow."""
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(100):
        effect = rng.uniform(-0.5, 0.5, 5)
        values = rng.random((5, 400)) < 0.5 + effect[:, None]
        examples = crossed_interval(values * 1.0, np.zeros(400), names(400))[2]["examples"]
        missed += not examples[0] <= 0.5 <= examples[1]
    assert missed > 50
