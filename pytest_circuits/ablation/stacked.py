"""Several sets of replaced units stacked in one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from ..errors import OptionError, suggestion
from ..model.batches import Batch
from ..model.hooks import Hooks
from ..model.runner import Runner
from ..model.sites import Site
from .kind import Change


def edited_logits(
    runner: Runner,
    batch: Batch,
    sites: Sequence[Site],
    masks: Tensor,
    values: Sequence[Tensor | Change],
    layer: int = 0,
    residual: Tensor | None = None,
) -> Tensor:
    """Logits of a batch under each of several replacement masks; rows are sets × examples, sets outermost.

    masks: bool [sets, units], or [sets, T, units] to replace single positions, or [sets, batch, 1, units] to replace different units
    on each example. Layers below `layer` are skipped; `residual` [batch, T, d_model] is the stream before it.
    """
    sets = len(masks)

    def put(mask: Tensor, value: Tensor | Change) -> Callable[[Tensor], Tensor]:
        def edit(x: Tensor) -> Tensor:
            stacked = x.view(sets, len(batch), *x.shape[1:])
            new = value.to(x.dtype) if isinstance(value, Tensor) else value(stacked)
            return torch.where(mask[..., None], new, stacked).flatten(0, 1)

        return edit

    prefix = runner.starting_at(layer, residual.repeat(sets, 1, 1)) if residual is not None else nullcontext()
    with torch.no_grad(), prefix, Hooks() as hooks:
        for site, value in zip(sites, values, strict=True):
            mask = masks[..., site.columns]
            if bool(mask.any()):
                site.hook(hooks, put(mask if mask.dim() == 4 else mask[:, None] if mask.dim() == 3 else mask[:, None, None], value))
        return runner.logits(batch.clean.repeat(sets, 1), batch.tail)


def replaced_masks(sets: Sequence[Sequence[int]], mode: str, units: int) -> Tensor:
    """The units that each set replaces: its members (`remove`), or all others (`keep`); bool [sets, units]."""
    if mode not in ("remove", "keep"):
        raise OptionError(f"unknown mode {mode!r}; {suggestion(mode, ('remove', 'keep'))}")
    masks = torch.zeros(len(sets), units, dtype=torch.bool)
    for row, members in enumerate(sets):
        masks[row, list(members)] = True
    return masks if mode == "remove" else ~masks
