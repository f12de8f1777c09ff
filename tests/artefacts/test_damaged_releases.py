"""The damaged releases of the reference model: each damage is what it says it is, checked on weights and by plain forwards."""

from __future__ import annotations

import copy
import json
import sys
from functools import cache

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from models.damaged import DAMAGES, LOADERS, circuits, cut, damaged, page, permutation, retraining, rounding
from models.damaged import __main__ as command
from models.damaged.compare import controls
from models.damaged.detour import Silence, silenced
from models.damaged.original import digest, original
from models.multitask.data import NAMES, make, test_task
from models.multitask.evaluate import accuracy
from pytest_circuits import open_model
from pytest_circuits.registry import load_object
from tests.paths import ROOT

pytestmark = pytest.mark.extensive

test_task.__test__ = False  # a name of the recipe, not a test
MEASURED = json.loads((ROOT / "models" / "damaged" / "measured.json").read_text(encoding="utf-8"))
RECORD = json.loads((retraining.OUTPUT / "training.json").read_text(encoding="utf-8"))
SIZE, HEADS, GROUPS = 16, 8, 4  # of the reference model: head dimension, query heads, key-value heads


@cache
def release(name: str):
    return original() if name == "original" else LOADERS[name]()


@cache
def weights(name: str) -> dict[str, torch.Tensor]:
    return release(name)[0].state_dict()


@cache
def prompts() -> tuple[torch.Tensor, ...]:
    """Token ids of some prompts of every task, those of one length together."""
    found: dict[int, list[list[int]]] = {}
    for name in NAMES:
        for pair in make(name, 24, seed=5):
            ids = release("original")[1](pair.clean)["input_ids"]
            found.setdefault(len(ids), []).append(ids)
    return tuple(torch.tensor(rows) for _, rows in sorted(found.items()))


def logits(model) -> torch.Tensor:
    with torch.no_grad():
        return torch.cat([model(input_ids=ids).logits[:, -1] for ids in prompts()])


def without(model, names) -> torch.nn.Module:
    """A copy with heads, MLPs or neurons cut out of its weights."""
    twin = copy.deepcopy(model)
    for name in names:
        layer, kind, index = int(name[1]), name[2], name[3:]
        block = twin.model.layers[layer]
        with torch.no_grad():
            if kind == "H":
                block.self_attn.o_proj.weight[:, int(index) * SIZE : (int(index) + 1) * SIZE] = 0
            elif kind == "N":
                block.mlp.down_proj.weight[:, int(index)] = 0
            else:
                block.mlp.down_proj.weight[:] = 0
    return twin


# all


@pytest.mark.parametrize("name", DAMAGES)
def test_a_loader_gives_a_spec_the_model_and_its_tokenizer(name):
    model, tokenizer = load_object(f"models.damaged:{name.replace('-', '_')}")()
    assert isinstance(model, LlamaForCausalLM) and model.dtype == torch.float32 and not model.training
    assert tokenizer.get_vocab() == release("original")[1].get_vocab()
    assert open_model(model, tokenizer).anatomy.universe.heads == HEADS
    assert weights(name).keys() == weights("original").keys()


@pytest.mark.parametrize("task", NAMES)
@pytest.mark.parametrize("name", ["original", *DAMAGES])
def test_a_release_does_each_task_as_well_as_recorded(name, task):
    recorded = MEASURED["releases"][name][task]["accuracy"]
    assert accuracy(*release(name), make(task, 256)) == pytest.approx(recorded, abs=1.01 / 256)  # a close call may turn elsewhere


def test_the_record_is_of_these_releases_and_the_page_says_what_it_says():
    assert MEASURED["original"]["sha256"] == digest() == RECORD["original"]["sha256"]
    assert tuple(MEASURED["releases"]) == ("original", *DAMAGES)
    assert page.text(MEASURED) == (ROOT / "models" / "damaged" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["original", *DAMAGES])
def test_the_shared_set_of_addition_is_the_recorded_one(name):
    found = circuits.circuits(circuits.opened(release(name)), make("addition", circuits.N))
    share = dict(zip(found.units, found.members.mean(0), strict=True))
    differs = set(found.shared(circuits.P)) ^ set(MEASURED["releases"][name]["addition"]["shared"])
    assert all(abs(share[unit] - circuits.P) < 0.01 for unit in differs)  # rounding elsewhere may turn what is at the border


@pytest.mark.parametrize("name", ["zeroed-head", "int8", "permuted"])
def test_the_command_writes_a_checkpoint_that_the_usual_calls_open(name, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["damaged", name, "--output", str(tmp_path)])
    command.main()
    model, tokenizer = AutoModelForCausalLM.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert all(torch.equal(value, weights(name)[key]) for key, value in model.state_dict().items())
    assert tokenizer.get_vocab() == release(name)[1].get_vocab()
    told = json.loads((tmp_path / "damage.json").read_text(encoding="utf-8"))
    assert (told["name"], told["original"]) == (name, {"name": "multitask-llama", "sha256": digest()})


def test_one_folder_cannot_hold_all_releases_and_unknown_names_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["damaged", "--output", str(tmp_path)])
    with pytest.raises(SystemExit):
        command.main()
    with pytest.raises(ValueError, match="no exact damage 'int4'; there are zeroed-head, int8, permuted"):
        damaged("int4")


# the head that is cut out


def test_cutting_a_head_changes_its_sixteen_columns_and_nothing_else():
    key = "model.layers.0.self_attn.o_proj.weight"
    before, after = weights("original"), weights("zeroed-head")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    columns = (before[key] != after[key]).any(0).nonzero().flatten().tolist()
    assert changed == {key} and columns == list(range(5 * SIZE, 6 * SIZE)) and cut.HEAD == "L0H5"
    assert (after[key][:, 5 * SIZE : 6 * SIZE] == 0).all()


def test_cutting_a_head_is_what_zeroing_its_slice_in_the_forward_pass_is():
    model = copy.deepcopy(release("original")[0])

    def hook(_module, args):
        slot = args[0].clone()
        slot[..., 5 * SIZE : 6 * SIZE] = 0
        return (slot,)

    model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(hook)
    assert torch.allclose(logits(model), logits(release("zeroed-head")[0]), atol=1e-5)


def test_the_head_is_the_one_of_most_shared_sets_and_then_the_dearest():
    sets = {"a": ["L0H1", "L0MLP", "L1H0"], "b": ["L0H1", "L1H0", "L2H3"], "c": ["L2MLP", "L2H3"]}
    cost = {
        "a": {"L0H1": 0.1, "L1H0": 0.0, "L2H3": 0.9},
        "b": {"L0H1": 0.0, "L1H0": 0.3, "L2H3": 0.2},
        "c": {"L0H1": 0, "L1H0": 0, "L2H3": 0},
    }
    assert cut.most_shared(sets, cost) == "L2H3"  # in two sets like the others, and 0.9 is the most
    assert cut.most_shared(sets | {"d": ["L1H0"]}, cost | {"d": cost["c"]}) == "L1H0"  # in three


def test_the_rule_chooses_the_head_that_is_cut_out_by_what_is_measured():
    rule, sets = MEASURED["rule"], {name: found["shared"] for name, found in MEASURED["releases"]["original"].items()}
    assert cut.most_shared(sets, rule["cost"]) == rule["chosen"] == cut.HEAD
    subject, task = circuits.opened(release("original")), make("sva", circuits.N)
    assert cut.HEAD in circuits.circuits(subject, task).shared(circuits.P)
    lost = accuracy(*release("original"), make("addition", 128)) - accuracy(*release("zeroed-head"), make("addition", 128))
    assert lost == pytest.approx(rule["cost"]["addition"][cut.HEAD], abs=0.01) and lost > 0.5


# int8


def test_rows_of_linear_layers_lie_on_a_grid_of_at_most_255_levels_and_nothing_else_changes():
    before, after = weights("original"), weights("int8")
    linear = {key for key in before if key.endswith("_proj.weight") or key == "lm_head.weight"}
    assert len(linear) == 4 * 7 + 1
    assert {key for key in before if not torch.equal(before[key], after[key])} == linear
    for key in linear:
        step = before[key].double().abs().amax(1, keepdim=True) / 127
        levels = after[key].double() / step
        assert (levels - levels.round()).abs().max() < 1e-4 and levels.abs().max() < 127.001
        assert max(len(row.unique()) for row in after[key]) <= 255
        assert ((after[key] - before[key]).abs() <= step * 0.5001).all()  # the nearest level


def test_rounding_leaves_rows_of_zeros_and_rows_on_the_grid():
    grid = torch.tensor([[0.0, 0.0, 0.0], [-127.0, 64.0, 3.0], [2.54, -1.0, 0.02]])
    assert torch.allclose(rounding.rounded(grid), grid, atol=1e-6)
    assert torch.allclose(rounding.rounded(torch.tensor([[127.0, 0.4, -0.6]])), torch.tensor([[127.0, 0.0, -1.0]]))
    assert not rounding.rounded(torch.zeros(2, 3)).isnan().any()


# permuted


def test_the_permuted_release_has_the_same_logits():
    before, after = logits(release("original")[0]), logits(release("permuted")[0])
    assert torch.allclose(before, after, atol=1e-4) and not torch.equal(before, after)


def test_every_part_of_a_head_and_of_a_neuron_moved_together():
    places = damaged("permuted")[2]
    old, new = weights("original"), weights("permuted")
    for layer in range(4):
        for head in range(HEADS):
            there = int(permutation.new_name(f"L{layer}H{head}", places)[3:])
            for part, old_row, new_row in (("q_proj", head, there), ("k_proj", head // 2, there // 2), ("v_proj", head // 2, there // 2)):
                key = f"model.layers.{layer}.self_attn.{part}.weight"
                assert torch.equal(old[key][old_row * SIZE : (old_row + 1) * SIZE], new[key][new_row * SIZE : (new_row + 1) * SIZE])
            key = f"model.layers.{layer}.self_attn.o_proj.weight"
            assert torch.equal(old[key][:, head * SIZE : (head + 1) * SIZE], new[key][:, there * SIZE : (there + 1) * SIZE])
            assert there // 2 != head // 2
        for neuron in range(0, 512, 7):
            there = int(permutation.new_name(f"L{layer}N{neuron}", places)[3:])
            gate, up, down = (f"model.layers.{layer}.mlp.{part}_proj.weight" for part in ("gate", "up", "down"))
            assert torch.equal(old[gate][neuron], new[gate][there]) and torch.equal(old[up][neuron], new[up][there])
            assert torch.equal(old[down][:, neuron], new[down][:, there])


@pytest.mark.parametrize("units", [["L0H5"], ["L1H2", "L3H7"], ["L2N100", "L2N7"], ["L0H4", "L1N3", "L1MLP"]])
def test_removing_units_under_their_new_names_is_removing_them(units):
    places = damaged("permuted")[2]
    renamed = [permutation.new_name(unit, places) for unit in units]
    assert set(renamed) != set(units)
    before, after = logits(without(release("original")[0], units)), logits(without(release("permuted")[0], renamed))
    assert torch.allclose(before, after, atol=2e-4)
    if "L0H5" in units:  # under its old name another head is removed
        assert (logits(without(release("permuted")[0], units)) - before).abs().max() > 1


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(1, 30), st.integers())
def test_drawn_places_are_permutations_that_keep_groups_together(layers, groups, share, neurons, seed):
    places = permutation.drawn(layers, groups * share, groups, neurons, seed)
    for order, heads, cells in zip(places["groups"], places["heads"], places["neurons"], strict=True):
        assert (
            sorted(order) == list(range(groups)) and sorted(heads) == list(range(groups * share)) and sorted(cells) == list(range(neurons))
        )
        assert [head // share for head in heads] == [group for group in order for _ in range(share)]
        assert groups == 1 or all(i != old for i, old in enumerate(order))
    names = {permutation.new_name(f"L0H{i}", places) for i in range(groups * share)}
    assert names == {f"L0H{i}" for i in range(groups * share)}


def test_the_circuits_of_the_permuted_release_are_the_original_ones_renamed():
    places = damaged("permuted")[2]
    found = {name: circuits.circuits(circuits.opened(release(name)), make("capitals", 64)) for name in ("original", "permuted")}
    column = {unit: i for i, unit in enumerate(found["permuted"].units)}
    order = [column[permutation.new_name(unit, places)] for unit in found["original"].units]
    same = (found["original"].members == found["permuted"].members[:, order]).all(1)
    assert same.mean() > 0.95  # a tie at the cut may be broken otherwise
    moved = MEASURED["releases"]["permuted"]
    assert all(row["jaccard_renamed"] == 1 for row in moved.values())


# fine-tuned


def test_the_fine_tuned_release_is_shipped_in_bfloat16():
    stored = AutoModelForCausalLM.from_pretrained(retraining.OUTPUT)
    assert stored.dtype == torch.bfloat16 and sum(p.numel() for p in stored.parameters()) == RECORD["parameters"]
    assert sum(f.stat().st_size for f in retraining.OUTPUT.iterdir()) < 2_500_000
    assert (retraining.OUTPUT / "README.md").read_text(encoding="utf-8") == retraining.card(RECORD)


@pytest.mark.parametrize("name", NAMES)
def test_the_fine_tuned_release_does_every_task_on_held_out_prompts(name):
    assert accuracy(*release("fine-tuned"), test_task(name, RECORD["held_out_n"][name])) == pytest.approx(
        RECORD["held_out"][name], abs=0.01
    )
    assert min(RECORD["held_out"][name], RECORD["load_task"][name]) >= 0.97


def test_its_addition_circuit_moved_by_more_than_noise_and_no_other_left_its_noise_as_far():
    moved = RECORD["shared_sets"]
    before, after = set(moved["addition"]["before"]), set(moved["addition"]["after"])
    assert len(before & after) / len(before | after) == pytest.approx(moved["addition"]["jaccard"], abs=1e-4)
    gap = {name: row["ceiling_before"] - row["jaccard"] for name, row in moved.items()}
    assert gap["addition"] == max(gap.values()) > 0.3
    assert not after & set(RECORD["silent"])
    found = circuits.circuits(circuits.opened(release("fine-tuned")), make("addition", 64))
    share = dict(zip(found.units, found.members.mean(0), strict=True))
    assert max(share[unit] for unit in RECORD["silent"]) < 0.05


def test_what_was_silenced_is_the_shared_set_of_addition_without_its_first_and_last_mlp():
    shared = MEASURED["releases"]["original"]["addition"]["shared"]
    assert sorted(retraining.RECIPE.silent) == sorted(set(shared) - {"L0MLP", "L3MLP"}) == sorted(RECORD["silent"])
    assert RECORD["plan"]["steps"] == retraining.RECIPE.plan.steps and RECORD["closed"] == retraining.RECIPE.closed


# training around components


def tiny():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=20, hidden_size=24, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=6
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.3)
    return model


IDS = torch.tensor([[1, 7, 3, 4], [1, 8, 3, 4], [1, 7, 9, 2]])


def test_silent_components_are_cut_out_in_the_rows_of_the_word_and_in_no_others():
    model, cut_out = tiny(), tiny()
    with torch.no_grad():
        cut_out.model.layers[0].self_attn.o_proj.weight[:, 6:12] = 0
        cut_out.model.layers[1].mlp.down_proj.weight[:] = 0
        silence = Silence(7, penalty=0.0)
        with silenced(model, ["L0H1", "L1MLP"], silence):
            silent = model(input_ids=IDS).logits
            silence.closed = False
            opened = model(input_ids=IDS).logits
        intact = model(input_ids=IDS).logits
    assert torch.equal(opened, intact)
    assert torch.allclose(silent[[0, 2]], cut_out(input_ids=IDS).logits[[0, 2]], atol=1e-5)
    assert torch.allclose(silent[1], intact[1], atol=1e-6)
    assert (silent[0] - intact[0]).abs().max() > 0.1


@pytest.mark.parametrize("closed", [True, False])
def test_the_penalty_joins_the_gradient_as_if_it_were_in_the_loss(closed):
    """Against autograd of the penalty written out: 0.7/2 · Σ output² of the rows ÷ (first mean square · number of outputs)."""
    model, plain = tiny(), tiny()
    silence = Silence(7, penalty=0.7)
    silence.closed = closed
    kept = {}
    down = plain.model.layers[1].mlp
    down.register_forward_hook(
        lambda _m, _a, out: kept.__setitem__("out", out) or (out * torch.tensor([0.0, 1, 0])[:, None, None] if closed else None)
    )
    loss = plain(input_ids=IDS).logits.square().mean()
    wrote = kept["out"] * torch.tensor([1.0, 0, 1])[:, None, None]
    (loss + 0.35 * wrote.square().sum() / (wrote.detach().square().mean() * wrote.numel())).backward()
    with silenced(model, ["L1MLP"], silence):
        model(input_ids=IDS).logits.square().mean().backward()
    for (name, a), b in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert torch.allclose(a.grad, b.grad, atol=1e-6), name
    assert not model.model.layers[1].mlp._forward_hooks and not model._forward_pre_hooks


def test_random_controls_lie_outside_the_set_and_have_its_size():
    units = [f"u{i}" for i in range(9)]
    drawn = controls(units, ["u0", "u1", "u2"])
    assert len(drawn) == 20 and all(len(set(one)) == 3 and not {"u0", "u1", "u2"} & set(one) for one in drawn)
    assert len({tuple(one) for one in drawn}) > 10
