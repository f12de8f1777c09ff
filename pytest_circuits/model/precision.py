"""The precision that scores are accumulated in."""

from __future__ import annotations

import torch
from torch import Tensor


def upcast(x: Tensor) -> Tensor:
    """The tensor in float32, or in float64 where it already is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
