"""The known architectures, as data: where each part of a decoder layer is.

Paths are attribute paths: `layers`, `final_norm` from the causal LM, all others from one decoder layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..errors import OptionError


@dataclass(frozen=True)
class Family:
    """One architecture. A path is None where a layer has no such part.

    Attributes:
        layers: the list of decoder layers.
        qkv: the query, key and value projections, or one fused projection.
        output: the attention's output projection; a head is a slice of its input.
        mlp: a module whose input is what the MLP reads; with `down` None, its output is also what the MLP writes.
        down: the down projection; its output is the MLP's site and its inputs are the neurons. None for mixtures of experts.
        activation: the module that applies the MLP's nonlinearity. None: unknown; `relp` is then refused.
        attention_norm: the norm between the residual stream and q, k, v. None: they read the bare stream.
        mlp_norm: the norm between the residual stream and the MLP. None: it reads the bare stream.
        final_norm: the norm before the unembedding.
        attention_post_norm: a norm of the attention's output before it is added to the stream.
        mlp_post_norm: a norm of the MLP's output before it is added to the stream.
        fused: how one projection for q, k and v lays out its outputs: `blocks`: all queries, all keys, all values; `heads`: for each
            head its query, key and value; `groups`: for each key-value head its queries, its key and its value.
        gated: whether a neuron is the product of an activation and a second projection.
        parallel: whether attention and MLP read the same residual: a bool, or the name of a config entry that says so.
        residual_scale: the factor of the outputs of attention and MLP when they are added to the stream: a
            number, or the name of a config entry.
        layer_tuple: whether a layer returns a tuple whose first element is the stream.
        in_place: whether a layer adds to the MLP's output in place, so that recorded outputs must be copies.
        attention_softcap: name of the config entry with the cap of the attention scores (None there: no cap).
        final_softcap: name of the config entry with the cap of the logits (None there: no cap).

    """

    layers: str
    qkv: tuple[str, ...]
    output: str
    mlp: str
    down: str | None
    activation: str | None
    attention_norm: str | None
    mlp_norm: str | None
    final_norm: str
    attention_post_norm: str | None = None
    mlp_post_norm: str | None = None
    fused: Literal["blocks", "heads", "groups"] | None = None
    gated: bool = True
    parallel: bool | str = False
    residual_scale: float | str = 1.0
    layer_tuple: bool = False
    in_place: bool = False
    attention_softcap: str | None = None
    final_softcap: str | None = None


_LLAMA = Family(
    layers="model.layers",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    output="self_attn.o_proj",
    mlp="mlp",
    down="mlp.down_proj",
    activation="mlp.act_fn",
    attention_norm="input_layernorm",
    mlp_norm="post_attention_layernorm",
    final_norm="model.norm",
)

_GEMMA2 = replace(
    _LLAMA,
    attention_post_norm="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_post_norm="post_feedforward_layernorm",
    attention_softcap="attn_logit_softcapping",
    final_softcap="final_logit_softcapping",
)

_EXPERTS = replace(_LLAMA, down=None, activation=None)

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma2": _GEMMA2,
    "gemma3_text": _GEMMA2,
    "olmo2": replace(
        _LLAMA,
        attention_norm=None,
        attention_post_norm="post_attention_layernorm",
        mlp_norm=None,
        mlp_post_norm="post_feedforward_layernorm",
    ),
    "phi3": replace(_LLAMA, qkv=("self_attn.qkv_proj",), fused="blocks", activation="mlp.activation_fn"),
    "mixtral": _EXPERTS,
    "olmoe": _EXPERTS,
    "qwen3_moe": _EXPERTS,
    "gpt2": replace(
        _LLAMA,
        layers="transformer.h",
        qkv=("attn.c_attn",),
        output="attn.c_proj",
        down="mlp.c_proj",
        activation="mlp.act",
        attention_norm="ln_1",
        mlp_norm="ln_2",
        final_norm="transformer.ln_f",
        fused="blocks",
        gated=False,
    ),
    "gpt_neox": replace(
        _LLAMA,
        layers="gpt_neox.layers",
        qkv=("attention.query_key_value",),
        output="attention.dense",
        down="mlp.dense_4h_to_h",
        activation="mlp.act",
        final_norm="gpt_neox.final_layer_norm",
        fused="heads",
        gated=False,
        parallel="use_parallel_residual",
    ),
}


def register_family(model_type: str, family: Family) -> None:
    """Register an architecture by the `model_type` of its config.json. Raises `OptionError` for a known name."""
    if model_type in FAMILIES and FAMILIES[model_type] != family:
        raise OptionError(f"the architecture {model_type!r} is already known; registered families are never replaced")
    FAMILIES[model_type] = family
