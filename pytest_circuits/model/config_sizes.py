"""The sizes of a model, as its config names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from ..errors import ModelError


@dataclass(frozen=True)
class ModelSizes:
    """How many layers and heads a config names; `config` is the one of the text model."""

    config: Any
    architecture: str
    layers: int
    heads: int
    kv_heads: int


def model_sizes(model: nn.Module) -> ModelSizes:
    """Read them. Raises `ModelError` for a config without attention heads or layers (recurrent and state-space models)."""
    whole: Any = model.config
    kind = str(whole.model_type)
    if getattr(whole, "is_encoder_decoder", False):
        raise ModelError(f"{kind!r} is an encoder–decoder: only decoder-only causal LMs can be measured")
    config: Any = whole.get_text_config() if hasattr(whole, "get_text_config") else whole
    heads, layers = (_number(config, names) for names in (("num_attention_heads", "n_head", "n_heads"), ("num_hidden_layers", "n_layers")))
    for what, value in (("attention heads (num_attention_heads)", heads), ("layers (num_hidden_layers)", layers)):
        if not value:
            raise ModelError(
                f"the config of this {kind!r} model names no {what}: only decoders whose layers have attention can be measured"
            )
    # Falcon's newer layers name their key-value heads and ignore the flag
    one = getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False)
    kv_heads = 1 if one else _number(config, ("num_key_value_heads", "num_kv_heads", "n_head_kv")) or heads
    if heads % kv_heads:
        raise ModelError(f"the config of this {kind!r} model names {heads} query heads for {kv_heads} key-value heads, which do not fit")
    return ModelSizes(config, kind, layers, heads, kv_heads)


def _number(config: Any, names: tuple[str, ...]) -> int:
    """The first of these entries that is set; 0 where none is. Entries that differ by layer are refused."""
    value = next((v for name in names if (v := getattr(config, name, None)) is not None), 0)
    if not isinstance(value, int):
        raise ModelError(f"the config entry {names[0]} is {value!r}: models whose layers differ in it cannot be measured")
    return value
