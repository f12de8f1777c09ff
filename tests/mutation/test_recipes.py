"""What `--circuits-mutate` names, and which mutants that gives for a circuit."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.claims.outcome import Evaluation
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import CERTIFIED, Bound, Verdict
from pytest_circuits.errors import OptionError
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.mutants.base import Mutation
from pytest_circuits.mutation.circuit import SpecCircuit, circuit_of
from pytest_circuits.mutation.judged_claim import JudgedClaim
from pytest_circuits.mutation.recipes import DEFAULT, UnmadeMutant, mutations, recipes

UNIVERSE = Universe(3, 4, 8)
SETS = {"a": ("L0H1", "L1H2", "L1MLP"), "b": ("L0H1", "L2MLP"), "c": ("L2H3", "L1MLP"), "d": ("L0H1",)}
CIRCUIT = SpecCircuit(UNIVERSE, SETS, "")
EARLIER = ModelSource("m@1", path="one", at=1)


def made(text, circuit=CIRCUIT, donor=None):
    return mutations(recipes(text), circuit, donor)


def names(text, circuit=CIRCUIT):
    return [one.name for one in made(text, circuit)]


def test_the_default_set_has_a_dozen_mutants_and_one_that_must_go_unnoticed():
    found = made("default")
    assert len(found) == len(DEFAULT) == 14 and all(isinstance(one, Mutation) for one in found)
    assert [one.name for one in found if one.equivalent] == ["permute-heads"]
    assert Counter(one.operator for one in found)["zero-head"] == 3


def test_heads_of_the_circuit_come_in_the_order_of_what_they_cover():
    """L0H1 is in three sets; L2H3 alone is in the set that is still open; L1H2 comes last."""
    assert CIRCUIT.inside("head") == ["L0H1", "L2H3", "L1H2"]
    assert CIRCUIT.inside("mlp") == ["L1MLP", "L2MLP"]
    assert CIRCUIT.outside("mlp") == ["L0MLP"] and CIRCUIT.outside("layer") == []
    assert CIRCUIT.sets_of("L0H1") == ["a", "b", "d"] and CIRCUIT.sets_of("L1") == ["a", "c"]


def test_a_place_that_is_named_again_takes_the_next_unit():
    assert names("zero-head:in,zero-head:in,zero-head:in") == ["zero-head:L0H1", "zero-head:L2H3", "zero-head:L1H2"]
    assert names("zero-head:each") == ["zero-head:L0H1", "zero-head:L2H3", "zero-head:L1H2"]
    assert len(set(names("zero-head:out,zero-head:out"))) == 2


def test_heads_are_swapped_within_a_layer_where_one_is_free():
    assert names("swap-heads")[0].startswith("swap-heads:L0H1+L0H")
    full = SpecCircuit(Universe(2, 2), {"a": ("L0H0", "L0H1")}, "")
    assert names("swap-heads", full)[0].startswith("swap-heads:L0H0+L1H")


def test_units_can_be_named_and_options_given():
    (one,) = made("round:bits=4")
    assert one == Mutation.make("round", (), {"bits": 4})
    assert names("zero-head:L2H0,undo-layer:L1,swap-heads:L0H0+L2H1") == ["zero-head:L2H0", "undo-layer:L1", "swap-heads:L0H0+L2H1"]
    assert names("zero-head:L0H1,zero-head:in") == ["zero-head:L0H1"], "each mutant once"


def test_the_donor_goes_to_operators_that_use_one():
    assert {one.operator for one in made("all", donor=EARLIER) if isinstance(one, Mutation) and one.donor} == {"undo-layer"}


@pytest.mark.parametrize(("text", "told"), [
    ("zero-haed", "unknown mutant 'zero-haed'; did you mean 'zero-head'"),
    ("defualt", "did you mean 'default'"),
    ("specs/core.circuits.yaml", "the specs go before --circuits-mutate"),
    ("", "unknown mutant ''"),
    ("zero-head:inn", "'inn' is not a place for zero-head; did you mean 'in'"),
    ("zero-head:L0MLP", "a name such as L0H5"),
    ("zero-head:in:out", "several places, in and out"),
    ("round:in", "round changes all weights, so it takes no place"),
    ("swap-labels:in", "changes all labels"),
    ("swap-heads:in", "'in' is not a place for swap-heads; name two heads, such as L0H5\\+L1H2"),
    ("round:bit=4", "has no option 'bit'; did you mean 'bits'"),
    ("zero-head:bits=4", "has no option 'bits'"),
    ("noise:sigma=abc", "'noise': sigma is a finite number, such as 0.1, got 'abc'"),
    ("noise:sigma=", "sigma is a finite number"),
    ("noise:sigma=inf", "sigma is a finite number"),
    ("noise:sigma=nan", "sigma is a finite number"),
    ("noise:sigma=true", "sigma is a finite number"),
    ("round:bits=4.0", "'round': bits is a whole number, such as 8, got 4.0"),
    ("zero-head:in:seed=x", "seed is a whole number"),
])  # fmt: skip
def test_mistakes_are_refused_with_what_is_allowed(text, told):
    with pytest.raises(OptionError, match=told):
        recipes(text)


@pytest.mark.parametrize(("text", "sets", "reason"), [
    ("zero-head:in", {"a": ("L0MLP",)}, "no head is in the circuit"),
    ("reinit-mlp:out", {"a": ("L0MLP", "L1MLP", "L2MLP")}, "every mlp has a part in the circuit"),
    ("zero-head:in,zero-head:in", {"a": ("L0H0",)}, "the circuit has 1 head"),
    ("zero-head:L7H0", {"a": ("L0H0",)}, "the model has no L7H0"),
    ("swap-heads:L0H0+L9H1", {"a": ("L0H0",)}, "the model has no L9H1"),
    ("swap-heads", {"a": ("L0MLP",)}, "no head is in the circuit"),
])  # fmt: skip
def test_what_a_circuit_does_not_have_is_told(text, sets, reason):
    assert made(text, SpecCircuit(UNIVERSE, sets, ""))[-1] == UnmadeMutant(text.split(",")[-1], reason)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.lists(st.sampled_from(UNIVERSE.component_names), max_size=6).map(tuple)))
def test_every_unit_is_inside_or_outside_and_never_both(sets):
    circuit = SpecCircuit(UNIVERSE, sets, "")
    for of, n in (("head", 12), ("mlp", 3), ("layer", 3)):
        inside, outside = circuit.inside(of), circuit.outside(of)
        assert len({*inside, *outside}) == len(inside) + len(outside) == n
    assert set(circuit.inside("head") + circuit.inside("mlp")) == circuit.units
    for one in mutations(recipes("all"), circuit):
        assert isinstance(one, UnmadeMutant) or len(one.units) == {"pair": 2, "weights": 0, "labels": 0}.get(_of(one), 1)


def _of(one):
    from pytest_circuits.mutants import target_of

    return target_of(one.operator)


class StubLab:
    """Scores that put L0H0 on top of every example and nothing else twice."""

    def result(self, request):
        if type(request).__name__ == "Describe":
            return SimpleNamespace(universe=UNIVERSE)
        import numpy as np

        from pytest_circuits.core.results import Attribution

        scores = np.zeros((4, 15), np.float32)
        scores[:, 0] = 2
        return Attribution(scores, UNIVERSE.component_names, "eap", "component", "logit_diff")


def asked(details):
    claim = Claim("reuse", None, ModelSource("m", path="x"), {"ioi": None}, bound=Bound(0.1), name="a", entry="m")
    return JudgedClaim("f::a", claim, Evaluation(Verdict(CERTIFIED, ""), None, Cost(), None, details))


def test_the_circuit_is_what_the_claims_found_else_the_tasks_shared_sets():
    found = circuit_of(StubLab(), ModelSource("m"), [asked({"shared_set": {"units": ["L1H1", "L2MLP"], "size": 2}})])
    assert found.sets == {"shared set of a": ("L1H1", "L2MLP")}
    neurons = {"set": {"units": ["L1N3"], "size": 1}}
    found = circuit_of(StubLab(), ModelSource("m"), [asked(neurons)])
    assert found.sets == {"shared set of ioi": ("L0H0",)} and "no claim measured a set" in found.source
