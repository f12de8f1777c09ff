"""Sums and ratios of independent estimates, and ratios of paired bounded values: by hand, by search, and in simulated studies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.betting import betting_interval, grouped_mean_interval, shuffled
from pytest_circuits.stats.betting_ratio import betting_ratio
from pytest_circuits.stats.mover_interval import ratio, weighted_sum

part = st.tuples(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1)).map(lambda v: (v[0], (v[0] - v[1], v[0] + v[2])))


def test_symmetric_intervals_add_like_standard_errors():
    assert weighted_sum([(1.0, (0.7, 1.3)), (5.0, (4.6, 5.4))], [1, -1]) == (-4.0, pytest.approx((-4.5, -3.5)))
    assert weighted_sum([(1.0, (0.7, 1.3)), (5.0, (4.6, 5.4))], [1, -1], also=1.2)[1] == pytest.approx((-5.3, -2.7))


def test_a_negative_weight_takes_the_other_end():
    assert weighted_sum([(0.0, (-1.0, 0.0))], [-2]) == (0.0, (0.0, 2.0))
    assert weighted_sum([(0.0, (-1.0, 0.0)), (0.0, (0.0, 1.0))], [1, -1])[1] == pytest.approx((-(2**0.5), 0.0))


def test_the_sum_is_clipped_to_its_range_and_weights_must_fit():
    assert weighted_sum([(0.9, (0.5, 1.0)), (-0.9, (-1.0, -0.5))], [1, -1], lowest=-1, highest=1)[1][1] == pytest.approx(1.8)  # the value
    assert weighted_sum([(0.4, (-0.9, 1.0)), (-0.4, (-1.0, 0.9))], [1, -1], lowest=-1, highest=1)[1] == (-1, 1)
    with pytest.raises(OptionError, match="one weight for each estimate"):
        weighted_sum([(0.0, (0.0, 0.0))], [1, 2])


@given(part, part)
@settings(deadline=None)
def test_the_ratio_interval_is_where_the_contrast_may_be_zero(numerator, denominator):
    if denominator[1][0] <= 1e-3:
        return
    value, (low, high) = ratio(numerator, denominator)
    assert value == pytest.approx(numerator[0] / denominator[0])
    for b in np.linspace(low - 3, high + 3, 41):
        ends = weighted_sum([numerator, denominator], [1, -b])[1]
        if abs(b - low) > 1e-6 and abs(b - high) > 1e-6:
            assert (ends[0] <= 0 <= ends[1]) == (low <= b <= high)


def test_a_ratio_to_what_may_be_zero_is_invalid_with_the_numbers():
    with pytest.raises(Invalid, match=r"the drop is 0\.100 with interval \[-0\.100, 0\.300\], which is not clearly above 0"):
        ratio((0.5, (0.4, 0.6)), (0.1, (-0.1, 0.3)), "the drop")


def test_sums_and_ratios_of_betting_intervals_cover():
    """200 studies of two tasks with 60 binary values each; nominal 95%."""
    rng = np.random.default_rng(0)
    inside = np.zeros(2)
    for _ in range(200):
        parts = [grouped_mean_interval(rng.random(60) < q, [str(i) for i in range(60)], 0.95)[:2] for q in (0.3, 0.7)]
        for i, (truth, (_, (low, high))) in enumerate(((-0.4, weighted_sum(parts, [1, -1])), (3 / 7, ratio(*parts)))):
            inside[i] += low <= truth <= high
    assert (inside / 200 >= 0.95 - 2 * (0.05 * 0.95 / 200) ** 0.5).all()


def test_the_paired_ratio_is_one_of_means_over_groups():
    y = np.asarray([1, 1, 1, 0, 1, 1, 1, 1, 1, 1.0] * 4)
    x = y * (np.arange(40) % 2)
    groups = [f"g{i // 2}" for i in range(40)]
    value, (low, high) = betting_ratio(x, y, groups)
    gx, gy = x.reshape(20, 2).mean(1), y.reshape(20, 2).mean(1)
    assert value == pytest.approx(gx.mean() / gy.mean())
    assert low < value < high
    order = shuffled(20)

    def possible(r):
        ends = betting_interval((gx - r * gy)[order], 0.95, -r, 1)
        return ends[0] <= 0 <= ends[1]

    for end, out in ((low, -1), (high, 1)):
        assert possible(end - out * 1e-3) and not possible(end + out * 1e-3)


def test_the_paired_ratio_has_a_width_also_where_nothing_varies():
    value, (low, high) = betting_ratio(np.zeros(40), np.ones(40), [str(i) for i in range(40)])
    assert (value, low) == (0, 0) and 0.05 < high < 0.2
    value, (low, high) = betting_ratio(np.ones(40), np.ones(40), [str(i) for i in range(40)])
    assert value == 1 and 0.8 < low < 0.97 and 1 < high < 1.3


def test_the_paired_ratio_covers():
    """200 studies: 80% intact, of which 40% survive; nominal 95%."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        y = rng.random(60) < 0.8
        x = y & (rng.random(60) < 0.4)
        _, (low, high) = betting_ratio(x.astype(float), y.astype(float), [str(i) for i in range(60)])
        inside += low <= 0.4 <= high
    assert inside >= 200 * 0.95 - 2 * (200 * 0.95 * 0.05) ** 0.5


def test_a_paired_ratio_to_nothing_is_invalid():
    with pytest.raises(Invalid, match=r"accuracy is 0\.000 with interval"):
        betting_ratio(np.zeros(40), np.zeros(40), [str(i) for i in range(40)], what="accuracy")
