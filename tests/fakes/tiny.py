"""Tiny random models of real Hugging Face classes, and token-id tasks for them."""

from __future__ import annotations

import random
from functools import cache

import torch
import transformers as tf
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from pytest_circuits import PromptPair, Task

VOCAB = 29
COMMON = {"vocab_size": VOCAB, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 32}
CONFIGS = {
    "llama": lambda: tf.LlamaConfig(**COMMON, intermediate_size=40, num_key_value_heads=2),
    "llama-wide": lambda: tf.LlamaConfig(
        **COMMON, intermediate_size=40, num_key_value_heads=1, head_dim=10, attention_bias=True, mlp_bias=True
    ),
    "mistral": lambda: tf.MistralConfig(**COMMON, intermediate_size=40, num_key_value_heads=2, sliding_window=4),
    "qwen2": lambda: tf.Qwen2Config(**COMMON, intermediate_size=40, num_key_value_heads=2),
    "qwen3": lambda: tf.Qwen3Config(**COMMON, intermediate_size=40, num_key_value_heads=2, head_dim=8),
    "gemma2": lambda: tf.Gemma2Config(
        **COMMON,
        intermediate_size=40,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=4,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=6.0,
        query_pre_attn_scalar=8,
    ),
    "gemma3": lambda: tf.Gemma3TextConfig(
        **COMMON,
        intermediate_size=40,
        num_key_value_heads=1,
        head_dim=8,
        sliding_window=4,
        query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "olmo2": lambda: tf.Olmo2Config(**COMMON, intermediate_size=40, num_key_value_heads=2),
    "phi3": lambda: tf.Phi3Config(
        **COMMON, intermediate_size=40, num_key_value_heads=2, pad_token_id=0, head_dim=8, partial_rotary_factor=0.5
    ),
    "qwen3_moe": lambda: tf.Qwen3MoeConfig(
        **COMMON, intermediate_size=40, num_key_value_heads=2, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16
    ),
    "gpt2": lambda: tf.GPT2Config(vocab_size=VOCAB, n_embd=24, n_layer=3, n_head=4, n_positions=32),
    "gpt_neox": lambda: tf.GPTNeoXConfig(**COMMON, intermediate_size=40),
    "gpt_neox-serial": lambda: tf.GPTNeoXConfig(**COMMON, intermediate_size=40, use_parallel_residual=False),
}


def eager_in_own_precision(module, query, key, value, attention_mask, scaling, softcap=None, dropout=0.0, **kwargs):
    """Attention written out. That of transformers takes its softmax in float32."""
    groups = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(groups, 1).transpose(2, 3) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    pattern = (scores if attention_mask is None else scores + attention_mask).softmax(-1)
    return (pattern @ value.repeat_interleave(groups, 1)).transpose(1, 2).contiguous(), pattern


ALL_ATTENTION_FUNCTIONS.register("eager-double", eager_in_own_precision)
ALL_MASK_ATTENTION_FUNCTIONS.register("eager-double", eager_mask)


def without_upcast(made: torch.nn.Module) -> torch.nn.Module:
    """The model with norms, routers and eager attention that compute in the model's own precision.

    Those of transformers go through float32, whose rounding would drown a finite difference in float64.
    """
    for module in made.modules():
        if type(module).__name__.endswith(("RMSNorm", "TopKRouter")):
            module.__class__ = _in_own_precision(type(module))
    if made.config._attn_implementation == "eager" and made.config.model_type == "gemma2":
        made.config._attn_implementation = "eager-double"
    made.config._experts_implementation = "eager"  # grouped matrix products have no float64
    return made


@cache
def _in_own_precision(base: type) -> type:
    def norm(self, hidden_states):
        eps = self.eps if base.__name__.startswith("Gemma") else self.variance_epsilon
        weight = 1 + self.weight if base.__name__.startswith("Gemma") else self.weight
        return weight * hidden_states * torch.rsqrt(hidden_states.square().mean(-1, keepdim=True) + eps)

    def route(self, hidden_states):
        logits = torch.nn.functional.linear(hidden_states.reshape(-1, self.hidden_dim), self.weight)
        shares, chosen = logits.softmax(-1).topk(self.top_k, dim=-1)
        return logits, shares / shares.sum(-1, keepdim=True) if self.norm_topk_prob else shares, chosen

    return type(base.__name__, (base,), {"forward": route if base.__name__.endswith("Router") else norm})


def model(name: str, seed: int = 0, dtype: torch.dtype = torch.float64, **changes) -> torch.nn.Module:
    """A random model; weights are large enough that every part matters, biases are not zero."""
    config = CONFIGS[name]()
    for key, value in changes.items():
        setattr(config, key, value)
    torch.manual_seed(seed)
    default = "eager" if name == "gemma2" else "sdpa"  # sdpa refuses to cap scores
    made = tf.AutoModelForCausalLM.from_config(config, attn_implementation=changes.get("attn_implementation", default))
    with torch.no_grad():
        for parameter_name, parameter in made.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.35)
            else:
                parameter.add_(
                    0.3 * torch.randn_like(parameter)
                    if "bias" in parameter_name or "norm" in parameter_name or "ln" in parameter_name
                    else 0
                )
    made = made.to(dtype).eval()
    return without_upcast(made) if dtype == torch.float64 else made


def task(
    n: int = 6, seed: int = 0, lengths: tuple[int, ...] = (5, 7), tokens: int = 1, foils: int = 1, scoring: str = "choices", **kwargs
) -> Task:
    """Random token-id pairs of mixed lengths; answers have `tokens` tokens."""
    r = random.Random(seed)
    pairs = []
    for i in range(n):
        length = lengths[i % len(lengths)]
        clean = tuple(r.randrange(VOCAB) for _ in range(length))
        corrupt = clean
        while corrupt == clean:
            corrupt = tuple(r.randrange(VOCAB) if r.random() < 0.5 else c for c in clean)
        first = r.sample(range(VOCAB), foils + 1)
        answers = [(f, *(r.randrange(VOCAB) for _ in range(tokens - 1))) for f in first]
        pairs.append(PromptPair(clean, corrupt, answers[0], tuple(answers[1:])))
    return Task("random", tuple(pairs), scoring, **kwargs)
