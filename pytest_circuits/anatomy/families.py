"""The known architectures, as data: where each part of a decoder layer is.

Paths are attribute paths: `layers`, `final_norm` from the causal LM, all others from one decoder layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..errors import OptionError


@dataclass(frozen=True)
class Family:
    """One architecture.

    qkv: paths of the query, key and value projections, or one path where they are fused.
    fused: how a fused projection lays out its outputs: `blocks` = all queries, all keys, all values;
        `heads` = for each head its query, key and value.
    parallel: whether attention and MLP read the same residual: a bool, or the name of a config entry that says so.
    """

    layers: str
    qkv: tuple[str, ...]
    output: str
    mlp: str
    down: str
    activation: str
    attention_norm: str
    mlp_norm: str
    final_norm: str
    fused: Literal["blocks", "heads"] | None = None
    gated: bool = True
    parallel: bool | str = False


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

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
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
    """Teach the package an architecture: `model_type` as in its config.json. A known name is refused."""
    if model_type in FAMILIES and FAMILIES[model_type] != family:
        raise OptionError(f"the architecture {model_type!r} is already known; registered families are never replaced")
    FAMILIES[model_type] = family
