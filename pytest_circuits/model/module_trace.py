"""The inputs and outputs of every part of a model in one forward, from hooks on all modules that the anatomy names."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from .hooks import Hooks
from .layout import Anatomy, Block


@dataclass
class Trace:
    """Inputs and outputs by (part, layer); parts outside the layers have layer −1. `originals`: the tensors that were copied."""

    inputs: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    outputs: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    originals: dict[tuple[str, str, int], Tensor] = field(default_factory=dict)

    def changed(self, side: str, part: str, layer: int) -> bool:
        """Whether the model changed an input or output in place after it was recorded."""
        recorded = self.inputs if side == "inputs" else self.outputs
        return (part, layer) in recorded and not torch.equal(self.originals[side, part, layer], recorded[part, layer])


PARTS = ("module", "output", "mlp", "down", "attention_norm", "mlp_norm", "attention_post_norm", "mlp_post_norm")

_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


def parts_of(block: Block) -> dict[str, nn.Module]:
    """The modules of a layer by part, including q, k and v."""
    modules = {name: getattr(block, name) for name in PARTS} | {name: reader.module for name, reader in block.readers.items()}
    return {name: module for name, module in modules.items() if module is not None}


def unembedding_of(anatomy: Anatomy) -> nn.Module | None:
    """The last linear map to the vocabulary, where the model names it."""
    get: Any = getattr(anatomy.model, "get_output_embeddings", None)
    return get() if get is not None else None


def trace(anatomy: Anatomy, hooks: Hooks) -> Trace:
    """Hooks that fill the returned trace during the next forward."""
    recorded = Trace()
    outside = {"final_norm": anatomy.final_norm_module, "unembedding": unembedding_of(anatomy)}
    places = [(name, b.index, module) for b in anatomy.blocks for name, module in parts_of(b).items()]
    places += [(name, -1, module) for name, module in outside.items() if module is not None]
    for name, layer, module in places:
        where = f"{name.replace('_', ' ')}" + (f" of layer {layer}" if layer >= 0 else "")
        hooks.on_input(module, _recorder(recorded, "inputs", (name, layer)), where)
        hooks.on_output(module, _recorder(recorded, "outputs", (name, layer)), where)
    return recorded


def _recorder(recorded: Trace, side: str, key: tuple[str, int]) -> Any:
    tensors: dict[tuple[str, int], Tensor] = getattr(recorded, side)

    def edit(x: Tensor) -> None:
        tensors[key] = x.detach().clone()
        recorded.originals[side, *key] = x

    return edit


def random_prompt(model: nn.Module, length: int, seed: int) -> Tensor:
    """[1, length] valid token ids."""
    embedding: Any = model.get_input_embeddings()  # type: ignore[operator]
    r = random.Random(seed)
    return torch.tensor([[r.randrange(embedding.weight.shape[0]) for _ in range(length)]], device=embedding.weight.device)


@contextmanager
def without_user_hooks(model: nn.Module) -> Iterator[None]:
    """The model without its hooks, which are restored in their places on every path out."""
    tables = [(module, name, module.__dict__[name]) for module in model.modules() for name in _HOOKS if module.__dict__.get(name)]
    try:
        for module, name, hooks in tables:
            module.__dict__[name] = type(hooks)()
        yield
    finally:
        for module, name, hooks in tables:
            module.__dict__[name] = hooks
