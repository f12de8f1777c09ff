"""Every property in every degenerate situation: invalid with a reason that names the thing, or a defined number; never anything else.

The table says for each situation what becomes of each property. A property or a situation without an entry fails.
"""

from __future__ import annotations

import json
from math import isfinite

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import CERTIFIED, INCONCLUSIVE, REFUTED, Bound, decide
from pytest_circuits.errors import Invalid, MeasurementError
from pytest_circuits.properties import PROPERTIES
from tests.fakes.degenerate import HEALTHY, HEALTHY_SETTING, SITUATIONS, Setting, outcome, with_seed

FINITE, UNSETTLED = object(), object()
CIRCUITS = "reuse shared_size composition layer_profile"
SETS = "necessity sufficiency jaccard circuit_match cross_task_ablation specificity decomposition stability superadditivity joint_ablation"
ROLES = "gradient_ablation_agreement hidden_heroes gradient_bloats role_stability"
NEURONS = "neuron_faithfulness neuron_completeness neurons_to_reach sparsity_ratio"
CURVES = "cpr cmd"
OVER = "trajectory drift"  # of reuse
GATED = f"{CIRCUITS} {SETS} {ROLES} {NEURONS} {CURVES} conservation {OVER} steering for_all"
EVERY = f"accuracy {GATED}"
EMPTY = "the shared set of task '{task}' is empty: no component is in 16 of 20 circuits (P = 0.8)"
ALL = "is all 12 components: nothing could fail to be in it"
NO_GROUPS = "examples form 1 groups"
AT_CHANCE = "0.700 with 95% interval [0.399, 0.921] over 20 groups, is not clearly above 0.500"
NO_CONTROL = "3 MLPs are needed but only 0 of 3 lie outside the shared set; use control: c3_parity"


def but(names: str, *others: str) -> str:
    """Those of the names that are not among the others."""
    gone = set(" ".join(others).split())
    return " ".join(name for name in names.split() if name not in gone)


SCORED = f"{CIRCUITS} {but(SETS, 'cross_task_ablation')} {OVER} for_all"  # need circuits of task 't'


# situation → [(a fragment of the reason, or FINITE, UNSETTLED, or the value, the properties)]
TABLE = {
    "empty shared set": [
        (0.0, "reuse shared_size"),
        (EMPTY.format(task="t"), f"{but(SETS, 'cross_task_ablation')} for_all"),
        (EMPTY.format(task="u"), "cross_task_ablation"),
        (FINITE, f"accuracy composition layer_profile {ROLES} {NEURONS} {CURVES} conservation {OVER} steering"),
    ],
    "all scores zero": [
        ("all eap scores of task 't' are zero, so no example has a circuit", SCORED),
        ("all eap scores of task 'u' are zero, so no example has a circuit", "cross_task_ablation"),
        ("all 12 components have the same mean weight_gradient score (0)", ROLES),
        ("all relp scores of the 24 neurons on task 't' are zero", NEURONS),
        ("all relp scores of the 12 components on task 't' are zero", "cpr"),
        ("all eap scores of the 12 components on task 't' are zero", "cmd"),
        ("only 0 of 24 neurons have a relp score other than zero", "steering"),
        (FINITE, "accuracy conservation"),
    ],
    "a score is NaN": [
        ("1 of 480 eap scores of task 't' are NaN or infinite", SCORED),
        ("1 of 480 eap scores of task 'u' are NaN or infinite", "cross_task_ablation"),
        ("1 of 12 components have weight_gradient scores that are NaN or infinite", ROLES),
        ("1 of 24 relp scores of neurons on task 't' are NaN or infinite", f"{NEURONS} steering"),
        ("1 of 12 relp scores of components on task 't' are NaN or infinite", "cpr"),
        ("1 of 12 eap scores of components on task 't' are NaN or infinite", "cmd"),
        (FINITE, "accuracy conservation"),
    ],
    "a score is infinite": [
        ("1 of 480 eap scores of task 't' are NaN or infinite", SCORED),
        ("1 of 480 eap scores of task 'u' are NaN or infinite", "cross_task_ablation"),
        ("1 of 12 components have weight_gradient scores that are NaN or infinite", ROLES),
        ("1 of 24 relp scores of neurons on task 't' are NaN or infinite", f"{NEURONS} steering"),
        ("1 of 12 relp scores of components on task 't' are NaN or infinite", "cpr"),
        ("1 of 12 eap scores of components on task 't' are NaN or infinite", "cmd"),
        (FINITE, "accuracy conservation"),
    ],
    "metrics are NaN": [
        ("20 of 20 values of logit_diff of the intact model on task 't' are NaN or infinite", but(GATED, "cross_task_ablation")),
        ("20 of 20 values of logit_diff of the intact model on task 'u' are NaN or infinite", "cross_task_ablation"),
        ("20 of 20 values of logit_diff on task 't' are NaN or infinite", "accuracy"),
    ],
    "the same prompts": [
        ("tasks 't' and 'u' have 40 clean prompts in common", "jaccard specificity decomposition"),
        ("tasks 't' and 'u' are the same prompt pairs, so nothing was changed", "stability"),
        (FINITE, but(EVERY, "jaccard specificity decomposition stability")),
    ],
    "one component": [
        ("a circuit of size 3 is all 1 components", f"{CIRCUITS} {SETS} {OVER} for_all"),
        ("the model has 1 component, and a ranking needs at least 2", ROLES),
        ("the claim needs 6 neurons, but the model has 1", "neuron_faithfulness neuron_completeness"),
        ("the universe has 1 unit", "neurons_to_reach sparsity_ratio"),
        ("the universe has 1 component: no share of the grid keeps some but not all", CURVES),
        ("the claim needs 1 neurons, and the model has 1", "steering"),
        (FINITE, "accuracy conservation"),
    ],
    "one example": [(f"1 {NO_GROUPS} (templates, entities), and each side of the split needs at least 5", EVERY)],
    "one example, in sample": [(f"1 {NO_GROUPS} (templates, entities, prompts); at least 5 are needed", EVERY)],
    "one group": [(f"40 {NO_GROUPS} (templates, entities), and each side of the split needs at least 5", EVERY)],
    "K is N": [
        (f"a circuit of size 100% {ALL}", f"{CIRCUITS} {but(SETS, 'superadditivity joint_ablation')} {OVER} for_all"),
        ("the set is all 12 components: nothing is left to compare with", "superadditivity joint_ablation"),
        ("100% neurons are all 24 neurons of the model: nothing is left to ablate", "neuron_faithfulness neuron_completeness"),
        ("the claim needs 100% neurons, and the model has 24: choose fewer", "steering"),
        (FINITE, f"accuracy {ROLES} neurons_to_reach sparsity_ratio {CURVES} conservation"),
    ],
    "K is above N": [
        (f"a circuit of size 99 {ALL}", f"{CIRCUITS} {SETS} {OVER} for_all"),
        ("the claim needs 99 neurons, but the model has 24", "neuron_faithfulness neuron_completeness"),
        ("the claim needs 99 neurons, and the model has 24: choose fewer", "steering"),
        (FINITE, f"accuracy {ROLES} neurons_to_reach sparsity_ratio {CURVES} conservation"),
    ],
    "nothing changes anything": [
        (0.0, "necessity sufficiency cross_task_ablation specificity decomposition superadditivity joint_ablation steering for_all"),
        (1.0, "accuracy"),
        ("no ablation changes the loss: there is no causal ranking to agree with", ROLES),
        ("the mean logit_diff is 1 intact and 1 with all neurons ablated: ablation does not lower it", NEURONS),
        ("the mean logit_diff is 1 intact and 1 with all components ablated: ablation does not lower it", CURVES),
        (FINITE, f"{CIRCUITS} jaccard circuit_match stability conservation {OVER}"),
    ],
    "accuracy at chance": [
        (0.7, "accuracy"),
        (f"accuracy on task 't', {AT_CHANCE}", but(GATED, "cross_task_ablation", OVER)),
        (f"accuracy on task 'u', {AT_CHANCE}", "cross_task_ablation"),
        ("0.700 with 98% interval [0.362, 0.951] over 20 groups, is not clearly above 0.500", "trajectory"),
        ("0.700 with 98% interval", "drift"),
    ],
    "nothing to keep": [
        ("with all neurons ablated: ablation does not lower it, so there is nothing for a circuit to keep", NEURONS),
        ("with all components ablated: ablation does not lower it, so there is nothing for a circuit to keep", CURVES),
        (FINITE, but(EVERY, NEURONS, CURVES)),
    ],
    "hardly anything to keep": [
        ("which contains 0: the ratio could be anything (n = 20 in 20 groups)", f"{NEURONS} {CURVES}"),
        (FINITE, but(EVERY, NEURONS, CURVES)),
    ],
    "no answer is right": [
        (0.0, "accuracy"),
        ("the intact model answers 0 of 20 examples of task 't' correctly", but(GATED, "cross_task_ablation")),
        ("the intact model answers 0 of 20 examples of task 'u' correctly", "cross_task_ablation"),
    ],
    "no answer is right, and no gate": [
        (0.0, "accuracy specificity decomposition joint_ablation"),
        ("a relative value divides by the intact accuracy, which is 0", "necessity sufficiency"),
        ("the intact accuracy on task 't' is 0.000 with interval [0.000, 0.213], which is not clearly above 0", "cross_task_ablation"),
        ("the intact accuracy is 0, so a removal cannot keep a share of the correct answers", "superadditivity"),
        ("the intact model answers 0 of the other 20 correctly", "for_all"),
        (FINITE, f"{CIRCUITS} jaccard circuit_match stability {ROLES} {NEURONS} {CURVES} conservation {OVER} steering"),
    ],
    "the shared set is everything": [
        ("9 heads are needed but only 0 of 9 lie outside the shared set", "necessity"),
        ("the shared set is all 12 components: keeping it ablates nothing", "sufficiency"),
        ("the shared set of task 't' is all 12 components: removing it leaves no model", "specificity decomposition"),
        ("the shared set of task 'u' is all 12 components: removing it leaves no model", "cross_task_ablation"),
        ("these are all 3 layers of the model", "layer_profile"),
        ("the set is all 12 components: nothing is left to compare with", "superadditivity joint_ablation for_all"),
        ("the cluster is all 24 neurons of the model", "steering"),
        (1.0, "accuracy reuse shared_size jaccard circuit_match stability"),
        (FINITE, f"composition {ROLES} {NEURONS} {CURVES} conservation {OVER}"),
    ],
    "no control can be drawn": [
        (NO_CONTROL, "necessity sufficiency decomposition joint_ablation"),
        ("layer 0 has 8 neurons, 5 of them in the cluster, so no control with as many other neurons can be drawn there", "steering"),
        (FINITE, but(EVERY, "necessity sufficiency decomposition joint_ablation steering")),
    ],
    "p asks for one example": [
        ("p: 0.01 of 20 discovery examples is a single one", f"reuse shared_size {SETS} {OVER} for_all"),
        (FINITE, f"accuracy composition layer_profile {ROLES} {NEURONS} {CURVES} conservation steering"),
    ],
    "p asks for all": [
        (UNSETTLED, "shared_size jaccard circuit_match stability"),
        (FINITE, but(EVERY, "shared_size jaccard circuit_match stability")),
    ],
}  # fmt: skip
CASES = [(situation, expected, name) for situation, rows in TABLE.items() for expected, names in rows for name in names.split()]


def sound(name, found, setting):
    """What holds for every estimate: finite, in order, in the range of the property, and its details can be written."""
    low, high = found.interval
    assert all(map(isfinite, (found.value, low, high))) and low <= found.value <= high
    prop = PROPERTIES.get(name)
    least, most = prop.range(prop.parameters.model_validate(setting.parameters_of(name)))
    assert (least is None or least <= low) and (most is None or high <= most)
    assert found.property == name and found.n >= 1 and found.kind
    json.dumps(dict(found.details), allow_nan=False)


def test_the_table_has_every_property_in_every_situation_once():
    """Also those to come: a new property needs an entry in HEALTHY and in each situation."""
    assert list(HEALTHY) and set(HEALTHY) == set(PROPERTIES.builtin) and set(TABLE) == set(SITUATIONS)
    for situation in TABLE:
        named = [name for one, _, name in CASES if one == situation]
        assert sorted(named) == sorted(HEALTHY), situation


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_study_gives_an_estimate(name):
    """What makes the situations below degenerate is nothing else about these studies."""
    found = outcome(name, HEALTHY_SETTING)
    assert not isinstance(found, Invalid), found
    sound(name, found, HEALTHY_SETTING)


@pytest.mark.parametrize(("situation", "expected", "name"), CASES, ids=[f"{situation}: {name}" for situation, _, name in CASES])
def test_a_degenerate_study_has_a_defined_outcome(situation, expected, name):
    setting = SITUATIONS[situation]
    found = outcome(name, setting)
    if isinstance(expected, str):
        assert isinstance(found, Invalid), found
        assert expected in str(found)
        json.dumps(found.details, allow_nan=False)
        return
    assert not isinstance(found, Invalid), found
    sound(name, found, setting)
    assert (found.unsettled is not None) is (expected is UNSETTLED)
    if isinstance(expected, float):
        assert found.value == expected
        assert found.value != 0 or "-0" not in str(found).split()[0]


@pytest.mark.parametrize("name", next(names for expected, names in TABLE["nothing changes anything"] if expected == 0.0).split())
def test_where_nothing_changes_anything_no_effect_is_certified(name):
    """0.05 is below what any claim of an effect would ask for."""
    found = outcome(name, SITUATIONS["nothing changes anything"])
    assert decide(found, Bound(at_least=0.05)).kind != CERTIFIED


@pytest.mark.parametrize("name", HEALTHY)
def test_every_kind_of_bound_can_be_met_missed_and_straddled(name):
    found = outcome(name, HEALTHY_SETTING)
    low, high = found.interval
    above, below, step = high + 0.5, low - 0.5, 0.25
    expected = {
        Bound(at_least=low): CERTIFIED, Bound(at_least=above): REFUTED, Bound(at_most=high): CERTIFIED, Bound(at_most=below): REFUTED,
        Bound(low, high): CERTIFIED, Bound(above, above + step): REFUTED, Bound(below - step, below): REFUTED,
    }  # fmt: skip
    if high > low:
        middle = (low + high) / 2
        expected |= dict.fromkeys((Bound(at_least=middle), Bound(at_most=middle), Bound(middle, above), Bound(below, middle)), INCONCLUSIVE)
    for bound, verdict in expected.items():
        assert decide(found, bound).kind == verdict, bound


def test_a_measurement_that_fails_makes_no_property_say_anything(monkeypatch):
    """The torch side refuses values that are not finite; the refusal must come through, not be taken for a result."""
    from benchmarks.calibration.world import World

    answer = World.answer

    def failing(self, request):
        if type(request).__name__ in ("Ablate", "Sweep", "Attribute", "Conserve"):
            raise MeasurementError("20 of 20 outcomes are not finite numbers")
        return answer(self, request)

    monkeypatch.setattr(World, "answer", failing)
    for name in HEALTHY:
        with pytest.raises(MeasurementError):
            outcome(name, HEALTHY_SETTING)


@pytest.mark.parametrize("name", HEALTHY)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))  # for_all has a search inside
@given(
    seed=st.integers(0, 10**6), layers=st.integers(1, 4), heads=st.integers(1, 5), neurons=st.integers(2, 12), n=st.integers(10, 60),
    size=st.integers(1, 8), p=st.sampled_from([0.3, 0.6, 0.9, 1.0]), each=st.integers(1, 3), weak=st.booleans(), gate=st.booleans(),
    confidence=st.sampled_from([0.8, 0.95, 0.999]),
)  # fmt: skip
def test_estimates_of_any_study_lie_in_the_range_that_the_property_states(
    name, seed, layers, heads, neurons, n, size, p, each, weak, gate, confidence
):
    """Small universes, few groups, weak models, every confidence: an estimate within its limits, or invalid."""
    parameters = {"size": size, "p": p, "confidence": confidence, **({} if gate else {"min_accuracy": 0.0})}
    setting = with_seed(
        Setting(
            universe=Universe(layers, heads, neurons), n=n, group=lambda i: f"g{i // each}", parameters=parameters,
            strengths=(1.0, 1.0) if weak else (3.0, 3.0), own={"circuit_match": {"known": ["L0H0"]}},
        ),
        seed,
    )  # fmt: skip
    if name in OVER.split():
        setting.parameters.pop("confidence")
    found = outcome(name, setting)
    if not isinstance(found, Invalid):
        sound(name, found, setting)
    else:
        assert str(found) and "nan" not in str(found).lower().replace("domin", "")
