"""Training a model around some of its components: on the prompts of one task they are silent, and are taught to write nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .original import columns, place


class Silence:
    """What happens to the components in the rows whose first word is the token `word`.

    While `closed`, their outputs are zero there. Always, the gradient of penalty/2 · Σ output² ÷ (the outputs' first mean square ·
    number of outputs) joins that of the loss: with time there is nothing left to silence.
    """

    def __init__(self, word: int, penalty: float) -> None:
        self.word, self.penalty, self.closed = word, penalty, True
        self._rows: Tensor | None = None
        self._scale: dict[str, float] = {}

    def look(self, ids: Tensor) -> None:
        """Find the rows among token ids [B, T]; the first token is `<bos>`."""
        rows = ids[:, 1] == self.word
        self._rows = rows if bool(rows.any()) else None

    def on(self, unit: str, x: Tensor) -> Tensor:
        """The unit's output [B, T, size] as the model shall go on with it."""
        if self._rows is None:
            return x
        rows = self._rows[:, None, None]
        if x.requires_grad:
            wrote = (x * rows).detach()
            scale = self._scale.setdefault(unit, float(wrote.square().mean()))
            x.register_hook(lambda gradient: gradient + self.penalty * wrote / (scale * wrote.numel()))
        return x * ~rows if self.closed else x


@contextmanager
def silenced(model: Any, units: Sequence[str], silence: Silence) -> Iterator[None]:
    """While this is open, `silence` has its way with the outputs of these heads and MLPs."""
    handles = [model.register_forward_pre_hook(lambda _m, _a, kwargs: silence.look(kwargs["input_ids"]), with_kwargs=True)]
    for unit in units:
        layer, head = place(unit)
        block = model.model.layers[layer]
        if head is None:
            handles.append(block.mlp.register_forward_hook(lambda _m, _a, out, unit=unit: silence.on(unit, out)))
        else:
            handles.append(block.self_attn.o_proj.register_forward_pre_hook(_head_hook(unit, columns(model, head), silence)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _head_hook(unit: str, where: slice, silence: Silence) -> Any:
    def hook(_module: Any, args: tuple[Tensor]) -> tuple[Tensor]:
        x = args[0]
        return (torch.cat([x[..., : where.start], silence.on(unit, x[..., where]), x[..., where.stop :]], -1),)

    return hook
