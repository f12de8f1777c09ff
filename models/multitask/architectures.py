"""Architectures of the reference models: one function each, from a size to a Hugging Face configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    LlamaConfig,
    Olmo2Config,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
)

LENGTH = 64  # longest prompt in tokens


@dataclass(frozen=True)
class Size:
    """Layers, query heads and width of the residual stream; the MLP is `mlp` times as wide, heads share keys and values in twos."""

    layers: int = 4
    heads: int = 8
    width: int = 128
    mlp: int = 4

    @property
    def shape(self) -> dict[str, int]:
        """As the configurations of all these architectures call it."""
        return {
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": max(1, self.heads // 2),
            "head_dim": self.width // self.heads,
            "intermediate_size": self.mlp * self.width,
            "max_position_embeddings": LENGTH,
        }


def llama(size: Size, common: dict[str, Any]) -> PretrainedConfig:
    """Llama: RMSNorm before each part, rotary positions, grouped queries, gated MLP, no biases."""
    return LlamaConfig(**common, **size.shape)


def qwen3(size: Size, common: dict[str, Any]) -> PretrainedConfig:
    """Qwen3: Llama with RMSNorm on each head's queries and keys."""
    return Qwen3Config(**common, **size.shape)


def gemma2(size: Size, common: dict[str, Any]) -> PretrainedConfig:
    """Gemma 2: norms before and after each part, scaled embeddings, soft caps, a sliding window on every other layer."""
    scale = size.width // size.heads
    return Gemma2Config(**common, **size.shape, query_pre_attn_scalar=scale, sliding_window=LENGTH // 2, attn_implementation="eager")


def olmo2(size: Size, common: dict[str, Any]) -> PretrainedConfig:
    """OLMo 2: norms after each part only, RMSNorm on all queries and all keys of a layer."""
    shape = {key: value for key, value in size.shape.items() if key != "head_dim"}
    return Olmo2Config(**common, **shape)


ARCHITECTURES: dict[str, Callable[[Size, dict[str, Any]], PretrainedConfig]] = {
    "gemma2": gemma2,
    "llama": llama,
    "olmo2": olmo2,
    "qwen3": qwen3,
}


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
