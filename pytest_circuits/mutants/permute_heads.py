"""The heads of every layer are permuted with all of their weights: the same model under other names."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..errors import MutationError
from ..model.layout import Block
from ..model.projections import in_out
from .surgery import Surgery

_CLOSE = {torch.float64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 0.2, torch.float16: 0.05}
"""Largest change of a logit, as a share of the largest logit, that summing in another order may make."""

FACTS = {"of": "weights", "options": {}, "equivalent": True}


def permute_heads(surgery: Surgery) -> None:
    """Permute key-value heads with their groups of query heads, and query heads within each group: an equivalent mutant.

    No answer may change; a claim that changes depends on the names of heads. Checked on a few tokens: raises
    `MutationError` where the heads of an architecture differ in more than their projections (biases by head and the like).
    """
    anatomy = surgery.anatomy
    if anatomy.heads < 2:
        raise MutationError("a model with one head per layer has no heads to permute")
    before = surgery.logits()
    for block in anatomy.blocks:
        groups = surgery.derangement(anatomy.kv_heads) if anatomy.kv_heads > 1 else torch.zeros(1, dtype=torch.long)
        size = anatomy.heads // anatomy.kv_heads
        within = [surgery.derangement(size) if size > 1 else torch.zeros(1, dtype=torch.long) for _ in range(anatomy.kv_heads)]
        heads = torch.cat([group * size + order for group, order in zip(groups, within, strict=True)])
        _reorder(surgery, block, heads, groups)
    gap = float((surgery.logits() - before).abs().max() / before.abs().max().clamp_min(1))
    if gap > _CLOSE.get(next(surgery.model.parameters()).dtype, 1e-3):
        raise MutationError(
            f"heads of this {anatomy.architecture} model cannot be permuted: logits change by {gap:.2g} of the largest, so its "
            "heads differ in more than their projections"
        )


def _reorder(surgery: Surgery, block: Block, heads: Tensor, groups: Tensor) -> None:
    for name, order in (("q", heads), ("k", groups), ("v", groups)):
        reader = block.readers[name]
        old, new = reader.columns[order].flatten(), reader.columns.flatten()
        _columns(surgery, reader.module, old, new)
        norm = getattr(_attention(block), f"{name}_norm", None)
        if norm is not None and getattr(norm, "weight", None) is not None and norm.weight.numel() == reader.columns.numel():
            weight, flat = surgery.edit(norm.weight), torch.arange(reader.columns.numel()).view_as(reader.columns)
            weight.copy_(weight.clone()[flat[order].flatten().to(weight.device)])
    surgery.edit(block.output.weight)  # type: ignore[arg-type]
    weight = in_out(block.output)
    index = torch.arange(weight.shape[0], device=weight.device).view(len(heads), -1)[heads.to(weight.device)].flatten()
    weight.copy_(weight.clone()[index])


def _columns(surgery: Surgery, module: Any, old: Tensor, new: Tensor) -> None:
    """Copy outputs `old` of a projection to outputs `new`, bias included."""
    surgery.edit(module.weight)
    weight = in_out(module)
    weight[:, new.to(weight.device)] = weight.clone()[:, old.to(weight.device)]
    if getattr(module, "bias", None) is not None:
        bias = surgery.edit(module.bias)
        bias[new.to(bias.device)] = bias.clone()[old.to(bias.device)]


def _attention(block: Block) -> Any:
    """The parent module of the output projection."""
    for module in block.module.modules():
        if any(child is block.output for child in module.children()):
            return module
    return block.module
