"""The truth that planted models claim, checked without the engine: plain forwards, edited weights, plain hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.planted.host import Host, layers_of
from models.planted.stream import Stream
from tests.fakes.planted_oracle import (
    CIRCUITS,
    NAMES,
    SOFT,
    TOLERANCE,
    answers,
    differences,
    expected,
    hooked,
    logits,
    operated,
    planted,
    recorded,
    replaced,
    shapes,
    universe,
)

every_circuit = pytest.mark.parametrize("name", NAMES)
STEP = 2.0**-10


def close(found, wanted):
    np.testing.assert_allclose(found, np.broadcast_to(wanted, np.shape(found)), atol=TOLERANCE, rtol=0)


@every_circuit
def test_the_task_is_done_without_a_mistake_and_with_the_stated_metric(name):
    case = planted(name)
    found = logits(name)
    assert (found.argmax(1) == answers(case)[0]).all()
    close(differences(case, found), case.truth.intact)


def test_real_classes_of_three_architectures_are_used():
    assert {type(planted(name).model).__name__ for name in CIRCUITS} == {"LlamaForCausalLM", "GPTNeoXForCausalLM", "GPT2LMHeadModel"}


@every_circuit
def test_no_prompt_of_a_task_is_used_twice_and_every_answer_occurs_equally_often(name):
    pairs = planted(name).task.pairs
    assert len({pair.clean for pair in pairs}) == len(pairs) == 24
    counts = np.unique([pair.answer for pair in pairs], return_counts=True)[1]
    assert len(set(counts)) == 1


@every_circuit
def test_cutting_one_component_out_of_the_weights_has_the_stated_effect(name):
    case = planted(name)
    intact = differences(case, logits(name))
    found = [differences(case, logits(name, operated(case, [unit]))) - intact for unit in universe(case)]
    close(np.array(found).T, expected(case, case.truth.zero))


@every_circuit
def test_dead_components_are_busy_and_cutting_them_out_changes_no_bit(name):
    case = planted(name)
    before = logits(name)
    assert set(universe(case)) - {*case.truth.dead, *case.truth.causal} == ({"L1H0"} if name == "hero_bloat" else set())
    for unit in case.truth.dead:
        assert torch.equal(logits(name, operated(case, [unit])), before)
        if "H" in unit:
            assert recorded(case.model, shapes(name)[0][1], [unit])[unit].abs().max() > 0.5


@every_circuit
def test_exchanging_one_component_has_the_stated_effect(name):
    case = planted(name)
    for unit in (*case.truth.causal, *case.truth.gradient, case.truth.dead[0], case.truth.dead[-1]):
        close(replaced(name, [unit], "counterfactual") - case.truth.intact, case.truth.counterfactual.get(unit, 0.0))


@every_circuit
def test_replacing_sets_has_the_stated_effect(name):
    case = planted(name)
    for joint in case.truth.joint:
        close(replaced(name, joint.units, joint.kind) - case.truth.intact, joint.effect)
        if joint.kind == "zero":
            close(differences(case, logits(name, operated(case, joint.units))) - case.truth.intact, joint.effect)


@every_circuit
def test_the_causal_components_alone_are_the_whole_model_bit_for_bit(name):
    case = planted(name)
    rest = [unit for unit in universe(case) if unit not in case.truth.causal]
    found = logits(name, operated(case, [*rest, *case.truth.dead_neurons]))
    if "hero_bloat" in name:
        close(differences(case, found), case.truth.intact)
    else:
        assert torch.equal(found, logits(name))


@every_circuit
@pytest.mark.parametrize(("kind", "method"), [("zero", "gradient"), ("counterfactual", "atp")])
def test_first_order_effects_are_finite_differences(name, kind, method):
    """Also where they are far from the exact effects: this is what calculus says, whoever computes it."""
    case, stated = planted(name), getattr(planted(name).truth, method)
    for unit in {*case.truth.causal, *stated}:
        slope = (replaced(name, [unit], kind, STEP) - replaced(name, [unit], kind, -STEP)) / (2 * STEP)
        np.testing.assert_allclose(slope, stated.get(unit, 0.0), atol=0.02)


@every_circuit
def test_a_component_without_an_edge_to_the_logits_acts_through_the_others_alone(name):
    """Exchanged with all other causal components held at their clean values, it has the effect of its edge to the logits."""
    case = planted(name)
    acting = {*case.truth.causal, *case.truth.gradient}
    for unit in acting:
        direct = replaced(name, [unit], "counterfactual", held=acting - {unit}) - case.truth.intact
        close(direct, case.truth.edges.get(f"{unit}>logits", 0.0))


@pytest.mark.parametrize("name", ["memory", "two_step"])
def test_each_example_needs_the_neuron_that_writes_its_answer_and_no_other(name):
    case = planted(name)
    intact = differences(case, logits(name))
    for answer, neuron in case.truth.neurons.items():
        effect = differences(case, logits(name, operated(case, [neuron]))) - intact
        close(effect, [-case.truth.intact if pair.answer == answer else 0.0 for pair in case.task])


@every_circuit
def test_dead_neurons_are_busy_and_cutting_all_of_them_out_changes_no_bit(name):
    case = planted(name)
    assert torch.equal(logits(name, operated(case, case.truth.dead_neurons)), logits(name))
    kept = []
    handle = layers_of(case.model)[0].mlp_output.register_forward_pre_hook(lambda _m, a: kept.append(a[0]))
    with torch.no_grad():
        case.model(input_ids=shapes(name)[0][1])
    handle.remove()
    assert {f"L0N{i}" for i in range(kept[0].shape[-1])} <= set(case.truth.dead_neurons)
    assert kept[0].abs().amax((0, 1)).median() > 0.1


@every_circuit
def test_integrated_gradients_at_eight_midpoints_by_plain_hooks(name):
    """The path of one component from its clean to its corrupt value, by finite differences."""
    case, stated = planted(name), planted(name).truth.ig_activations
    for unit in {*case.truth.causal, *stated}:
        path = [(k + 0.5) / 8 for k in range(8)]
        slopes = [
            (replaced(name, [unit], "counterfactual", a + STEP) - replaced(name, [unit], "counterfactual", a - STEP)) / (2 * STEP)
            for a in path
        ]
        np.testing.assert_allclose(np.mean(slopes, 0), stated.get(unit, 0.0), atol=0.02)


def test_the_soft_induction_model_has_soft_attention():
    """So that its edge through keys is not zero, unlike that of the sharp one."""
    edge = "L0H3>L1H0.k"
    assert abs(planted(SOFT).truth.edges[edge]) > 1 > 1e-6 > abs(planted("induction").truth.edges[edge])


def test_hooks_of_the_oracle_change_what_they_say():
    """A head's edit reaches its own slice only."""
    case = planted("copy_head")
    ids = shapes("copy_head")[0][1]
    with hooked(case.model, {"L1H1": lambda x: x + 1}):
        found = recorded(case.model, ids, ["L1H0", "L1H1", "L1H2"])
    plain = recorded(case.model, ids, ["L1H0", "L1H1", "L1H2"])
    assert torch.equal(found["L1H0"], plain["L1H0"]) and torch.equal(found["L1H2"], plain["L1H2"])
    assert torch.equal(found["L1H1"], plain["L1H1"] + 1)


# the construction


@pytest.mark.parametrize("centred", [False, True])
def test_norms_hand_features_on_unchanged(centred):
    stream = Stream(64, ["a", "b"], centred)
    norm = (torch.nn.LayerNorm if centred else torch.nn.RMSNorm)(64, eps=1e-5)
    norm.weight.data = stream.norm_weight()
    x = stream.write({"a": 2.0, "b": -0.75}, ballast=True)
    with torch.no_grad():
        seen = norm(x[None])[0]
    assert float(seen @ stream.read({"a": 1})) == pytest.approx(2.0, abs=1e-6)
    assert float(seen @ stream.read({"b": 4, "a": 1})) == pytest.approx(-1.0, abs=1e-6)


def test_a_stream_without_room_is_refused():
    with pytest.raises(ValueError, match="must fit into 32 places"):
        Stream(64, [f"f{i}" for i in range(31)], centred=True)


def test_a_llama_head_with_two_matches_is_refused():
    from transformers import LlamaConfig

    config = LlamaConfig(vocab_size=8, hidden_size=64, intermediate_size=8, num_hidden_layers=1, num_attention_heads=4)
    with pytest.raises(ValueError, match="room for one match"):
        Host(config, ["one"]).head(0, 0, [({"one": 1}, {"one": 1})] * 2, [])


def test_an_unknown_circuit_is_refused_with_the_known_names():
    from models.planted import plant

    with pytest.raises(ValueError, match="there are copy_head, two_step"):
        plant("copyhead")
