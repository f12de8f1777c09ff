"""Architectures of the reference models: one function each, from a size to a Hugging Face configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, PreTrainedTokenizerFast

LENGTH = 64  # longest prompt in tokens


@dataclass(frozen=True)
class Size:
    """Layers, query heads and width of the residual stream; the MLP is four times as wide, heads share keys and values in twos."""

    layers: int = 4
    heads: int = 8
    width: int = 128


def llama(size: Size, common: dict[str, Any]) -> PretrainedConfig:
    """Llama: RMSNorm before each part, rotary positions, grouped queries, gated MLP, no biases."""
    return LlamaConfig(
        **common,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=max(1, size.heads // 2),
        head_dim=size.width // size.heads,
        intermediate_size=4 * size.width,
        max_position_embeddings=LENGTH,
    )


ARCHITECTURES: dict[str, Callable[[Size, dict[str, Any]], PretrainedConfig]] = {"llama": llama}


def build(architecture: str, size: Size, tokenizer: PreTrainedTokenizerFast) -> Any:
    """A model with random weights in float32, not tied to its embedding."""
    common = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
    }
    config = ARCHITECTURES[architecture](size, common)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
