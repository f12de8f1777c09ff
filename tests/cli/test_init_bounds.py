"""From an interval to a bound that it meets."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_circuits import Estimate
from pytest_circuits.cli.init.bounds import MARGINS, above, around, below, count_above, safe_side
from pytest_circuits.core.verdict import CERTIFIED, decide

numbers = st.floats(-1e3, 1e3)
steps = [Fraction(1, 100), Fraction(1, 1000)]


@st.composite
def estimates(draw):
    low, value, high = sorted(draw(st.lists(numbers, min_size=3, max_size=3)))
    return Estimate(value, (low, high), 50)


@given(estimates(), st.sampled_from(["at_least", "at_most"]), st.floats(0, 3))
@example(Estimate(0.29, (0.29, 0.29), 50), "at_least", 0.0)  # 0.29 is a little less than 29/100 as a float
@example(Estimate(0.57, (0.57, 0.58), 50), "at_most", 0.0)
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
    ((0.5, 0.7), "at_least", 1.0, {"at_least": 0.4}),
    ((0.0047, 0.3), "at_least", 0.0, {"at_least": 0.004}),  # 0 would say nothing
    ((-0.004, 0.3), "at_least", 0.0, {"at_least": -0.01}),
    ((1.0, 1.0), "at_least", 0.0, {"at_least": 0.99}),  # examples that are all alike: others need not be quite like them
    ((1.0, 1.0), "at_least", 0.5, {"at_least": 0.99}),
    ((0.0, 0.0), "at_most", 0.0, {"at_most": 0.01}),
    ((0.625, 0.625 + 1e-12), "at_least", 0.0, {"at_least": 0.61}),
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


def test_a_count_without_a_width_has_one_to_spare():
    assert safe_side(Estimate(8.0, (8.0, 8.0), 50), "at_most", count=True).at_most == 9


@given(estimates(), st.floats(-2, 2), st.floats(0, 3))
@example(Estimate(1.0, (1.0, 1.0), 50), 1.0, 0.5)
def test_a_margin_holds_the_interval_and_the_target_and_is_the_narrowest_that_does(estimate, target, slack):
    found = around(estimate, target, slack)
    extra = slack * (estimate.interval[1] - estimate.interval[0]) / 2
    reach = max(target - estimate.interval[0], estimate.interval[1] - target) + extra
    if found is None:
        assert reach > MARGINS[-1] - 1e-6
        return
    assert decide(estimate, found).kind == CERTIFIED and found.at_least < target < found.at_most
    margin = target - found.at_least
    assert found.at_most - target == pytest.approx(margin, abs=1e-8) and reach <= margin + 1e-6
    assert all(narrower < reach + 1e-6 for narrower in MARGINS if narrower < margin - 1e-6)


@pytest.mark.parametrize(("interval", "slack", "wanted"), [
    ((1.0, 1.0), 0.5, [0.9, 1.1]),
    ((0.901, 0.949), 0.0, [0.9, 1.1]),  # faithful, and 1 would be no less so
    ((0.901, 0.949), 1.0, [0.85, 1.15]),
    ((0.95, 1.23), 0.0, [0.75, 1.25]),
    ((0.6, 1.4), 0.0, [0.6, 1.4]),
    ((0.907, 2.343), 0.0, None),  # 1.6 would be no faithful circuit
    ((0.3, 0.4), 0.0, None),
])  # fmt: skip
def test_a_claim_of_faithfulness_is_about_one(interval, slack, wanted):
    found = around(Estimate(sum(interval) / 2, interval, 50), 1.0, slack)
    assert (None if found is None else found.as_dict()["within"]) == wanted
