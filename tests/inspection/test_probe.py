"""Unknown architectures: found by what flows through a layer and verified, or refused with what is missing."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
import transformers as tf
from torch import nn

from pytest_circuits import open_model
from pytest_circuits.errors import ModelError
from pytest_circuits.inspection import probe
from pytest_circuits.model.architectures import FAMILIES
from tests.fakes import tiny

COMMON = {k: v for k, v in tiny.COMMON.items() if k != "max_position_embeddings"}
GQA = {**tiny.COMMON, "intermediate_size": 40, "num_key_value_heads": 2}
OLD = {"vocab_size": 29, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 32}
UNKNOWN = {
    "stablelm": lambda: tf.StableLmConfig(**GQA, qk_layernorm=True),
    "stablelm, parallel": lambda: tf.StableLmConfig(**GQA, use_parallel_residual=True, use_qkv_bias=True),
    "cohere": lambda: tf.CohereConfig(**GQA, pad_token_id=0, logit_scale=0.3, use_qk_norm=True),
    "granite": lambda: tf.GraniteConfig(**GQA, residual_multiplier=0.22, embedding_multiplier=12.0, logits_scaling=4.0),
    "starcoder2": lambda: tf.Starcoder2Config(**GQA),
    "olmo3": lambda: tf.Olmo3Config(**GQA),
    "glm4": lambda: tf.Glm4Config(**GQA, head_dim=8, pad_token_id=0),
    "nemotron": lambda: tf.NemotronConfig(**GQA, head_dim=8),
    "gemma": lambda: tf.GemmaConfig(**GQA, head_dim=8),
    "gptj": lambda: tf.GPTJConfig(**OLD, rotary_dim=4),
    "gpt_bigcode": lambda: tf.GPTBigCodeConfig(**OLD),
    "bloom": lambda: tf.BloomConfig(vocab_size=29, hidden_size=24, n_layer=3, n_head=4),
    "falcon, grouped": lambda: tf.FalconConfig(**COMMON, num_kv_heads=2, new_decoder_architecture=True),
    "falcon, one key": lambda: tf.FalconConfig(**COMMON, multi_query=True),
    "mpt": lambda: tf.MptConfig(vocab_size=29, d_model=24, n_layers=3, n_heads=4, max_seq_len=32),
    "qwen2_moe": lambda: tf.Qwen2MoeConfig(
        **GQA, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=20
    ),
}
SAID = {
    "cohere": {"parallel": True, "attention_norm": "input_layernorm", "mlp_norm": "input_layernorm"},
    "granite": {"residual_scale": "residual_multiplier"},
    "olmo3": {"attention_norm": None, "mlp_norm": None, "mlp_post_norm": "post_feedforward_layernorm"},
    "glm4": {"attention_post_norm": "post_self_attn_layernorm"},
    "starcoder2": {"gated": False},
    "bloom": {"fused": "heads", "layer_tuple": True},
    "falcon, grouped": {"fused": "groups", "parallel": True, "in_place": True},
    "falcon, one key": {"fused": "blocks"},
    "qwen2_moe": {"down": None},
}


def made(config) -> nn.Module:
    """A random model with weights large enough that every part matters."""
    torch.manual_seed(0)
    model = tf.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.double() if "moe" not in config.model_type else model


@pytest.mark.parametrize("name", tiny.CONFIGS)
def test_known_architectures_are_found_without_their_names(name):
    """Probing gives the registered family again, part by part."""
    model = tiny.model(name, dtype=torch.float32)
    known, anatomy = FAMILIES[model.config.model_type], probe.probe(model)
    assert anatomy.probed
    parallel = known.parallel if isinstance(known.parallel, bool) else getattr(model.config, known.parallel)
    for field in known.__dataclass_fields__:
        if not field.endswith("softcap") and field != "parallel":
            assert getattr(anatomy.family, field) == getattr(known, field), field
    assert anatomy.parallel == parallel
    assert anatomy.softcap == (6.0 if name == "gemma2" else None)


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_architectures_are_probed_verified_and_measured(name):
    """The architecture keeps its name; edges add up to attribution patching, sweeps equal single ablations."""
    model = made(UNKNOWN[name]())
    subject, task = open_model(model), tiny.task(n=3)
    assert subject.anatomy.probed and subject.anatomy.architecture == subject.describe().architecture == model.config.model_type
    assert {k: getattr(subject.anatomy.family, k) for k in SAID.get(name, {})} == SAID.get(name, {})
    atp, edges = subject.attribute(task, "atp").scores, subject.attribute(task, "eap", level="edge")
    sums = np.stack([edges.scores[:, [e.split("->")[0] == unit for e in edges.units]].sum(1) for unit in subject.attribute(task).units], 1)
    np.testing.assert_allclose(sums, atp, atol=2e-4 * np.abs(atp).max())
    swept = subject.sweep(task)
    single = subject.ablate_many(task, [[u] for u in swept.units])
    np.testing.assert_allclose(swept.metric, single.metric.T, atol=1e-4 * np.abs(single.metric).max())


@pytest.mark.parametrize("name", [n for n in UNKNOWN if n != "qwen2_moe"])
def test_relp_conserves_relevance_on_probed_architectures(name):
    """Bias-free: gradient times neuron equals gradient times MLP output, and the neurons' scores do not vanish."""
    model = made(UNKNOWN[name]())
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if key.endswith("bias"):
                parameter.zero_()
    subject, task = open_model(model), tiny.task(n=2)
    layers = subject.anatomy.universe.layers
    mlps = subject.attribute(task, "relp").scores.reshape(2, layers, -1)[:, :, -1]
    neurons = subject.attribute(task, "relp", level="neuron").scores.reshape(2, layers, -1).sum(2)
    np.testing.assert_allclose(neurons, mlps, rtol=1e-3, atol=1e-5 * np.abs(mlps).max())
    assert np.abs(mlps).min() > 0


class RenamedConfig(tf.LlamaConfig):
    model_type = "renamed"


RENAMED = (
    ("self_attn", "mixer"), ("q_proj", "alpha"), ("k_proj", "beta"), ("v_proj", "gamma"), ("o_proj", "delta"), ("mlp", "ffn"),
    ("gate_proj", "one"), ("up_proj", "two"), ("down_proj", "three"), ("act_fn", "bend"), ("input_layernorm", "before"),
    ("post_attention_layernorm", "between"),
)  # fmt: skip


class Renamed(nn.Module):
    """A module that another's forward runs on, under names of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self._kind, names = type(inner), dict(RENAMED)
        for name, module in inner.named_children():
            self.add_module(names.get(name, name), Renamed(module) if name in ("self_attn", "mlp") else module)
        self._plan = {name: names.get(name, name) for name, _ in inner.named_children()}
        for key, value in inner.__dict__.items():
            if not key.startswith("_") and key not in self.__dict__:
                self.__dict__[key] = value

    def __getattr__(self, name):
        plan = self.__dict__.get("_plan") or {}
        try:
            return super().__getattr__(plan.get(name, name))
        except AttributeError:
            return getattr(self.__dict__["_kind"], name)

    def forward(self, *args, **kwargs):
        return self._kind.forward(self, *args, **kwargs)


def renamed(**changes) -> nn.Module:
    torch.manual_seed(0)
    model = tf.LlamaForCausalLM(RenamedConfig(**{**GQA, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.model.layers = nn.ModuleList(Renamed(layer) for layer in model.model.layers)
    return model


@pytest.mark.parametrize("kv_heads", [2, 4])
def test_names_do_not_matter(kv_heads):
    """A Llama under an unknown model type, with every part of its layers called otherwise; also where q, k and v have the same shape."""
    model = renamed(num_key_value_heads=kv_heads)
    subject = open_model(model)
    assert subject.anatomy.architecture == "renamed" and subject.anatomy.probed
    family = subject.anatomy.family
    assert family.qkv == ("mixer.alpha", "mixer.beta", "mixer.gamma") and family.output == "mixer.delta"
    assert (family.mlp, family.down, family.activation) == ("ffn", "ffn.three", "ffn.bend")
    assert (family.attention_norm, family.mlp_norm, family.final_norm) == ("before", "between", "model.norm")
    assert (subject.attribute(tiny.task(n=2)).scores > 0).any()


def test_misleading_names_do_not_matter():
    """The projection that is called v makes the queries; the one that is called q makes the values."""
    model = renamed(num_key_value_heads=4)
    for layer in model.model.layers:
        mixer, plan = layer.mixer, layer.mixer._plan
        for name, old in (("v_proj", "alpha"), ("k_proj", "beta"), ("q_proj", "gamma")):
            mixer._modules[f"{name}_"] = mixer._modules.pop(old)
        plan.update({"q_proj": "v_proj_", "k_proj": "k_proj_", "v_proj": "q_proj_"})
    assert open_model(model).anatomy.family.qkv == ("mixer.v_proj_", "mixer.k_proj_", "mixer.q_proj_")


ENCODER = {"vocab_size": 29, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
IMPOSSIBLE = {
    "mamba": (lambda: tf.MambaForCausalLM(tf.MambaConfig(vocab_size=29, hidden_size=24, num_hidden_layers=2)), "names no attention heads"),
    "t5": (
        lambda: tf.T5ForConditionalGeneration(tf.T5Config(vocab_size=29, d_model=24, num_layers=2, num_heads=4, d_ff=40)),
        "encoder–decoder",
    ),
    "bert": (lambda: tf.BertForMaskedLM(tf.BertConfig(**ENCODER)), "attends to later positions.*encoder"),
    "bert, causal": (
        lambda: tf.BertLMHeadModel(tf.BertConfig(**ENCODER, is_decoder=True)),
        "Found: layers='bert.encoder.layer', qkv=.*missing: a final norm that reads the last layer's output",
    ),
    "recurrentgemma": (
        lambda: tf.RecurrentGemmaForCausalLM(tf.RecurrentGemmaConfig(**{**ENCODER, "num_hidden_layers": 3}, lru_width=24)),
        "Found: layers='model.layers'. missing: query, key and value projections",
    ),
    "gpt_oss": (
        lambda: tf.GptOssForCausalLM(tf.GptOssConfig(**{**GQA, "intermediate_size": 16}, head_dim=8, num_local_experts=4)),
        "Found: .*qkv=.*attention sinks",
    ),
    "a classifier": (
        lambda: tf.StableLmForSequenceClassification(tf.StableLmConfig(**GQA, pad_token_id=0)), "cannot be run|attends|no unembedding"
    ),
    "a headless model": (lambda: tf.StableLmModel(tf.StableLmConfig(**GQA)), "cannot be run on token ids alone"),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_measured_is_refused_with_the_reason(name):
    """One ModelError that says what was found and what is missing."""
    build, words = IMPOSSIBLE[name]
    torch.manual_seed(0)
    model = build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    with pytest.raises(ModelError) as caught:
        open_model(model)
    assert re.search(words, str(caught.value)), caught.value
    if "Found" in words:
        assert f"register_family('{model.config.model_type}'" in str(caught.value)


def test_a_module_without_a_config_is_refused():
    """Any torch module."""
    with pytest.raises(ModelError, match="has no config"):
        open_model(nn.Linear(2, 2))


def test_probing_leaves_the_users_hooks_and_flags_alone():
    """They are not called; they stay."""
    model, calls = made(UNKNOWN["stablelm"]()).train(), []
    model.model.layers[0].mlp.register_forward_hook(lambda *_: calls.append(1))
    next(model.parameters()).requires_grad_(False)
    flags = [(m.training, len(m._forward_hooks)) for m in model.modules()] + [p.requires_grad for p in model.parameters()]
    open_model(model)
    assert not calls
    assert flags == [(m.training, len(m._forward_hooks)) for m in model.modules()] + [p.requires_grad for p in model.parameters()]
