"""Hosts: the weights of a real Hugging Face model as views that a circuit is written into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from .stream import Features, Stream

SHARPNESS = 576.0  # attention score of a full match: softmax is one-hot in float32 from about 104 on
STEEPNESS = 256.0  # how steep an activation is driven, so that it acts as a ReLU


@dataclass(frozen=True)
class Layer:
    """One decoder layer. Weight views: q, k, v [heads, head_dim, width]; o [width, heads, head_dim]; fc [neurons, width] (the gate
    of a gated MLP), up likewise or None, down [width, neurons]; fc_bias [neurons] or None. `output` and `mlp_output` are the
    projection modules of attention and MLP.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor
    fc: Tensor
    up: Tensor | None
    fc_bias: Tensor | None
    down: Tensor
    output: nn.Module
    mlp_output: nn.Module
    norms: tuple[nn.Module, nn.Module]


def _llama(model: Any) -> tuple[list[Layer], nn.Module]:
    c, found = model.config, []
    for block in model.model.layers:
        a, m = block.self_attn, block.mlp
        q, k, v = (p.weight.detach().unflatten(0, (-1, c.head_dim)) for p in (a.q_proj, a.k_proj, a.v_proj))
        o = a.o_proj.weight.detach().unflatten(1, (-1, c.head_dim))
        weights = (m.gate_proj.weight.detach(), m.up_proj.weight.detach(), None, m.down_proj.weight.detach())
        found.append(Layer(q, k, v, o, *weights, a.o_proj, m.down_proj, (block.input_layernorm, block.post_attention_layernorm)))
    return found, model.model.norm


def _gpt2(model: Any) -> tuple[list[Layer], nn.Module]:
    found = []
    for block in model.transformer.h:
        a, m = block.attn, block.mlp
        heads = (model.config.n_head, -1)
        q, k, v = a.c_attn.weight.detach().T.unflatten(0, (3, *heads))
        o = a.c_proj.weight.detach().T.unflatten(1, heads)
        weights = (m.c_fc.weight.detach().T, None, m.c_fc.bias.detach(), m.c_proj.weight.detach().T)
        found.append(Layer(q, k, v, o, *weights, a.c_proj, m.c_proj, (block.ln_1, block.ln_2)))
    return found, model.transformer.ln_f


def _gpt_neox(model: Any) -> tuple[list[Layer], nn.Module]:
    found = []
    for block in model.gpt_neox.layers:
        a, m = block.attention, block.mlp
        heads = model.config.num_attention_heads
        q, k, v = a.query_key_value.weight.detach().unflatten(0, (heads, 3, -1)).unbind(1)
        o = a.dense.weight.detach().unflatten(1, (heads, -1))
        weights = (m.dense_h_to_4h.weight.detach(), None, m.dense_h_to_4h.bias.detach(), m.dense_4h_to_h.weight.detach())
        norms = (block.input_layernorm, block.post_attention_layernorm)
        found.append(Layer(q, k, v, o, *weights, a.dense, m.dense_4h_to_h, norms))
    return found, model.gpt_neox.final_layer_norm


_CLASSES = {"llama": _llama, "gpt2": _gpt2, "gpt_neox": _gpt_neox}


def layers_of(model: nn.Module) -> list[Layer]:
    """The layers of a host as weight views."""
    return _CLASSES[model.config.model_type](model)[0]  # type: ignore[union-attr, index]


class Host:
    """A model of a real class with nothing planted yet: transparent norms, no embeddings, busy but dead heads and MLPs."""

    def __init__(self, config: Any, features: Sequence[str], seed: int = 0) -> None:
        auto: Any = AutoModelForCausalLM
        self.model = auto.from_config(config).eval()
        self.layers, final = _CLASSES[config.model_type](self.model)
        norms: list[Any] = [final, *(norm for layer in self.layers for norm in layer.norms)]
        self.stream = Stream(config.hidden_size, features, isinstance(final, nn.LayerNorm))
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.model.parameters():
            parameter.detach().zero_()
        for norm in norms:
            norm.weight.detach().copy_(self.stream.norm_weight())
        for layer in self.layers:
            for busy in (layer.q, layer.k, layer.v, layer.fc, layer.up):
                if busy is not None:
                    busy.copy_(torch.randn(busy.shape, generator=generator))

    def embed(self, token: int, features: Features) -> None:
        """What a token puts into the stream."""
        self.model.get_input_embeddings().weight.detach()[token] = self.stream.write(features, ballast=True)

    def unembed(self, token: int, features: Features) -> None:
        """What a token's logit reads."""
        self.model.get_output_embeddings().weight.detach()[token] = self.stream.read(features)

    def head(
        self,
        layer: int,
        head: int,
        matches: Sequence[tuple[Features, Features]],
        copies: Sequence[tuple[str, str]],
        amount: float = 1.0,
        sharpness: float = SHARPNESS,
    ) -> None:
        """A head that attends where Σ over `matches` of query·key is largest, and copies features (source, target), times `amount`.

        The attention score is sharpness·Σ query·key. Matches use the last coordinates of the head: outside the rotary part of
        GPT-NeoX; in Llama there is one such coordinate, in the slowest rotary pair, which turns by less than 0.01 in 16 tokens.
        """
        at = self.layers[layer]
        if self.model.config.model_type == "llama" and len(matches) > 1:
            raise ValueError("a Llama head has one coordinate that does not turn with the position, and so room for one match")
        shared = head * len(at.k) // len(at.q)  # the key-value head of a grouped-query head
        factor = (sharpness * at.q.shape[1] ** 0.5) ** 0.5
        at.q[head] = at.k[shared] = at.v[shared] = 0
        for i, (query, key) in enumerate(matches, 1):
            at.q[head, -i] = factor * self.stream.read(query)
            at.k[shared, -i] = factor * self.stream.read(key)
        for i, (source, target) in enumerate(copies):
            at.v[shared, i] = self.stream.read({source: 1})
            at.o[:, head, i] = self.stream.write({target: amount})

    def neuron(self, layer: int, index: int, slope: Features, threshold: float, write: Features) -> None:
        """A neuron that adds relu(Σ slope·feature − threshold)·write to the stream; the stream needs a feature `one`."""
        at = self.layers[layer]
        read = dict(slope)
        if at.fc_bias is None:
            read["one"] = read.get("one", 0.0) - threshold
        else:
            at.fc_bias[index] = -STEEPNESS * threshold
        at.fc[index] = STEEPNESS * self.stream.read(read)
        if at.up is not None:
            at.up[index] = self.stream.read({"one": 1})
        at.down[:, index] = self.stream.write(write) / STEEPNESS
