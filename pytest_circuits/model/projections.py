"""Views of projection weights, whatever a module's storage layout."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


def in_out(module: nn.Module) -> Tensor:
    """The weight as [inputs, outputs]: `Conv1D` stores it so, `Linear` transposed."""
    weight: Tensor = module.weight  # type: ignore[assignment]
    return weight if isinstance(module, Conv1D) else weight.T


@dataclass(frozen=True)
class Reader:
    """The q, k or v of a layer: the projection module, and the columns of its output that belong to each head; [heads, head_dim]."""

    module: nn.Module
    columns: Tensor

    def weight(self) -> Tensor:
        """The weights of each head; [heads, d_model, head_dim]."""
        heads, width = self.columns.shape
        return in_out(self.module)[:, self.columns.flatten()].reshape(-1, heads, width).permute(1, 0, 2)


def readers(modules: list[nn.Module], fused: str | None, heads: int, kv_heads: int, head_dim: int) -> dict[str, Reader]:
    """q, k and v of a layer, whether they are separate modules or parts of a fused one."""
    counts = {"q": heads, "k": kv_heads, "v": kv_heads}
    if fused is None:
        return {
            name: Reader(module, torch.arange(n * head_dim).view(n, head_dim))
            for (name, n), module in zip(counts.items(), modules, strict=True)
        }
    if fused == "heads":
        grid = torch.arange(heads * 3 * head_dim).view(heads, 3, head_dim)
        return {name: Reader(modules[0], grid[:, i]) for i, name in enumerate(counts)}
    if fused == "groups":
        per = heads // kv_heads
        grid = torch.arange(kv_heads * (per + 2) * head_dim).view(kv_heads, per + 2, head_dim)
        parts = {"q": grid[:, :per].reshape(heads, head_dim), "k": grid[:, per], "v": grid[:, per + 1]}
        return {name: Reader(modules[0], columns) for name, columns in parts.items()}
    starts = {"q": 0, "k": heads * head_dim, "v": (heads + kv_heads) * head_dim}
    return {name: Reader(modules[0], starts[name] + torch.arange(n * head_dim).view(n, head_dim)) for name, n in counts.items()}
