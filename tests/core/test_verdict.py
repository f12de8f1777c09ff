"""From an estimate with an interval, and a bound, to a verdict."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pytest_circuits import Bound, Estimate
from pytest_circuits.core.verdict import CERTIFIED, INCONCLUSIVE, INVALID, REFUTED, decide
from pytest_circuits.report.messages.verdicts import reason

numbers = st.floats(-1e6, 1e6)
anything = st.floats()


@st.composite
def estimates(draw):
    low, value, high = sorted(draw(st.lists(numbers, min_size=3, max_size=3)))
    return Estimate(value, (low, high), draw(st.integers(1, 10_000)))


@st.composite
def bounds(draw):
    low, high = sorted(draw(st.lists(numbers, min_size=2, max_size=2)))
    return draw(st.sampled_from([Bound(at_least=low), Bound(at_most=high), Bound(low, high)]))


def meets(value, bound):
    return (bound.at_least is None or value >= bound.at_least) and (bound.at_most is None or value <= bound.at_most)


@given(estimates(), bounds(), st.floats(0, 1))
@example(Estimate(0.5, (0.5, 0.5), 1), Bound(0.5, 0.5), 0.0)
def test_certified_means_that_every_value_of_the_interval_meets_the_bound_and_refuted_that_none_does(estimate, bound, where):
    """Never certified, and never refuted, when the interval straddles an edge."""
    low, high = estimate.interval
    kind = decide(estimate, bound).kind
    inside = min(max(low + where * (high - low), low), high)
    for value in (low, high, inside):
        assert not (kind == CERTIFIED and not meets(value, bound))
        assert not (kind == REFUTED and meets(value, bound))
    if kind == INCONCLUSIVE:
        ends = [meets(low, bound), meets(high, bound)]
        assert ends.count(True) < 2
        assert any(ends) or (bound.within and low < bound.at_least and high > bound.at_most)


@given(st.tuples(anything, anything, st.sampled_from([math.nan, math.inf, -math.inf])).flatmap(st.permutations), bounds())
def test_what_is_not_finite_is_invalid_whatever_the_bound(numbers, bound):
    value, low, high = numbers
    assert decide(Estimate(value, (low, high), 100), bound).kind == INVALID


@given(estimates(), numbers)
def test_at_least_and_at_most_are_mirror_images(estimate, edge):
    mirrored = Estimate(-estimate.value, (-estimate.interval[1], -estimate.interval[0]), estimate.n)
    assert decide(estimate, Bound(at_least=edge)).kind == decide(mirrored, Bound(at_most=-edge)).kind


@given(estimates(), numbers, numbers)
def test_a_stricter_bound_never_certifies_more_and_never_refutes_less(estimate, a, b):
    loose, strict = sorted((a, b))
    first, second = (decide(estimate, Bound(at_least=edge)).kind for edge in (loose, strict))
    assert not (second == CERTIFIED and first != CERTIFIED)
    assert not (first == REFUTED and second != REFUTED)


@pytest.mark.parametrize(("interval", "bound", "kind"), [
    ((0.4, 0.6), Bound(at_least=0.4), CERTIFIED),
    ((0.4, 0.6), Bound(at_least=math.nextafter(0.4, 1)), INCONCLUSIVE),
    ((0.4, 0.6), Bound(at_least=0.6), INCONCLUSIVE),
    ((0.4, 0.6), Bound(at_least=math.nextafter(0.6, 1)), REFUTED),
    ((0.4, 0.6), Bound(at_most=0.6), CERTIFIED),
    ((0.4, 0.6), Bound(at_most=0.4), INCONCLUSIVE),
    ((0.4, 0.6), Bound(at_most=math.nextafter(0.4, 0)), REFUTED),
    ((0.4, 0.6), Bound(0.4, 0.6), CERTIFIED),
    ((0.4, 0.6), Bound(0.45, 0.55), INCONCLUSIVE),
    ((0.4, 0.6), Bound(0.7, 0.8), REFUTED),
    ((0.4, 0.6), Bound(0.1, 0.3), REFUTED),
    ((0.5, 0.5), Bound(0.5, 0.5), CERTIFIED),
    ((0.0, 0.0), Bound(at_least=-0.0), CERTIFIED),
])  # fmt: skip
def test_the_edges_belong_to_the_bound(interval, bound, kind):
    assert decide(Estimate(0.5, interval, 10), bound).kind == kind


@given(estimates(), bounds())
def test_an_unsettled_estimate_is_inconclusive_and_says_why(estimate, bound):
    told = decide(Estimate(estimate.value, estimate.interval, estimate.n, unsettled="only 4 sets can be drawn"), bound)
    assert told.kind == INCONCLUSIVE
    assert (told.code, told.arguments["why"]) == ("unsettled", "only 4 sets can be drawn")


def test_the_reason_names_value_interval_confidence_and_bound():
    estimate = Estimate(0.443, (0.381, 0.506), 100, 0.9)
    assert reason(decide(estimate, Bound(at_least=0.3))) == "0.443 with 90% interval [0.381, 0.506]: the whole interval is at least 0.3"
    assert reason(decide(estimate, Bound(at_most=0.3))) == "0.443 with 90% interval [0.381, 0.506]: the whole interval misses 'at most 0.3'"


@pytest.mark.parametrize(("interval", "bound", "wanted"), [
    ((0.4, 0.6), Bound(at_least=0.45), 440),  # half width 0.1, gap 0.05: 4 times as many, and a tenth more
    ((0.4, 0.6), Bound(at_most=0.55), 440),
    ((0.3, 0.6), Bound(at_least=0.45), 1800),  # the wider side counts; two digits, since it is a guess
    ((0.4, 0.6), Bound(0.45, 0.9), 440),
    ((0.4, 0.6), Bound(0.1, 0.55), 440),
    ((0.4, 0.6), Bound(at_least=0.401), 110),
    ((0.4, 0.9), Bound(at_least=0.48), 44_000),
])  # fmt: skip
def test_an_inconclusive_claim_says_how_many_examples_would_probably_settle_it(interval, bound, wanted):
    text = reason(decide(Estimate(0.5, interval, 100), bound))
    assert text.endswith(f"about {wanted} examples instead of 100 would probably settle it")


def test_an_estimate_on_the_bound_is_not_promised_to_be_settled():
    for edge in (0.5, 0.5 + 1e-9, 0.5 - 5e-324):
        text = reason(decide(Estimate(0.5, (0.4, 0.6), 100), Bound(at_least=edge)))
        assert text.endswith("the estimate lies on the bound, so no affordable number of examples is likely to settle it")


@given(estimates(), bounds())
def test_more_examples_are_asked_for_than_there_were(estimate, bound):
    text = reason(decide(estimate, bound))
    if "would probably settle it" in text:
        assert int(text.split("about ")[1].split()[0]) > estimate.n


@pytest.mark.parametrize(("bound", "low", "high", "told"), [
    (Bound(at_least=0), 0, 1, "every value is at least 0: values lie in [0, 1]"),
    (Bound(at_least=-1), 0, 1, "every value is at least -1: values lie in [0, 1]"),
    (Bound(at_most=1), 0, 1, "every value is at most 1: values lie in [0, 1]"),
    (Bound(0, 1), 0, 1, "every value is within [0, 1]: values lie in [0, 1]"),
    (Bound(-1, 2), 0, 1, "every value is within [-1, 2]: values lie in [0, 1]"),
    (Bound(at_least=1.1), 0, 1, "no value can be at least 1.1: values lie in [0, 1]"),
    (Bound(at_most=-0.1), 0, 1, "no value can be at most -0.1: values lie in [0, 1]"),
    (Bound(1.1, 1.2), 0, 1, "no value can be within [1.1, 1.2]: values lie in [0, 1]"),
    (Bound(0.6, 0.4), 0, 1, "no value can be within [0.6, 0.4]: the lower end is above the upper one"),
    (Bound(at_least=1), 0, 1, None),
    (Bound(at_most=0), 0, 1, None),
    (Bound(0, 0.9), 0, 1, None),
    (Bound(at_least=-1e9), None, None, None),
    (Bound(at_least=-1), None, 1, None),
    (Bound(at_most=2), None, 1, "every value is at most 2: values lie in [-inf, 1]"),
], ids=str)  # fmt: skip
def test_a_bound_that_every_value_meets_or_none_can_says_nothing(bound, low, high, told):
    assert bound.vacuous(low, high) == told


@given(bounds(), st.lists(numbers, min_size=2, max_size=2).map(sorted), st.floats(0, 1))
def test_a_bound_that_says_something_can_go_either_way(bound, ends, where):
    low, high = ends
    assume(low < high)
    if bound.vacuous(low, high) is not None:
        value = low + where * (high - low)
        kinds = {meets(v, bound) for v in (low, high, min(max(value, low), high))}
        assert len(kinds) == 1 or "every" not in bound.vacuous(low, high)
    else:
        edges = [edge for edge in (bound.at_least, bound.at_most) if edge is not None]
        candidates = {low, high, *(e for e in edges if low <= e <= high)}
        candidates |= {math.nextafter(e, way) for e in edges for way in (-math.inf, math.inf)}
        possible = [meets(v, bound) for v in candidates if low <= v <= high]
        assert True in possible
        assert False in possible


def test_estimates_and_bounds_print_in_words():
    assert str(Estimate(0.6149, (0.55, 0.671), 128)) == "0.615 [0.55, 0.671] (n=128, 95%)"
    assert [str(b) for b in (Bound(at_least=0.4), Bound(at_most=2), Bound(0.9, 1.1))] == ["at least 0.4", "at most 2", "within [0.9, 1.1]"]
    assert [b.as_dict() for b in (Bound(0.4), Bound(None, 2), Bound(0.9, 1.1))] == [
        {"at_least": 0.4},
        {"at_most": 2},
        {"within": [0.9, 1.1]},
    ]
