"""From a claim to its verdict: how strongly it is refuted."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from pytest_circuits.claims.evaluation import evaluate_claim, measure
from pytest_circuits.claims.refutation_level import LEVELS, smallest_level
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.verdict import Bound, Estimate
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Attribute, Describe, Encode, freeze
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import Parameters
from pytest_circuits.properties.protocol import Property
from pytest_circuits.stats.betting import betting_interval
from tests.fakes.executor import TASK


class Graded(Parameters):
    """A normal interval about 0.4 with standard error 0.03; `moves`: what is measured depends on the confidence."""

    moves: bool = False
    fails_above: float = 1.0


def _judge(claim: Any) -> Any:
    p = claim.parameters
    yield Describe(claim.model)
    options = freeze({"steps": p.confidence} if p.moves else {})
    yield [Encode(claim.model, claim.tasks["swap"]), Attribute(claim.model, claim.tasks["swap"], "eap", options=options)]
    if p.confidence > p.fails_above:
        raise Invalid("not at this confidence")
    half = NormalDist().inv_cdf((1 + p.confidence) / 2) * 0.03
    return Estimate(0.4, (0.4 - half, 0.4 + half), 50, p.confidence)


@pytest.fixture
def question(model, register):
    register(PROPERTIES, "graded", Property("graded", Graded, _judge))
    return lambda **parameters: Claim("graded", Graded(**parameters), model, {"swap": TASK})


@pytest.mark.parametrize(("edge", "level"), [
    (0.46, 0.05),  # two standard errors: p = .0455
    (0.49, 0.005),  # three: p = .0027, and .0025 is the next level
    (0.52, 0.0001),  # four: p = .00006
    (0.7, 0.00001),
])  # fmt: skip
def test_a_refuted_claim_is_told_with_the_smallest_level_that_refutes_it(new_executor, question, edge, level):
    p = 2 * NormalDist().cdf(-(edge - 0.4) / 0.03)
    expected = min((one for one in LEVELS if one < 0.05 and one >= p), default=0.05)
    assert expected == level
    made = evaluate_claim(new_executor(), question().with_bound(Bound(at_least=edge)))
    assert (made.verdict.kind, made.refuted_at) == ("refuted", level)
    assert evaluate_claim(new_executor(), question().with_bound(Bound(at_most=0.8 - edge))).refuted_at == level
    assert evaluate_claim(new_executor(), question().with_bound(Bound(edge, 1))).refuted_at == level


def test_it_is_found_without_measuring_again_and_is_no_part_of_the_cost(new_executor, question):
    executor = new_executor()
    made = evaluate_claim(executor, question().with_bound(Bound(at_least=0.7)))
    assert executor.opener.count("attribute") == 1
    assert (made.cost.measured, made.cost.forwards, made.cost.hits) == (3, 2, 1)  # as without looking for the level
    again = evaluate_claim(new_executor(), question().with_bound(Bound(at_least=0.7)))
    assert (again.refuted_at, again.cost.measured) == (made.refuted_at, 0)


def test_a_claim_that_is_not_refuted_has_no_level(new_executor, question):
    assert evaluate_claim(new_executor(), question().with_bound(Bound(at_least=0.3))).refuted_at is None
    assert evaluate_claim(new_executor(), question().with_bound(Bound(at_least=0.4))).refuted_at is None
    made = evaluate_claim(new_executor(), question(fails_above=0.9).with_bound(Bound(at_least=0.7)))
    assert (made.verdict.kind, made.refuted_at) == ("invalid", None)


@pytest.mark.parametrize("cached", [False, True])
def test_a_confidence_that_changes_what_is_measured_says_nothing_about_the_claim(new_executor, question, cached):
    """Whether or not that other thing was measured by chance."""
    executor = new_executor()
    if cached:
        for level in LEVELS:
            measure(executor, question(moves=True, confidence=1 - level))
    made = evaluate_claim(executor, question(moves=True).with_bound(Bound(at_least=0.7)))
    assert (made.verdict.kind, made.refuted_at) == ("refuted", 0.05)


def test_a_property_that_is_invalid_at_a_higher_confidence_is_refuted_up_to_there(new_executor, question):
    assert evaluate_claim(new_executor(), question(fails_above=0.992).with_bound(Bound(at_least=0.7))).refuted_at == 0.01


def test_a_measurement_can_be_judged_later_against_any_bound(new_executor, question):
    executor = new_executor()
    found = measure(executor, question())
    assert evaluate_claim(executor, question().with_bound(Bound(at_least=0.52)), found).refuted_at == 0.0001
    assert evaluate_claim(executor, question().with_bound(Bound(at_least=0.3)), found).verdict.kind == "certified"
    assert executor.opener.count("attribute") == 1


def test_levels_are_bisected():
    for own in (0.5, 0.05, 0.01, 0.00001):
        for last in (own, *(level for level in LEVELS if level < own)):
            asked = []
            assert smallest_level(own, lambda level, asked=asked, last=last: asked.append(level) or level >= last) == last
            assert len(asked) <= 4 and len(set(asked)) == len(asked)


def test_the_level_is_a_p_value_where_the_claim_just_holds():
    """True mean 0.3, claimed to be at least 0.3: at most a share a of claims is refuted at level a. 1500 populations of 60."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(1500):
        x = (rng.random(60) < 0.3).astype(float)

        def refuted(level, x=x):
            return betting_interval(x, 1 - level)[1] < 0.3

        found.append(smallest_level(0.2, refuted) if refuted(0.2) else 1.0)
    found = np.array(found)
    assert (found <= 0.2).mean() > 0.02  # the test can fail: some are refuted
    for level in LEVELS:
        assert (found <= level).mean() <= level + 3 * (level * (1 - level) / 1500) ** 0.5
