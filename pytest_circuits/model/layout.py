"""The anatomy of one opened model: its blocks, with the modules that hooks attach to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from ..core.units import Universe
from ..errors import ModelError, OptionError
from .architectures import Family
from .config_sizes import ModelSizes, config_sizes
from .norms import Norm, norm_of
from .projections import Reader, in_out, readers

# attention implementations of transformers that ignore a cap on the attention scores
_WITHOUT_SOFTCAP = ("sdpa",)


@dataclass(frozen=True)
class Block:
    """One decoder layer. `output` is the attention's output projection, `down` the MLP's; heads are slices of `output`'s input.

    stream after the layer = stream + scale · (post-norm of the attention's output) + scale · (post-norm of the MLP's output).
    """

    index: int
    module: nn.Module
    output: nn.Module
    mlp: nn.Module
    down: nn.Module | None
    activation: nn.Module | None
    readers: dict[str, Reader]
    attention_norm: nn.Module | None
    mlp_norm: nn.Module | None
    attention_post_norm: nn.Module | None
    mlp_post_norm: nn.Module | None
    gated: bool
    scale: float
    in_place: bool = False

    @property
    def mlp_output(self) -> nn.Module:
        """The module whose output is the MLP's own output, before any post-norm."""
        return self.mlp if self.down is None else self.down


@dataclass(frozen=True)
class Anatomy:
    """The parts of a model and their number. `probed`: located by structure, not by the architecture's name.

    `neurons` is 0 for mixtures of experts, which have no neuron level. `softcap` is the cap of the logits, or None.
    """

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
    softcap: float | None = None
    probed: bool = False

    @cached_property
    def universe(self) -> Universe:
        """The numbers of layers, heads and neurons, and which edges there are."""
        return Universe(len(self.blocks), self.heads, self.neurons, self.kv_heads, self.parallel)

    @cached_property
    def norms(self) -> dict[int, Norm]:
        """The formula of every norm of the residual stream, by `id` of its module, each checked against the module."""
        norms: dict[int, Norm] = {}
        for block in self.blocks:
            for name in ("attention_norm", "mlp_norm", "attention_post_norm", "mlp_post_norm"):
                module = getattr(block, name)
                if module is not None and id(module) not in norms:
                    norms[id(module)] = norm_of(module, f"the {name.replace('_', ' ')} of layer {block.index}")
        norms[id(self.final_norm_module)] = norm_of(self.final_norm_module, "the final norm")
        return norms

    def require_neurons(self, what: str) -> None:
        """Raise `OptionError` for `what` where MLPs are mixtures of experts."""
        if not self.neurons:
            raise OptionError(
                f"{what} cannot be measured on a {self.architecture} model: its MLPs are mixtures of experts, where every token "
                "has its own experts and no single down projection has the neurons as inputs; use level: component "
                "with eap, atp, eap_ig, ig_activations, gradient or exact"
            )


def _find(root: nn.Module, path: str, where: str) -> nn.Module:
    module: Any = root
    for part in path.split("."):
        module = getattr(module, part, None)
        if module is None:
            raise ModelError(f"{where} has no {path!r} ({part!r} is missing): this is not the architecture that its config names")
    if not isinstance(module, nn.Module):
        raise ModelError(f"{where}: {path!r} is a {type(module).__name__}, not a module")
    return module


def assemble(model: nn.Module, family: Family, probed: bool = False) -> Anatomy:
    """The anatomy of a model by the paths of a family. Raises `ModelError` for a part that is missing or has the wrong shape."""
    sizes = config_sizes(model.config)
    where = f"a {sizes.architecture} model"
    layers: Any = _find(model, family.layers, where)
    if len(layers) != sizes.layers:
        raise ModelError(f"the config names {sizes.layers} layers, but the model has {len(layers)}")
    softcap = getattr(sizes.config, family.final_softcap, None) if family.final_softcap else None
    _check_attention(model, sizes, family)
    inputs, width = in_out(_find(layers[0], family.output, "layer 0")).shape
    if inputs % sizes.heads:
        raise ModelError(f"the output projection has {inputs} inputs, which {sizes.heads} heads do not divide")
    scale = family.residual_scale
    scale = float(getattr(sizes.config, scale) if isinstance(scale, str) else scale)
    blocks = tuple(_block(layer, i, family, sizes, inputs // sizes.heads, scale) for i, layer in enumerate(layers))
    parallel = bool(getattr(sizes.config, family.parallel)) if isinstance(family.parallel, str) else family.parallel
    down = blocks[0].down
    return Anatomy(
        model=model,
        family=family,
        architecture=sizes.architecture,
        blocks=blocks,
        final_norm_module=_find(model, family.final_norm, where),
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=inputs // sizes.heads,
        width=width,
        neurons=0 if down is None else in_out(down).shape[0],
        parallel=parallel,
        softcap=None if softcap is None else float(softcap),
        probed=probed,
    )


def _check_attention(model: nn.Module, sizes: ModelSizes, family: Family) -> None:
    """Raise `ModelError` where the attention implementation ignores a soft cap that the model was trained with."""
    cap = getattr(sizes.config, family.attention_softcap, None) if family.attention_softcap else None
    implementation = getattr(sizes.config, "_attn_implementation", None)
    if cap is not None and implementation in _WITHOUT_SOFTCAP:
        raise ModelError(
            f"this {sizes.architecture} model caps its attention scores at {cap:g}, which attn_implementation={implementation!r} does not "
            "compute; load it with attn_implementation='eager' (or model.set_attn_implementation('eager'))"
        )


def _block(layer: nn.Module, index: int, family: Family, sizes: ModelSizes, head_dim: int, scale: float) -> Block:
    where = f"layer {index}"
    heads, kv_heads = sizes.heads, sizes.kv_heads
    projections = readers([_find(layer, path, where) for path in family.qkv], family.fused, heads, kv_heads, head_dim)
    for name, reader in projections.items():
        outputs = in_out(reader.module).shape[1]
        expected = (heads + 2 * kv_heads) * head_dim if family.fused else reader.columns.numel()
        if outputs != expected:
            raise ModelError(f"{where}: the {name} projection has {outputs} outputs, expected {expected}")

    def part(path: str | None) -> nn.Module | None:
        return None if path is None else _find(layer, path, where)

    return Block(
        index=index,
        module=layer,
        output=_find(layer, family.output, where),
        mlp=_find(layer, family.mlp, where),
        down=part(family.down),
        activation=part(family.activation),
        readers=projections,
        attention_norm=part(family.attention_norm),
        mlp_norm=part(family.mlp_norm),
        attention_post_norm=part(family.attention_post_norm),
        mlp_post_norm=part(family.mlp_post_norm),
        gated=family.gated,
        scale=scale,
        in_place=family.in_place,
    )
