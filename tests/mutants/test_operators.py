"""Mutant operators on every architecture: what they change against independent weight edits, and that nothing of it remains."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.pytorch_utils import Conv1D

from pytest_circuits import open_model
from pytest_circuits.errors import MutationError, OptionError
from pytest_circuits.mutants import OPERATORS, mutant
from pytest_circuits.mutants.base import Mutation
from pytest_circuits.mutants.surgery import layer_tensors, operated
from pytest_circuits.subject import Subject
from tests.fakes import tiny

every_architecture = pytest.mark.parametrize("name", list(tiny.CONFIGS))
IDS = torch.tensor([[3, 5, 8, 2, 13, 21]])
ALL = [
    Mutation("zero-head", ("L1H2",)), Mutation("shuffle-head", ("L1H2",)), Mutation("swap-heads", ("L1H2", "L2H0")),
    Mutation("permute-heads"), Mutation("reinit-mlp", ("L1MLP",)), Mutation("undo-layer", ("L1",)),
    Mutation("round"), Mutation.make("round", (), {"bits": 4}),
    Mutation("noise"),
]  # fmt: skip


def subject(name, dtype=torch.float32):
    return Subject(tiny.model(name, dtype=dtype))


def logits(model):
    with torch.no_grad():
        return model(input_ids=IDS, use_cache=False).logits


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def differing(model, before):
    return {
        name for name, tensor in model.state_dict().items() if not torch.equal(tensor.view(torch.uint8), before[name].view(torch.uint8))
    }


def projection(model, layer):
    """The attention's output projection, by the names that the architectures give it."""
    block = {"transformer": lambda m: m.transformer.h, "gpt_neox": lambda m: m.gpt_neox.layers, "model": lambda m: m.model.layers}
    block = block[model.base_model_prefix](model)[layer]
    for path in ("self_attn.o_proj", "attn.c_proj", "attention.dense"):
        try:
            return block.get_submodule(path)
        except AttributeError:
            continue
    raise AssertionError(f"no output projection in {block}")


def rows(module, head, size):
    """What a head writes with, [size, d_model]: columns of a linear layer's weight, rows of GPT-2's."""
    weight = module.weight.detach()
    return weight[head * size : (head + 1) * size] if isinstance(module, Conv1D) else weight[:, head * size : (head + 1) * size].T


@every_architecture
def test_every_mutant_changes_answers_and_leaves_no_bit_behind(name):
    """Permuted heads alone give the same answers to within rounding."""
    one = subject(name)
    before, answers = state(one.model), logits(one.model)
    for mutation in ALL:
        with operated(one, mutation):
            assert differing(one.model, before), mutation.name
            gap = float((logits(one.model) - answers).abs().max())
            assert (gap < 1e-4) if mutation.equivalent else (gap > 1e-2), mutation.name
        assert not differing(one.model, before), mutation.name
        assert torch.equal(logits(one.model), answers)


@every_architecture
def test_a_zeroed_head_is_its_ablation(name):
    """To 1e-5 in float64, though the engine never touches weights and the operator never touches activations."""
    one, task = subject(name, torch.float64), tiny.task(n=4)
    for head in ("L0H0", "L1H2", "L2H3"):
        removed = one.ablate(task, remove=[head])
        with operated(one, Mutation("zero-head", (head,))):
            cut = one.ablate_many(task, [()])
        np.testing.assert_allclose(cut.metric[0], removed.metric, atol=1e-5)
        np.testing.assert_allclose(cut.log_prob[0], removed.log_prob, atol=1e-5)


@every_architecture
def test_swapped_heads_write_with_each_others_weights_and_swapping_twice_is_nothing(name):
    one = subject(name)
    before, size = state(one.model), one.anatomy.head_dim
    there = [rows(projection(one.model, layer), head, size).clone() for layer, head in ((1, 2), (2, 0))]
    swap = Mutation("swap-heads", ("L1H2", "L2H0"))
    with operated(one, swap):
        assert torch.equal(rows(projection(one.model, 1), 2, size), there[1])
        assert torch.equal(rows(projection(one.model, 2), 0, size), there[0])
        assert len(differing(one.model, before)) == 2
        with pytest.raises(MutationError), operated(one, Mutation("swap-heads", ("L1H2", "L1H2"))):
            pass
        kept = state(one.model)
        with operated(one, swap):
            assert not differing(one.model, before), "twice"
        assert not differing(one.model, kept)
    assert not differing(one.model, before)


@every_architecture
def test_a_shuffled_head_keeps_its_rows_in_another_order(name):
    one = subject(name)
    size, layer = one.anatomy.head_dim, projection(one.model, 1)
    before = rows(layer, 2, size).clone()
    others = [rows(layer, head, size).clone() for head in (0, 1, 3)]
    with operated(one, Mutation("shuffle-head", ("L1H2",))):
        after = rows(layer, 2, size)
        assert sorted(map(tuple, after.tolist())) == sorted(map(tuple, before.tolist()))
        assert not any(torch.equal(a, b) for a, b in zip(after, before, strict=True)), "no row stays"
        assert all(torch.equal(rows(layer, head, size), kept) for head, kept in zip((0, 1, 3), others, strict=True))


@every_architecture
def test_permuted_heads_keep_what_each_head_does_under_other_names(name):
    """The effect of every single head is that of another head of its layer, and none keeps all of its own places."""
    one, task = subject(name, torch.float64), tiny.task(n=3)
    before = one.sweep(task)
    with operated(one, Mutation("permute-heads")):
        after = one.sweep(task)
    np.testing.assert_allclose(after.baseline.metric, before.baseline.metric, atol=1e-5)
    for layer in range(3):
        here = [before.units.index(f"L{layer}H{head}") for head in range(4)]
        old, new = (np.round(side.metric[:, here].T.astype(float), 3) for side in (before, after))
        assert sorted(map(tuple, old)) == sorted(map(tuple, new))
        assert not np.array_equal(old, new)


def test_rounding_leaves_no_more_levels_than_it_says():
    one = subject("gpt2"), subject("llama")
    for which, path, axis in ((one[0], "transformer.h.1.mlp.c_proj", 0), (one[1], "model.layers.1.mlp.down_proj", 1)):
        original = which.model.get_submodule(path).weight.detach().clone()
        for bits in (8, 4, 2):
            levels = 2 ** (bits - 1) - 1
            with operated(which, Mutation.make("round", (), {"bits": bits})):
                weight = which.model.get_submodule(path).weight.detach()
                scale = original.abs().amax(axis, keepdim=True) / levels
                assert ((weight / scale).round() - weight / scale).abs().max() < 1e-3
                assert ((weight - original).abs() <= scale / 2 * 1.001).all()
                torch.testing.assert_close(weight.abs().amax(axis), original.abs().amax(axis))


def test_noise_has_the_size_that_it_says():
    one = subject("llama")
    name = "model.layers.0.mlp.up_proj.weight"
    before = one.model.get_parameter(name).detach().clone()
    with operated(one, Mutation.make("noise", (), {"sigma": 0.3})):
        added = one.model.get_parameter(name).detach() - before
    assert float(added.square().mean().sqrt() / before.square().mean().sqrt()) == pytest.approx(0.3, rel=0.1)


def test_new_weights_are_those_of_the_architecture():
    """Norms are ones, biases zeros, matrices as wide as the config says; the rest of the layer stays."""
    one = Subject(tiny.model("gpt2", dtype=torch.float32, initializer_range=0.5))
    before = state(one.model)
    with operated(one, Mutation("reinit-mlp", ("L1MLP",))):
        assert differing(one.model, before) == {f"transformer.h.1.mlp.{p}.{w}" for p in ("c_fc", "c_proj") for w in ("weight", "bias")}
        assert not one.model.transformer.h[1].mlp.c_fc.bias.any()
        assert float(one.model.transformer.h[1].mlp.c_fc.weight.detach().std()) == pytest.approx(0.5, rel=0.1)
    with operated(one, Mutation("undo-layer", ("L1",))):
        assert torch.equal(one.model.transformer.h[1].ln_1.weight, torch.ones(24))
        assert {key.split(".")[2] for key in differing(one.model, before)} == {"1"}


def test_an_undone_layer_comes_from_the_earlier_checkpoint_where_there_is_one():
    one, early = subject("llama"), Subject(tiny.model("llama", seed=7, dtype=torch.float32))
    before, donor = state(one.model), early.model.state_dict()
    with operated(one, Mutation("undo-layer", ("L1",)), layer_tensors(early, [1])):
        assert {key.split(".")[2] for key in differing(one.model, before)} == {"1"}
        assert all(torch.equal(one.model.state_dict()[key], donor[key]) for key in before if key.startswith("model.layers.1."))
    other = Subject(tiny.model("llama", dtype=torch.float32, intermediate_size=44))
    with (
        pytest.raises(MutationError, match="no layer 1 of the same shape"),
        operated(one, Mutation("undo-layer", ("L1",)), layer_tensors(other, [1])),
    ):
        pass
    assert not differing(one.model, before)


def test_a_mutant_is_the_same_every_time_and_others_draw_other_numbers():
    one = subject("llama")
    found = []
    for options in ({}, {}, {"seed": 1}, {"sigma": 0.2}):
        with operated(one, Mutation.make("noise", (), options)):
            found.append(one.fingerprint)
    assert found[0] == found[1] and len(set(found)) == 3 and one.fingerprint not in found


def test_global_random_numbers_and_gradients_stay():
    one = subject("llama")
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    for mutation in ALL:
        with operated(one, mutation):
            assert torch.is_grad_enabled()
    assert torch.equal(torch.rand(3), wanted)
    assert all(p.requires_grad and p.grad is None for p in one.model.parameters())


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("mutation", ALL, ids=lambda one: one.name.replace("+", "-"))
def test_weights_come_back_whatever_happens(mutation, problem):
    one = subject("qwen2")
    before = state(one.model)
    with pytest.raises(problem), operated(one, mutation):
        raise problem
    assert not differing(one.model, before)


def test_an_operator_that_fails_half_way_leaves_nothing():
    one = subject("llama")
    before = state(one.model)

    @mutant("half-way", of="head")
    def half_way(surgery, head):
        surgery.head(head).zero_()
        raise ZeroDivisionError

    with pytest.raises(MutationError, match="half-way:L0H1: the operator raised ZeroDivisionError"):  # noqa: SIM117
        with operated(one, Mutation("half-way", ("L0H1",))):
            pass
    assert not differing(one.model, before)


def test_an_interruption_while_weights_are_put_back_waits_until_all_are(monkeypatch):
    from pytest_circuits.mutants import surgery

    one = subject("llama")
    before, done = state(one.model), []
    original = torch.Tensor.copy_

    def interrupted(self, *args, **kwargs):
        done.append(1)
        if len(done) == 3:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    found = surgery.Surgery(one.model, one.anatomy, 0)
    with torch.no_grad():
        for weight, _ in found.matrices():
            weight.add_(1)
        assert len(differing(one.model, before)) > 5
        monkeypatch.setattr(torch.Tensor, "copy_", interrupted)
        with pytest.raises(KeyboardInterrupt):
            found.restore()
    assert not differing(one.model, before)


def test_mutants_that_change_nothing_or_do_not_fit_are_refused():
    one = subject("llama")
    projection(one.model, 0).weight.data[:, :6] = 0
    for mutation, told in (
        (Mutation("zero-head", ("L0H0",)), "does not change the model"),
        (Mutation("zero-head", ("L0MLP",)), "is not a head"),
        (Mutation.make("round", (), {"bits": 1}), "from 2 to 16"),
        (Mutation.make("noise", (), {"sigma": 0}), "above 0"),
        (Mutation("swap-labels"), "changes a task"),
    ):
        with pytest.raises(MutationError, match=told), operated(one, mutation):
            pass


def test_heads_that_differ_in_more_than_their_projections_are_not_permuted():
    """A bias by head that no projection knows of: the operator checks itself, and refuses."""
    one = subject("llama")
    before = state(one.model)
    for block in one.model.model.layers:
        block.self_attn.o_proj.register_forward_pre_hook(lambda _m, args: (args[0] * torch.linspace(0.1, 2, args[0].shape[-1]),))
    with pytest.raises(MutationError, match="cannot be permuted: logits change by"), operated(one, Mutation("permute-heads")):
        pass
    assert not differing(one.model, before)


def test_tied_and_half_precision_weights_come_back():
    one = Subject(tiny.model("llama", dtype=torch.bfloat16, tie_word_embeddings=True))
    before = state(one.model)
    for mutation in ALL:
        with operated(one, mutation):
            assert differing(one.model, before)
        assert not differing(one.model, before), mutation.name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(ALL), min_size=1, max_size=4))
def test_mutants_inside_mutants_come_apart_in_order(several):
    """Each one finds back what it changed, so any nesting ends where it began."""
    one = _SHARED
    before = state(one.model)

    def enter(rest):
        if rest:
            inside = state(one.model)
            try:
                with operated(one, rest[0]):
                    enter(rest[1:])
            except MutationError:  # the same rounding or zeroing again changes nothing
                pass
            assert not differing(one.model, inside)

    enter(several)
    assert not differing(one.model, before)


_SHARED = open_model(tiny.model("llama", dtype=torch.float32), check=False)


@given(
    st.sampled_from(OPERATORS.names()), st.lists(st.sampled_from(["L0H1", "L2MLP", "L3"]), max_size=2),
    st.dictionaries(st.sampled_from(["bits", "sigma", "seed"]), st.integers(2, 9), max_size=2),
)  # fmt: skip
def test_a_mutation_and_its_text_are_one(operator, units, options):
    made = Mutation.make(operator, tuple(units), options)
    assert Mutation.read(made.text) == made
    assert Mutation.read(made.text).seed == made.seed


def test_options_at_their_default_are_the_same_mutant():
    assert Mutation.make("round", (), {"bits": 8, "seed": 0}) == Mutation("round")
    assert Mutation.make("round", (), {"bits": 4}).name == "round:bits=4" and Mutation("round").name == "round:bits=8"


def test_an_operator_of_ones_own_is_registered_with_its_options():
    @mutant("halve", of="head")
    def halve(surgery, head, *, factor=0.5):
        """Halve a head."""
        surgery.head(head).mul_(factor)

    one = subject("llama")
    twin = deepcopy(one.model)
    twin.model.layers[1].self_attn.o_proj.weight.data[:, 6:12] *= 0.25
    with operated(one, Mutation.make("halve", ("L1H1",), {"factor": 0.25})):
        assert torch.equal(logits(one.model), logits(twin))
    assert OPERATORS.fact("halve", "options") == {"factor": 0.5}
    for problem, make in (
        ("already registered", lambda: mutant("halve", of="head")(lambda surgery, head: None)),
        ("unknown target 'heads'; did you mean 'head'", lambda: mutant("x", of="heads")),
        ("'amount' needs a default", lambda: mutant("x", of="weights")(lambda surgery, *, amount: None)),
    ):
        with pytest.raises(OptionError, match=problem):
            make()
