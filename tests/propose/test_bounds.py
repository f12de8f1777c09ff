"""From an interval to a bound that it meets."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_circuits import Estimate
from pytest_circuits.propose.bounds import above, below, count_above, safe_side
from pytest_circuits.verdict import CERTIFIED, decide

numbers = st.floats(-1e3, 1e3)
steps = [Fraction(1, 100), Fraction(1, 1000)]


@st.composite
def estimates(draw):
    low, value, high = sorted(draw(st.lists(numbers, min_size=3, max_size=3)))
    return Estimate(value, (low, high), 50)


@given(estimates(), st.sampled_from(["at_least", "at_most", "within"]), st.floats(0, 3))
@example(Estimate(0.29, (0.29, 0.29), 50), "at_least", 0.0)  # 0.29 is a little less than 29/100 as a float
@example(Estimate(0.57, (0.57, 0.58), 50), "within", 0.0)
def test_the_whole_interval_meets_its_own_bound(estimate, side, slack):
    assert decide(estimate, safe_side(estimate, side, slack)).kind == CERTIFIED


@given(numbers)
def test_a_bound_is_less_than_a_step_away(value):
    for nearest, sign in ((below, 1), (above, -1)):
        gap = sign * (Fraction(value) - Fraction(nearest(value)))
        assert 0 <= gap < Fraction(1, 100) + Fraction(1, 10**9)


@given(st.floats(0, 1e6))
def test_a_count_has_two_digits_and_is_not_below(value):
    found = count_above(value)
    assert found >= value and found == int(found) and len(str(int(found)).rstrip("0")) <= 2
    assert Fraction(found) - Fraction(value) < 10 ** max(0, len(str(math.ceil(value))) - 2)


@pytest.mark.parametrize(("interval", "side", "slack", "wanted"), [
    ((0.5951, 0.6462), "at_least", 0.0, {"at_least": 0.59}),
    ((0.5951, 0.6462), "at_most", 0.0, {"at_most": 0.65}),
    ((0.5951, 0.6462), "within", 0.0, {"within": [0.59, 0.65]}),
    ((0.5, 0.7), "at_least", 1.0, {"at_least": 0.4}),
    ((0.0047, 0.3), "at_least", 0.0, {"at_least": 0.004}),  # 0 would say nothing
    ((-0.004, 0.3), "at_least", 0.0, {"at_least": -0.01}),
])  # fmt: skip
def test_bounds_are_rounded_to_what_can_be_read(interval, side, slack, wanted):
    found = safe_side(Estimate(sum(interval) / 2, interval, 50), side, slack)
    assert found.as_dict() == {key: pytest.approx(value, abs=1e-12) for key, value in wanted.items()}


@pytest.mark.parametrize(("high", "wanted"), [(43, 43), (388, 390), (977, 980), (1001, 1100), (7, 7)])
def test_counts_keep_their_units(high, wanted):
    assert safe_side(Estimate(5.0, (3.0, float(high)), 50), "at_most", count=True).at_most == wanted


def test_an_interval_without_ends_has_no_bound():
    with pytest.raises(ValueError, match="no finite ends"):
        safe_side(Estimate(0.5, (0.1, math.inf), 50), "at_least")
