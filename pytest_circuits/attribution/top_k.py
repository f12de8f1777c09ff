"""The units with the largest absolute scores."""

from __future__ import annotations

import torch
from torch import Tensor


def strongest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Values and columns [rows, k] of the k largest absolute scores of each row of [rows, units], strongest first.

    Ties are in column order, as in `Attribution.circuits`. NaN counts as infinite.
    """
    size = scores.abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    least = size.topk(k, 1).values[:, -1:]
    above, level = size > least, size == least
    room = k - above.sum(1, keepdim=True)
    columns = (above | (level & (level.cumsum(1) <= room))).nonzero()[:, 1].view(-1, k)
    order = size.gather(1, columns).argsort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order)
    return scores.gather(1, columns), columns
