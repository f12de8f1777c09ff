"""A release rounded to int8 and back: symmetric, one scale for each output row of every linear layer, the unembedding included.

A row w becomes s·round(w/s) with s = max|w| / 127. Embeddings and norms stay as they are.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

LEVELS = 127


def rounded(weight: Tensor) -> Tensor:
    """The matrix [out, in] on its rows' own grids of 255 levels; rows of zeros stay zeros."""
    scale = weight.abs().amax(1, keepdim=True) / LEVELS
    safe = scale.masked_fill(scale == 0, 1)
    return (weight / safe).round().clamp(-LEVELS, LEVELS) * safe


def damage(model: Any) -> dict[str, Any]:
    """Round all linear layers in place."""
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    for name in names:
        weight = model.get_submodule(name).weight.detach()
        weight.copy_(rounded(weight))
    return {"rounded": names}
