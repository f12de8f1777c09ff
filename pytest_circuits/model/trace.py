"""What flows through every part of a model in one forward, with hooks on all modules that the anatomy names."""

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
    """Inputs and outputs by (part, layer); the parts outside of the layers have layer −1."""

    inputs: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    outputs: dict[tuple[str, int], Tensor] = field(default_factory=dict)
    given: dict[tuple[str, str, int], Tensor] = field(default_factory=dict)

    def changed(self, side: str, part: str, layer: int) -> bool:
        """Whether the model changed an input or output in place after it was seen."""
        seen = self.inputs if side == "inputs" else self.outputs
        return (part, layer) in seen and not torch.equal(self.given[side, part, layer], seen[part, layer])


PARTS = ("module", "output", "mlp", "down", "attention_norm", "mlp_norm", "attention_post_norm", "mlp_post_norm")

_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


def parts_of(block: Block) -> dict[str, nn.Module]:
    """The modules of a layer by what they are; q, k and v included."""
    found = {name: getattr(block, name) for name in PARTS} | {name: reader.module for name, reader in block.readers.items()}
    return {name: module for name, module in found.items() if module is not None}


def unembedding_of(anatomy: Anatomy) -> nn.Module | None:
    """The last linear map to the vocabulary, where the model says which it is."""
    get: Any = getattr(anatomy.model, "get_output_embeddings", None)
    return get() if get is not None else None


def trace(anatomy: Anatomy, taps: Hooks) -> Trace:
    """Hooks that fill the returned trace during the next forward."""
    seen = Trace()
    outside = {"final_norm": anatomy.final_norm_module, "unembedding": unembedding_of(anatomy)}
    places = [(name, b.index, module) for b in anatomy.blocks for name, module in parts_of(b).items()]
    places += [(name, -1, module) for name, module in outside.items() if module is not None]
    for name, layer, module in places:
        where = f"{name.replace('_', ' ')}" + (f" of layer {layer}" if layer >= 0 else "")
        taps.on_input(module, _keep(seen, "inputs", (name, layer)), where)
        taps.on_output(module, _keep(seen, "outputs", (name, layer)), where)
    return seen


def _keep(seen: Trace, side: str, key: tuple[str, int]) -> Any:
    where: dict[tuple[str, int], Tensor] = getattr(seen, side)

    def edit(x: Tensor) -> None:
        where[key] = x.detach().clone()
        seen.given[side, *key] = x

    return edit


def random_prompt(model: nn.Module, length: int, seed: int) -> Tensor:
    """[1, length] valid token ids."""
    embedding: Any = model.get_input_embeddings()  # type: ignore[operator]
    r = random.Random(seed)
    return torch.tensor([[r.randrange(embedding.weight.shape[0]) for _ in range(length)]], device=embedding.weight.device)


@contextmanager
def without_user_hooks(model: nn.Module) -> Iterator[None]:
    """The model without the hooks that are on it; they come back, in their places, on every path out."""
    kept = [(module, name, module.__dict__[name]) for module in model.modules() for name in _HOOKS if module.__dict__.get(name)]
    try:
        for module, name, hooks in kept:
            module.__dict__[name] = type(hooks)()
        yield
    finally:
        for module, name, hooks in kept:
            module.__dict__[name] = hooks
