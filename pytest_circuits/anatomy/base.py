"""The anatomy of one opened model: its blocks, with the modules that hooks attach to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from ..errors import ModelError, suggestion
from ..units import Universe
from .families import FAMILIES, Family
from .norms import Norm, norm_of
from .projections import Reader, in_out, readers


@dataclass(frozen=True)
class Block:
    """One decoder layer. `output` is the attention's output projection, `down` the MLP's; heads are slices of `output`'s input."""

    index: int
    module: nn.Module
    output: nn.Module
    mlp: nn.Module
    down: nn.Module
    activation: nn.Module
    readers: dict[str, Reader]
    attention_norm: nn.Module
    mlp_norm: nn.Module
    gated: bool


@dataclass(frozen=True)
class Anatomy:
    """Where the parts of a model are, and how many there are."""

    model: nn.Module
    family: Family
    architecture: str
    blocks: tuple[Block, ...]
    final_norm_module: nn.Module
    heads: int
    kv_heads: int
    head_dim: int
    width: int
    neurons: int
    parallel: bool

    @cached_property
    def universe(self) -> Universe:
        """The numbers of layers, heads and neurons, and which edges there are."""
        return Universe(len(self.blocks), self.heads, self.neurons, self.kv_heads, self.parallel)

    @cached_property
    def norms(self) -> dict[int, Norm]:
        """The formula of every norm, by `id` of its module, each checked against the module."""
        found: dict[int, Norm] = {}
        for block in self.blocks:
            for name, module in (("attention", block.attention_norm), ("MLP", block.mlp_norm)):
                found[id(module)] = norm_of(module, f"the {name} norm of layer {block.index}")
        found[id(self.final_norm_module)] = norm_of(self.final_norm_module, "the final norm")
        return found

    @property
    def final_norm(self) -> Norm:
        """The norm before the unembedding."""
        return self.norms[id(self.final_norm_module)]


def _at(root: nn.Module, path: str, where: str) -> nn.Module:
    found: Any = root
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise ModelError(f"{where} has no {path!r} ({part!r} is missing): this is not the architecture that its config names")
    if not isinstance(found, nn.Module):
        raise ModelError(f"{where}: {path!r} is a {type(found).__name__}, not a module")
    return found


def anatomy_of(model: nn.Module) -> Anatomy:
    """The anatomy of a Hugging Face causal LM. Raises `ModelError` naming what is missing or does not add up."""
    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if kind is None:
        raise ModelError(f"{type(model).__name__} has no config with a model_type: only Hugging Face causal LMs are supported")
    if kind not in FAMILIES:
        raise ModelError(
            f"the architecture {kind!r} is not known; {suggestion(kind, FAMILIES)}. "
            "Describe it with pytest_circuits.anatomy.register_family(model_type, Family(…))"
        )
    family = FAMILIES[kind]
    heads = int(config.num_attention_heads)
    kv_heads = int(getattr(config, "num_key_value_heads", None) or heads)
    layers: Any = _at(model, family.layers, f"a {kind} model")
    if len(layers) != config.num_hidden_layers:
        raise ModelError(f"the config names {config.num_hidden_layers} layers, but the model has {len(layers)}")
    first = _at(layers[0], family.output, "layer 0")
    inputs, width = in_out(first).shape
    if inputs % heads:
        raise ModelError(f"the output projection has {inputs} inputs, which {heads} heads do not divide")
    head_dim = inputs // heads
    blocks = tuple(_block(layer, i, family, heads, kv_heads, head_dim) for i, layer in enumerate(layers))
    parallel = bool(getattr(config, family.parallel)) if isinstance(family.parallel, str) else family.parallel
    return Anatomy(
        model,
        family,
        str(kind),
        blocks,
        _at(model, family.final_norm, f"a {kind} model"),
        heads,
        kv_heads,
        head_dim,
        width,
        in_out(blocks[0].down).shape[0],
        parallel,
    )


def _block(layer: nn.Module, index: int, family: Family, heads: int, kv_heads: int, head_dim: int) -> Block:
    where = f"layer {index}"
    projections = [_at(layer, path, where) for path in family.qkv]
    found = readers(projections, family.fused, heads, kv_heads, head_dim)
    for name, reader in found.items():
        outputs = in_out(reader.module).shape[1]
        expected = (heads + 2 * kv_heads) * head_dim if family.fused else reader.columns.numel()
        if outputs != expected:
            raise ModelError(f"{where}: the {name} projection has {outputs} outputs, expected {expected}")
    return Block(
        index,
        layer,
        _at(layer, family.output, where),
        _at(layer, family.mlp, where),
        _at(layer, family.down, where),
        _at(layer, family.activation, where),
        found,
        _at(layer, family.attention_norm, where),
        _at(layer, family.mlp_norm, where),
        family.gated,
    )
