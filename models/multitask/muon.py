"""Muon (Jordan et al. 2024): momentum, made orthogonal by a Newton-Schulz iteration, for hidden weight matrices; float32 throughout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # quintic that drives singular values towards 1, from the paper


def orthogonalized(matrices: Tensor, steps: int = 5) -> Tensor:
    """Matrices [batch, rows ≤ columns] with singular values near 1 and the same singular vectors."""
    a, b, c = COEFFICIENTS
    x: Tensor = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum; matrices of one shape are made orthogonal together."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.01) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of every matrix that has a gradient."""
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[nn.Parameter]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    shapes[tuple(sorted(p.shape))].append(p)
            for same in shapes.values():
                moved = torch.stack([_wide(self._momentum(p, group["momentum"])) for p in same])
                for p, update in zip(same, orthogonalized(moved), strict=True):
                    turned = update if p.shape[0] <= p.shape[1] else update.mT
                    p.mul_(1 - group["lr"] * group["decay"])
                    p.add_(turned, alpha=-group["lr"] * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)

    def _momentum(self, p: nn.Parameter, momentum: float) -> Tensor:
        state = self.state[p]
        average = state.setdefault("average", torch.zeros_like(p))
        average.lerp_(p.grad, 1 - momentum)
        return p.grad.lerp(average, momentum)  # type: ignore[union-attr]


def _wide(matrix: Tensor) -> Tensor:
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.mT
