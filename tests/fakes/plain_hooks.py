"""Oracles that share no code with the engine: plain Hugging Face forwards, hooks and weight edits written out by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

NAMES = (
    "llama", "llama-wide", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "olmo2", "phi3", "gpt2", "gpt_neox", "gpt_neox-serial",
)  # fmt: skip
WITH_EXPERTS = (*NAMES, "qwen3_moe")  # mixtures of experts have no neurons


class Parts:
    """Modules and sizes of a model, spelt out for each architecture."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.config = model, model.config
        c, kind = model.config, model.config.model_type
        self.H = c.num_attention_heads
        self.fused = kind in ("gpt2", "gpt_neox", "phi3")
        self.post1 = self.post2 = [None] * c.num_hidden_layers
        if kind == "gpt2":
            self.layers, self.final_norm, self.embedding = list(model.transformer.h), model.transformer.ln_f, model.transformer.wte
            self.attn = [b.attn for b in self.layers]
            self.o, self.down = [b.attn.c_proj for b in self.layers], [b.mlp.c_proj for b in self.layers]
            self.norm1, self.norm2 = [b.ln_1 for b in self.layers], [b.ln_2 for b in self.layers]
            self.qkv = [b.attn.c_attn for b in self.layers]
            self.hd, self.kv, self.dff = c.n_embd // c.n_head, c.n_head, 4 * c.n_embd
        elif kind == "gpt_neox":
            self.layers, self.final_norm = list(model.gpt_neox.layers), model.gpt_neox.final_layer_norm
            self.embedding = model.gpt_neox.embed_in
            self.attn = [b.attention for b in self.layers]
            self.o, self.down = [b.attention.dense for b in self.layers], [b.mlp.dense_4h_to_h for b in self.layers]
            self.norm1, self.norm2 = [b.input_layernorm for b in self.layers], [b.post_attention_layernorm for b in self.layers]
            self.qkv = [b.attention.query_key_value for b in self.layers]
            self.hd, self.kv, self.dff = c.hidden_size // self.H, self.H, c.intermediate_size
        else:
            self.layers, self.final_norm, self.embedding = list(model.model.layers), model.model.norm, model.model.embed_tokens
            self.attn = [b.self_attn for b in self.layers]
            self.o = [b.self_attn.o_proj for b in self.layers]
            self.down = [b.mlp if kind == "qwen3_moe" else b.mlp.down_proj for b in self.layers]
            if kind == "olmo2":
                self.norm1 = self.norm2 = [None] * len(self.layers)
            else:
                self.norm1, self.norm2 = [b.input_layernorm for b in self.layers], [b.post_attention_layernorm for b in self.layers]
            if kind in ("gemma2", "gemma3_text"):
                self.norm2 = [b.pre_feedforward_layernorm for b in self.layers]
            if kind in ("gemma2", "gemma3_text", "olmo2"):
                self.post1, self.post2 = ([getattr(b, f"post_{x}_layernorm") for b in self.layers] for x in ("attention", "feedforward"))
            if kind == "phi3":
                self.qkv = [b.self_attn.qkv_proj for b in self.layers]
            self.hd = getattr(c, "head_dim", None) or c.hidden_size // self.H
            self.kv, self.dff = c.num_key_value_heads, c.intermediate_size
        self.parallel = kind == "gpt_neox" and c.use_parallel_residual
        self.mlp = [b.mlp for b in self.layers]
        self.L, self.d = len(self.layers), c.hidden_size
        self.names = [f"L{layer}{tail}" for layer in range(self.L) for tail in [*(f"H{h}" for h in range(self.H)), "MLP"]]

    def zero_inputs(self, module: nn.Module, start: int, stop: int) -> None:
        """Zero the weights of some inputs of a projection, in place."""
        with torch.no_grad():
            if self.config.model_type == "gpt2":
                module.weight[start:stop] = 0
            else:
                module.weight[:, start:stop] = 0

    def cut(self, name: str) -> None:
        """Weight surgery that removes a component or neuron for good."""
        layer, rest = name[1:].split("H")[0].split("M")[0].split("N")[0], name
        layer = int(layer)
        if rest.endswith("MLP"):
            with torch.no_grad():
                for parameter in self.down[layer].parameters():
                    parameter.zero_()
        elif "H" in rest:
            h = int(rest.split("H")[1])
            self.zero_inputs(self.o[layer], h * self.hd, (h + 1) * self.hd)
        else:
            i = int(rest.split("N")[1])
            self.zero_inputs(self.down[layer], i, i + 1)

    def qkv_columns(self, which: str, head: int) -> tuple[int, list[int]]:
        """For fused projections: which outputs are q, k or v of a head."""
        part = "qkv".index(which)
        if self.config.model_type == "gpt_neox":
            start = (3 * head + part) * self.hd
        else:
            start = ((0, self.H, self.H + self.kv)[part] + head) * self.hd
        return list(range(start, start + self.hd))

    def projection(self, layer: int, which: str) -> nn.Module:
        return self.qkv[layer] if self.fused else getattr(self.attn[layer], f"{which}_proj")

    def columns(self, which: str, head: int) -> list[int]:
        return self.qkv_columns(which, head) if self.fused else list(range(head * self.hd, (head + 1) * self.hd))


def operated(model: nn.Module, names) -> nn.Module:
    """A copy of the model with the units cut out of its weights."""
    twin = copy.deepcopy(model)
    parts = Parts(twin)
    for name in names:
        parts.cut(name)
    return twin


@contextmanager
def edits(model: nn.Module, places: dict[tuple[str, int], Callable[[Tensor], Tensor | None]]):
    """Plain hooks: `("z", layer)` input of the output projection, `("n", layer)` of the down projection, `("mlp", layer)` its output."""
    parts, handles = Parts(model), []
    for (kind, layer), function in places.items():
        if kind == "mlp":
            handles.append(parts.down[layer].register_forward_hook(lambda _m, _a, y, f=function: f(y)))
        else:
            module = parts.o[layer] if kind == "z" else parts.down[layer]
            handles.append(module.register_forward_pre_hook(lambda _m, a, f=function: None if (new := f(a[0])) is None else (new,)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def record(model: nn.Module, ids, kinds=("z", "n", "mlp")) -> dict[tuple[str, int], Tensor]:
    """Activations of one prompt (or a batch of prompts of one length)."""
    kept: dict[tuple[str, int], Tensor] = {}
    places = {
        (k, layer): (lambda x, key=(k, layer): kept.__setitem__(key, x.detach().clone())) for k in kinds for layer in range(Parts(model).L)
    }
    with torch.no_grad(), edits(model, places):
        model(input_ids=as_ids(ids), use_cache=False)
    return kept


def as_ids(ids) -> Tensor:
    found = torch.as_tensor(ids)
    return found if found.dim() == 2 else found[None]


def logits_of(model: nn.Module, ids) -> Tensor:
    with torch.no_grad():
        return model(input_ids=as_ids(ids), use_cache=False).logits


def prompts(pair) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(clean, corrupt, position of the first answer logits), with all answer tokens but the last teacher-forced."""
    own = pair.corrupt_answer or (pair.foils[0] if pair.foils else pair.answer)
    forced = own if len(own) == len(pair.answer) else pair.answer
    return (*pair.clean, *pair.answer[:-1]), (*pair.corrupt, *forced[: len(pair.answer) - 1]), len(pair.clean) - 1


def metric(name: str, logits: Tensor, pair) -> Tensor:
    """One example's metric, logits [T, V]; loops and definitions only."""
    start = len(pair.clean) - 1
    if name == "logit_diff":
        total = 0.0
        for foil in pair.foils:
            for t in range(min(len(foil), len(pair.answer))):
                total = total + logits[start + t, pair.answer[t]] - logits[start + t, foil[t]]
        return total / len(pair.foils)
    summed = sum(
        torch.log_softmax(logits[start + t].to(torch.promote_types(logits.dtype, torch.float32)), -1)[a] for t, a in enumerate(pair.answer)
    )
    return summed if name == "log_prob" else summed.exp()


def is_correct(logits: Tensor, pair, scoring: str) -> bool:
    start = len(pair.clean) - 1
    if scoring == "argmax" or not pair.foils:
        return all(int(logits[start + t].argmax()) == a for t, a in enumerate(pair.answer))
    return all(
        bool(logits[start + t, pair.answer[t]] > logits[start + t, foil[t]])
        for foil in pair.foils
        for t in range(min(len(foil), len(pair.answer)))
        if foil[t] != pair.answer[t]
    )


def outcomes(model: nn.Module, task, name: str = "logit_diff") -> dict[str, np.ndarray]:
    """Per example metric, log_prob and correct of plain forwards, one prompt at a time."""
    rows = [(logits_of(model, prompts(pair)[0])[0], pair) for pair in task]
    return {
        "metric": np.array([float(metric(name, x, p)) for x, p in rows]),
        "log_prob": np.array([float(metric("log_prob", x, p)) for x, p in rows]),
        "correct": np.array([is_correct(x, p, task.scoring) for x, p in rows]),
    }


def same(outcome, oracle, tolerance: float) -> None:
    """Metric, log_prob and correct agree; a decision on a knife's edge would be a bad example, so `correct` must be equal."""
    scale = max(1.0, float(np.abs(oracle["metric"]).max()))
    np.testing.assert_allclose(outcome.metric, oracle["metric"], atol=tolerance * scale, rtol=0)
    np.testing.assert_allclose(outcome.log_prob, oracle["log_prob"], atol=tolerance * scale, rtol=0)
    assert outcome.correct.tolist() == oracle["correct"].tolist()
