"""How far an estimate went towards its bound, what is said of survivors, and what counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.claims.outcome import Evaluation
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import CERTIFIED, MEASURED, REFUTED, Bound, Estimate, invalid
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.mutants.base import Mutation
from pytest_circuits.mutation.circuit import SpecCircuit
from pytest_circuits.mutation.detection import Behaviour, Detection, MutantResult
from pytest_circuits.mutation.explain import reasons, share_of_way
from pytest_circuits.mutation.judged_claim import JudgedClaim
from pytest_circuits.mutation.recipes import UnmadeMutant
from pytest_circuits.mutation.report import GroupResult, build_mutation_report
from pytest_circuits.report.messages.mutation import mutant_reason
from pytest_circuits.report.renderers.mutation import lines

CIRCUIT = SpecCircuit(Universe(2, 2, 4), {"shared set of a": ("L0H0",)}, "told")
SAME, OTHER = Behaviour((1.0, 1.0), 0.0, 0.0, False), Behaviour((1.0, 0.75), 2.5, 2.0, True)


def judged(value, verdict=CERTIFIED):
    estimate = None if value is None else Estimate(value, (value - 0.1, value + 0.1), 50, 0.95, "", "reuse")
    return Evaluation(replace(invalid("invalid", "because"), kind=verdict), estimate, Cost(), None)


def asked(value, bound, expect=CERTIFIED, name="a"):
    claim = Claim("reuse", None, ModelSource("m", path="x"), bound=bound, expect=expect, name=name, entry="m")
    return JudgedClaim(f"f::{name}", claim, judged(value, expect))


def answer(before, after, bound, expect=CERTIFIED, how=None, name="a"):
    return Detection(asked(before, bound, expect, name), judged(after, how or expect), how)


@pytest.mark.parametrize(("before", "after", "bound", "expect", "share"), [
    (0.6, 0.5, Bound(at_least=0.4), CERTIFIED, 0.5),
    (0.6, 0.7, Bound(at_least=0.4), CERTIFIED, 0.0),
    (0.6, 0.2, Bound(at_least=0.4), CERTIFIED, 2.0),
    (0.1, 0.3, Bound(at_most=0.5), CERTIFIED, 0.5),
    (1.0, 1.05, Bound(0.9, 1.1), CERTIFIED, 0.5),
    (1.0, 0.9, Bound(0.9, 1.1), CERTIFIED, 1.0),
    (0.1, 0.2, Bound(at_least=0.5), REFUTED, 0.25),
    (0.5, 1.0, Bound(0.9, 1.1), REFUTED, 1.25),
    (0.5, 0.6, Bound(at_least=0.5), CERTIFIED, None),
    (0.5, None, Bound(at_least=0.4), CERTIFIED, None),
    (0.5, 0.6, Bound(at_least=0.4), MEASURED, None),
])  # fmt: skip
def test_the_share_of_the_way_to_the_bound(before, after, bound, expect, share):
    found = share_of_way(answer(before, after, bound, expect))
    assert found == (None if share is None else pytest.approx(share))


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-4, 4), st.floats(0.01, 3), st.sampled_from([CERTIFIED, REFUTED]))
def test_a_share_of_one_is_where_the_bound_is_met(before, after, floor, width, expect):
    bound = Bound(floor, floor + width)
    share = share_of_way(answer(before, after, bound, expect))
    inside = floor < after < floor + width
    if share is not None and share != pytest.approx(1):
        assert (share < 1) == (inside == (expect == CERTIFIED))


def why(units=(), behaviour=OTHER, answers=(), operator="zero-head"):
    return reasons(MutantResult(Mutation(operator, units), tuple(answers), {"ioi": behaviour}), CIRCUIT)


SURVIVORS = {
    "equivalent-by-design": lambda: why(operator="permute-heads"),
    "equivalent-here": lambda: why(("L0H0",), SAME),
    "outside-and-bounds-too-far": lambda: why(("L1H1",), OTHER, [answer(0.6, 0.55, Bound(0.4)), answer(0.9, 0.5, Bound(0.4), name="b")]),
    "inside": lambda: why(("L0H0",), OTHER, [answer(0.6, 0.6, Bound(0.4))]),
    "no-estimate-nearer": lambda: why(("L0H0",), OTHER, [answer(0.6, 0.7, Bound(0.4))]),
    "no-number": lambda: why(("L0H0",), OTHER, [answer(0.6, 0.7, Bound(0.4), MEASURED)]),
}


def test_survivors_are_explained_by_what_was_measured(snapshot):
    lines = []
    for name, case in SURVIVORS.items():
        lines += [name, *(f"  {cause.code}: {mutant_reason(cause.code, cause.arguments)}" for cause in case())]
    snapshot("mutation/survivors", lines)
    share = SURVIVORS["outside-and-bounds-too-far"]()[-1].arguments
    assert share["claim"] == "b" and share["share"] == pytest.approx(0.8)


def document(results, threshold=None, left_out=()):
    claims = [asked(0.6, Bound(0.4)), asked(0.6, Bound(0.4), name="b")]
    return build_mutation_report([GroupResult("f", "m", claims, CIRCUIT, results, left_out)], "default", threshold, 1.0)


def tried(name, hows, behaviour=OTHER, **more):
    answers = tuple(answer(0.6, 0.5, Bound(0.4), how=how, name=n) for n, how in zip("ab", hows, strict=False))
    return MutantResult(Mutation(name, ("L0H0",) if name == "zero-head" else ()), answers, {"ioi": behaviour}, "f", **more)


def test_the_score_counts_what_was_noticed_of_what_could_be(snapshot):
    """Of seven: one refuted, one only inconclusive, one only invalid, one survivor; two equivalent and two not made or measured."""
    found = document([
        tried("zero-head", ["refuted", "invalid"]), tried("noise", ["inconclusive"]), tried("round", [None, "invalid"]),
        tried("swap-labels", [None, None]), tried("permute-heads", ["refuted"]), tried("shuffle-labels", [None, None], SAME),
        MutantResult(Mutation("noise"), problem="no"), UnmadeMutant("reinit-mlp:out", "all in"),
    ])  # fmt: skip
    assert (found.noticed, found.counted, found.score) == (3, 4, 0.75)
    assert (found.inconclusive_only, found.invalid_only, found.unmeasured) == (1, 1, 0)
    statuses = [m.status for m in found.specs[0].mutants]
    assert statuses == ["noticed", "noticed", "noticed", "survived", "equivalent", "equivalent", "not made", "not made"]
    a, b = found.specs[0].claims
    assert set(a.caught) == {"zero-head:L0H0", "noise:sigma=0.1"}, "an equivalent mutant is no catch"
    assert b.caught == {"zero-head:L0H0": "invalid", "round:bits=8": "invalid"}
    snapshot("mutation/section", lines(found))


def test_a_mutant_that_changed_no_answer_and_is_noticed_all_the_same_counts():
    found = document([tried("zero-head", ["refuted"], SAME)])
    assert (found.noticed, found.counted) == (1, 1)


@pytest.mark.parametrize(("results", "threshold", "passed"), [
    ([tried("zero-head", ["refuted"])], 1.0, True),
    ([tried("zero-head", [None])], 0.5, False),
    ([tried("zero-head", [None])], None, True),
    ([tried("zero-head", [None])], 0.0, True),
    ([], 0.0, False),
    ([MutantResult(Mutation("noise"), problem="no", unmeasured=True)], None, False),
])  # fmt: skip
def test_what_fails_a_run(results, threshold, passed):
    assert document(results, threshold).passed is passed
