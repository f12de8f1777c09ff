"""Refutations of a whole suite, corrected for their number: from records alone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.claims.outcome import decide_outcome
from pytest_circuits.core.verdict import Bound, Estimate
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.report.build import build_report
from pytest_circuits.report.messages.claims import headline
from pytest_circuits.report.model import Multiplicity
from pytest_circuits.report.multiplicity import step_down
from pytest_circuits.report.renderers.explanation import ExplanationRenderer
from pytest_circuits.report.renderers.terminal import table
from tests.fakes.records import recorded

explain = ExplanationRenderer().explain

LEVELS = st.sampled_from([0.001, 0.01, 0.0125, 0.02, 0.025, 0.05, 0.2])


def claim(low, high, level=None, name="c"):
    """A claim that something is at least 0.5, with this interval; refuted at `level`."""
    outcome = Estimate((low + high) / 2, (low, high), 100) if high is not None else Invalid("nothing")
    fields = {} if level is None else {"refuted_at": level}
    nodeid = f"s.circuits.yaml::{name}::m::t"
    return recorded(outcome, model=None, nodeid=nodeid, claim=name, parameters={"confidence": 0.95}, fields=fields)


def closed(levels, claims, alpha):
    """The closure of Bonferroni's test, from its definition: i stands if each set of claims with i in it is rejected as a whole."""
    p = [*levels, *[1.0] * (claims - len(levels))]
    stands = []
    for i in range(len(levels)):
        sets = (s for k in range(1, claims + 1) for s in combinations(range(claims), k) if i in s)
        stands.append(all(min(p[j] for j in s) <= alpha / len(s) for s in sets))
    return stands


def test_the_worked_example_of_four_claims():
    """.01 ≤ .05/4, then .0125 ≤ .05/3, then .03 > .05/2: the third and, after it, the fourth do not stand."""
    assert step_down([0.03, 0.01, 0.04, 0.0125], 4, 0.05) == [False, True, False, True]
    assert step_down([0.03, 0.01, 0.0125], 5, 0.05) == [False, True, True]
    assert step_down([0.0126, 0.0126], 4, 0.05) == [False, False]
    assert step_down([0.05], 1, 0.05) == [True]
    assert step_down([], 0, 0.05) == []


@given(st.lists(LEVELS, max_size=5), st.integers(0, 3))
def test_holm_is_the_closure_of_bonferroni(levels, others):
    claims = len(levels) + others
    assert step_down(levels, claims, 0.05) == closed(levels, claims, 0.05)


def test_seldom_does_a_true_claim_of_a_suite_count_as_refuted():
    """Eight true claims and two false ones, 4000 suites; without the correction every third suite accuses one of the true ones."""
    rng = np.random.default_rng(5)
    wrong = uncorrected = 0
    for _ in range(4000):
        p = [*rng.random(8), *rng.random(2) * 0.002]
        refuted = [i for i in range(10) if p[i] <= 0.05]
        stands = step_down([p[i] for i in refuted], 10, 0.05)
        wrong += any(ok and i < 8 for i, ok in zip(refuted, stands, strict=True))
        uncorrected += any(i < 8 for i in refuted)
    assert uncorrected / 4000 > 0.25
    assert wrong / 4000 < 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5


def test_the_document_says_which_refutations_survive_and_verdicts_stay():
    claims = [claim(0.1, 0.3, 0.001, "a"), claim(0.3, 0.49, 0.025, "b"), claim(0.6, 0.9, name="c"), claim(0, None, name="d")]
    made = build_report(claims, 1.0)
    assert made.suite.holm == Multiplicity(claims=3, refuted=2, surviving=2)  # .001 ≤ .05/3 and .025 ≤ .05/2
    made = build_report([*claims, claim(0.4, 0.6, name="e")], 1.0)
    assert made.suite.holm == Multiplicity(claims=4, refuted=2, surviving=1)  # .025 > .05/3
    assert [c.survives_holm for c in made.claims] == [True, False, None, None, None]
    assert [c.verdict for c in made.claims] == ["refuted", "refuted", "certified", "invalid", "inconclusive"]
    assert [c.passed for c in made.claims] == [False, False, True, False, False]


def test_a_single_claim_is_corrected_for_nothing():
    made = build_report([claim(0.1, 0.3)], 1.0)
    assert (made.claims[0].refuted_at, made.claims[0].survives_holm) == (0.05, True)
    assert not any("Holm" in line or "Certified" in line for line in table(made))


def test_a_refutation_at_a_laxer_level_than_the_suites_does_not_survive():
    assert build_report([claim(0.1, 0.3, 0.1)], 1.0).claims[0].survives_holm is False


def test_the_table_marks_what_does_not_survive_and_says_what_that_means():
    claims = [claim(0.1, 0.3, 0.001, "a"), claim(0.3, 0.49, 0.025, "b"), *(claim(0.6, 0.9, name=f"c{i}") for i in range(2))]
    lines = table(build_report(claims, 1.0))
    rows = {line.split()[0]: line.split()[-1] for line in lines[2:6]}
    assert rows == {"a": "refuted", "b": "refuted*", "c0": "certified", "c1": "certified"}
    (note,) = [line for line in lines if line.startswith("* ")]
    assert "Holm's correction for the 4 claims" in note and "5%" in note
    assert sum("Certified claims are not corrected" in line for line in lines) == 1
    calm = table(build_report([claim(0.6, 0.9, name="c1"), claim(0.1, 0.3, 0.001, "a")], 1.0))
    assert not any(line.startswith("* ") for line in calm)
    assert not any("not corrected" in line for line in table(build_report([claim(0.1, 0.3), claim(0.1, 0.2)], 1.0)))


def test_an_explanation_says_how_strongly_a_claim_is_refuted_and_whether_that_survives():
    made = claim(0.1, 0.3, 0.001).record
    assert "  it would still be refuted at 99.9% confidence (error level 0.001)" in explain(made).split("\n")
    assert "Holm" not in explain(made)
    weak = build_report([claim(0.3, 0.49, 0.05, "a"), claim(0.6, 0.9)], 1.0).claims[0]
    assert any("does not survive Holm's correction" in line for line in explain(weak).split("\n"))
    assert headline(weak).endswith("should be at least 0.5 (not after Holm's correction)")
    assert "still be refuted" not in explain(claim(0.4, 0.6).record)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_level_of_a_refutation_is_never_above_its_confidence_by_rounding(confidence):
    made = decide_outcome(Estimate(0.2, (0.1, 0.3), 10, confidence), Bound(0.5), Cost(), None)
    assert f"{made.refuted_at!r}" == f"{round(1 - confidence, 2)!r}"
