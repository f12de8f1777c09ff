"""The self-check passes on every architecture and precision, and finds anatomies that are wrong on purpose."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
import transformers as tf
from torch.nn.utils import prune

from pytest_circuits import open_model
from pytest_circuits.errors import ModelError
from pytest_circuits.inspection.locate import anatomy_of
from pytest_circuits.inspection.self_check import self_check
from pytest_circuits.model.architectures import FAMILIES
from pytest_circuits.model.layout import assemble
from pytest_circuits.model.projections import Reader
from tests.fakes import tiny

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
CASES = [(n, i) for n in tiny.CONFIGS for i in ("sdpa", "eager") if (n, i) != ("gemma2", "sdpa")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "implementation"), CASES)
def test_every_known_architecture_passes(name, implementation, dtype):
    """In every precision and attention implementation, with other random units and noise each time."""
    for seed in range(2):
        anatomy = anatomy_of(tiny.model(name, seed=seed, dtype=dtype, attn_implementation=implementation))
        assert not anatomy.probed
        self_check(anatomy, seed)


@pytest.mark.parametrize("config", [tf.MixtralConfig, tf.OlmoeConfig])
def test_the_other_mixtures_of_experts_pass_too(config):
    """Mixtral and OLMoE."""
    made = config(**tiny.COMMON, intermediate_size=16, num_key_value_heads=2, pad_token_id=0)
    made.num_experts_per_tok = 2
    anatomy = anatomy_of(tf.AutoModelForCausalLM.from_config(made).eval())
    self_check(anatomy)
    assert not anatomy.probed and anatomy.universe.neurons == 0


def family_of(name, **changes):
    model = tiny.model(name, dtype=torch.float32)
    return assemble(model, replace(FAMILIES[model.config.model_type], **changes))


WRONG = {
    "queries and keys exchanged": ("gpt_neox", {"qkv": None}, "query|key"),
    "fused in blocks, not by heads": ("gpt_neox", {"fused": "blocks"}, "values"),
    "fused by heads, not in blocks": ("gpt2", {"fused": "heads"}, "values"),
    "keys and values exchanged": ("llama", {"qkv": ("self_attn.q_proj", "self_attn.v_proj", "self_attn.k_proj")}, "values"),
    "norms exchanged": (
        "llama", {"attention_norm": "post_attention_layernorm", "mlp_norm": "input_layernorm"}, "the input of the attention norm of layer 0"
    ),
    "a post-norm left out": ("gemma2", {"attention_post_norm": None}, "the input of the MLP norm of layer 0"),
    "the MLP's post-norm left out": ("gemma3", {"mlp_post_norm": None}, "residual . heads . MLP of layer 0"),
    "a post-norm where there is none": ("llama", {"mlp_post_norm": "post_attention_layernorm"}, "the sublayer's output"),
    "a pre-norm left out": ("llama", {"attention_norm": None}, "what the attention of layer 0 reads"),
    "a pre-norm where there is none": ("olmo2", {"mlp_norm": "post_feedforward_layernorm", "mlp_post_norm": None}, "input of the MLP norm"),
    "parallel, not serial": ("llama", {"parallel": True}, "the input of the MLP norm of layer 0"),
    "serial, not parallel": ("gpt_neox", {"parallel": False}, "the input of the MLP norm of layer 0"),
    "not gated": ("llama", {"gated": False}, "gated=False"),
    "gated": ("gpt2", {"gated": True}, "gated=True"),
    "another residual scale": ("llama", {"residual_scale": 0.5}, "the input of the MLP norm of layer 0"),
    "no final soft cap": ("gemma2", {"final_softcap": None}, "final_softcap"),
    "a gate for a down projection": ("phi3", {"down": "mlp.gate_up_proj"}, "cannot be run .* with hooks on its parts"),
    "the attention's output for the MLP's": ("llama", {"down": "self_attn.o_proj"}, "residual . heads . MLP|activation"),
    "a layer that gives no tuple": ("llama", {"layer_tuple": True}, "layer_tuple|cannot be run"),
    "the wrong final norm": ("llama", {"final_norm": "model.layers.0.input_layernorm"}, "the input of the final norm"),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_an_anatomy_that_is_wrong_is_found(fault):
    """Each fault of a family on its own; the message names the part."""
    name, changes, words = WRONG[fault]
    if changes == {"qkv": None}:
        anatomy = family_of(name)
        for block in anatomy.blocks:
            block.readers["q"], block.readers["k"] = block.readers["k"], block.readers["q"]
    else:
        anatomy = family_of(name, **changes)
    with pytest.raises(ModelError, match=words) as caught:
        self_check(anatomy)
    assert "self-check" in str(caught.value) and "register_family" in str(caught.value)


@pytest.mark.parametrize("name", ["llama", "gpt2", "phi3", "olmo2"])
def test_readers_that_are_exchanged_between_heads_or_kinds_are_found(name):
    """q and k, q and v, two value heads, columns shifted by one."""
    for fault in ("qk", "heads", "shift"):
        anatomy = family_of(name)
        block = anatomy.blocks[1]
        if fault == "qk":
            if block.readers["q"].columns.shape != block.readers["k"].columns.shape:
                continue
            block.readers["q"], block.readers["k"] = block.readers["k"], block.readers["q"]
        elif fault == "heads":
            v = block.readers["v"]
            block.readers["v"] = Reader(v.module, v.columns.flip(0))
        else:
            for kind in "qk":
                reader = block.readers[kind]
                moved = torch.cat([reader.columns.flatten()[1:], reader.columns.flatten()[:1]]).view_as(reader.columns)
                block.readers[kind] = Reader(reader.module, moved)
        with pytest.raises(ModelError, match="layer 1"):
            for seed in range(6):  # which heads are looked at is drawn
                self_check(anatomy, seed)


def test_layers_in_the_wrong_order_are_found():
    """The stream does not flow that way."""
    anatomy = family_of("llama")
    first, second, third = anatomy.blocks
    wrong = (first, replace(third, index=1), replace(second, index=2))
    with pytest.raises(ModelError, match="the input of layer 1 differs from the output of layer 0"):
        self_check(replace(anatomy, blocks=wrong))


@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 1), (8, 4)])
def test_heads_of_the_wrong_size_are_found(heads, kv_heads):
    """A config that names half or twice as many heads than the attention has: they would be pairs or halves of heads."""
    model = tiny.model("llama", dtype=torch.float32)
    config = model.config = copy.deepcopy(model.config)  # the attention modules keep theirs
    config.num_attention_heads, config.num_key_value_heads = heads, kv_heads
    with pytest.raises(ModelError, match="of layer 0"):
        for seed in range(4):
            self_check(anatomy_of(model), seed)


def test_pairs_of_heads_are_found_where_every_head_has_its_own_key():
    """Half of a pair's query changes half of its output only."""
    model = tiny.model("gpt2", dtype=torch.float32)
    config = model.config = copy.deepcopy(model.config)
    config.n_head = 2
    with pytest.raises(ModelError, match="heads are cut at the wrong places"):
        self_check(anatomy_of(model))


def test_a_hook_that_never_fires_is_found():
    """A module that the model does not call."""
    anatomy = family_of("llama")
    unused = replace(anatomy.blocks[1], mlp_norm=copy.deepcopy(anatomy.blocks[1].mlp_norm))
    with pytest.raises(ModelError, match=r"never fired.*mlp norm of layer 1"):
        self_check(replace(anatomy, blocks=(anatomy.blocks[0], unused, anatomy.blocks[2])))


class Adapter(torch.nn.Linear):
    """What a low-rank adapter does: the weight that is stored is not the whole of what is computed."""

    def forward(self, x):
        return super().forward(x) + 0.3 * x[..., :1]


@pytest.mark.parametrize("place", ["self_attn.o_proj", "mlp.down_proj", "self_attn.v_proj"])
def test_a_projection_that_computes_more_than_its_weight_is_found(place):
    """For instance adapters that were not merged."""
    model = tiny.model("llama", dtype=torch.float32)
    model.model.layers[2].get_submodule(place).__class__ = Adapter
    with pytest.raises(ModelError, match="projection of layer 2"):
        open_model(model)


def test_layers_that_share_weights_are_found():
    """Surgery on one layer's weight would hit the other too."""
    model = tiny.model("llama", dtype=torch.float32)
    for layer in model.model.layers[1:]:
        layer.self_attn.o_proj.weight = model.model.layers[0].self_attn.o_proj.weight
    with pytest.raises(ModelError, match="by a hook and by weight surgery"):
        open_model(model)


def test_pruned_weights_are_refused_until_they_are_permanent():
    """A weight that a hook computes is no parameter."""
    model = tiny.model("llama", dtype=torch.float32)
    layers = [layer.self_attn.o_proj for layer in model.model.layers]
    for module in layers:
        prune.l1_unstructured(module, "weight", 0.5)
    with pytest.raises(ModelError, match=r"not a parameter of the model.*prune\.remove"):
        open_model(model)
    for module in layers:
        prune.remove(module, "weight")
    assert open_model(model).anatomy.universe.heads == 4


def test_small_weights_do_not_fool_the_check():
    """Heads and MLPs that do nothing, and norms near zero: the wiring is looked at with noise of its own."""
    for dtype in (torch.float32, torch.bfloat16):
        model = tiny.model("llama", dtype=dtype)
        with torch.no_grad():
            for layer in model.model.layers[:2]:
                for module in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj, layer.mlp.down_proj):
                    module.weight.zero_()
            model.model.layers[2].input_layernorm.weight.mul_(1e-3)
        open_model(model)
        anatomy = anatomy_of(model)
        for block in anatomy.blocks:
            block.readers["k"], block.readers["v"] = block.readers["v"], block.readers["k"]
        with pytest.raises(ModelError, match="values"):
            self_check(anatomy)


def test_the_users_hooks_are_neither_called_nor_lost():
    """A hook that steers, and one that counts: opening does not see them; afterwards they are in their places and work."""
    model = tiny.model("gemma2", dtype=torch.float32)
    calls = []
    model.model.layers[0].mlp.register_forward_hook(lambda _m, _a, y: y + 1)
    model.model.norm.register_forward_pre_hook(lambda *_: calls.append(1))
    before = [(id(m._forward_hooks), list(m._forward_hooks), id(m._forward_pre_hooks)) for m in model.modules()]
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        truth = model(input_ids=ids).logits
        calls.clear()
        open_model(model)
        assert not calls and torch.equal(model(input_ids=ids).logits, truth) and calls
    assert before == [(id(m._forward_hooks), list(m._forward_hooks), id(m._forward_pre_hooks)) for m in model.modules()]


def test_opening_leaves_modes_flags_gradients_and_weights_alone():
    """Also where the check fails."""
    model = tiny.model("olmo2", dtype=torch.float32).train()
    for i, p in enumerate(model.parameters()):
        p.requires_grad_(i % 2 == 0)
        p.grad = torch.ones_like(p)

    def state():
        return [
            *((n, p.requires_grad, p._version, p.grad.sum().item(), id(p)) for n, p in model.named_parameters()),
            *((n, m.training, sorted(m.__dict__)) for n, m in model.named_modules()),
            str(model.config),
        ]

    before = state()
    open_model(model)
    assert state() == before
    with pytest.raises(ModelError):
        self_check(assemble(model, replace(FAMILIES["olmo2"], gated=False)))
    assert state() == before


def test_the_check_can_be_left_out():
    """`check=False`: then a wrong model opens."""
    model = tiny.model("llama", dtype=torch.float32)
    model.model.layers[2].self_attn.o_proj.__class__ = Adapter
    open_model(model, check=False)


@pytest.mark.parametrize("change", [{"fill": float("nan")}, {"fill": 3e38}])
def test_weights_that_give_no_numbers_are_refused_at_once(change):
    """NaN weights, and weights that overflow."""
    model = tiny.model("llama", dtype=torch.float32)
    with torch.no_grad():
        model.model.layers[0].mlp.down_proj.weight.fill_(change["fill"])
        model.lm_head.weight.fill_(change["fill"])
    with pytest.raises(ModelError, match=r"not finite numbers.*NaN weights"):
        open_model(model)
