"""The sizes of a model, as its config names them: the config of an open model, or the content of a config.json. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.units import Universe
from ..errors import ModelError
from .architectures import FAMILIES

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_NEURONS = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
_WIDTH = ("hidden_size", "n_embd", "d_model")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


@dataclass(frozen=True)
class ModelSizes:
    """How many layers and heads a config names. `config` is the one of the text model."""

    config: Any
    architecture: str
    layers: int
    heads: int
    kv_heads: int


def config_sizes(config: Any) -> ModelSizes:
    """The sizes that a config names: a Hugging Face config, or the mapping of a config.json.

    Raises `ModelError` for encoder–decoders and for models without attention heads or layers (recurrent and state-space models).
    """
    architecture = str(_entry(config, "model_type"))
    if _entry(config, "is_encoder_decoder"):
        raise ModelError(f"{architecture!r} is an encoder–decoder: only decoder-only causal LMs can be measured")
    text = _text_config(config)
    layers, heads = _number(text, _LAYERS), _number(text, _HEADS)
    if not heads and _entry(text, "num_layers"):
        heads = _number(text, ("num_heads",))  # GPT-Neo; state-space models have num_heads, too, but not of attention
    for part, number in (("attention heads (num_attention_heads)", heads), ("layers (num_hidden_layers)", layers)):
        if not number:
            raise ModelError(
                f"the config of this {architecture!r} model names no {part}: only decoders whose layers have attention can be measured"
            )
    # Falcon's newer layers name their key-value heads and ignore the flag
    multi_query = _entry(text, "multi_query") and not _entry(text, "new_decoder_architecture")
    kv_heads = 1 if multi_query else _number(text, _KV_HEADS) or heads
    if heads % kv_heads:
        raise ModelError(
            f"the config of this {architecture!r} model names {heads} query heads for {kv_heads} key-value heads; they must divide"
        )
    return ModelSizes(text, architecture, layers, heads, kv_heads)


def config_universe(config: Mapping[str, Any]) -> Universe:
    """The universe of a model, as far as the mapping of its config.json tells. Raises as `config_sizes`.

    Mixtures of experts have no neurons. Whether attention and MLP run in parallel is known for known architectures only.
    """
    sizes = config_sizes(config)
    family = FAMILIES.get(sizes.architecture) or FAMILIES.get(str(_entry(sizes.config, "model_type")))
    experts = any((_entry(sizes.config, name) or 0) > 1 for name in _EXPERTS) if family is None else family.down is None
    neurons = 0 if experts else _number(sizes.config, _NEURONS) or 4 * _number(sizes.config, _WIDTH)
    parallel = False if family is None else family.parallel
    if isinstance(parallel, str):
        parallel = bool(sizes.config.get(parallel, True))  # an old config.json leaves out the entry, whose default is true
    return Universe(sizes.layers, sizes.heads, neurons, sizes.kv_heads, parallel)


def _text_config(config: Any) -> Any:
    """The part of a config that describes the language model, without images or sound."""
    if isinstance(config, Mapping):
        text = config.get("text_config")
        return {**config, **text} if isinstance(text, Mapping) else config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _entry(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def _number(config: Any, names: tuple[str, ...]) -> int:
    """The first of these entries that is set; 0 where none is. Entries that differ by layer are refused."""
    name, value = next(((name, v) for name in names if (v := _entry(config, name)) is not None), (names[0], 0))
    if not isinstance(value, int):
        raise ModelError(f"the config entry {name} is {value!r}: models whose layers differ in it cannot be measured")
    return value
