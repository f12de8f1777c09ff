"""Normalisation layers as formulas: value, adjoint of the derivative, and the form with a frozen scale that RelP uses.

`y = w · (x − c·mean x) · r + b` with r the reciprocal root of mean (x − c·mean x)² + ε; c is 1 for LayerNorm
and 0 for RMSNorm. Whether a module multiplies with w or 1 + w is determined by trial: the formula is
compared with the module before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import ModelError
from .precision import upcast


@dataclass(frozen=True)
class Norm:
    """A norm module with its formula. Weights are read when they are needed, since they may change."""

    module: nn.Module
    centred: bool
    eps: float
    offset: float

    @property
    def weight(self) -> Tensor:
        """The effective weight, in float32 or wider; [d_model]."""
        weight: Tensor = self.module.weight  # type: ignore[assignment]
        return upcast(weight.detach()) + self.offset

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(centred input, r), computed in float32 or wider."""
        x = upcast(x)
        if self.centred:
            x = x - x.mean(-1, keepdim=True)
        return x, torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)

    def value(self, x: Tensor) -> Tensor:
        """The module's output by the formula."""
        centred, r = self.parts(x)
        y = centred * r * self.weight
        bias: Tensor | None = getattr(self.module, "bias", None)
        return y if bias is None else y + upcast(bias.detach())

    def frozen_scale(self, x: Tensor) -> Tensor:
        """Same value, with r a constant: linear in x up to the bias (the RelP rule for norms)."""
        centred, r = self.parts(x)
        return centred * (r.detach() * self.weight)

    def derivative(self, x: Tensor, changes: Tensor) -> Tensor:
        """J v at x [batch, T, d]: small changes of the input [batch, changes, T, d] → of the output."""
        centred, r = self.parts(x)
        unit = (centred * r).unsqueeze(1)
        v = changes - changes.mean(-1, keepdim=True) if self.centred else changes
        return (v - unit * (unit * v).mean(-1, keepdim=True)) * (r.unsqueeze(1) * self.weight)

    def adjoint_of_readers(self, x: Tensor, gradients: list[Tensor], weights: list[Tensor]) -> Tensor:
        """Jᵀ Wᵀ g for many readers at once: gradients [heads, batch·T, width] of y·W, W [heads, d, width] → [readers, batch·T, d].

        The same as `adjoint` after a projection, with the norm's weight and centring folded into W, and r into g, so that there
        are few passes over the large result.
        """
        centred, r = self.parts(x)
        unit, r = (centred * r).flatten(0, -2), r.flatten(0, -2)
        out = unit.new_empty(sum(map(len, weights)), *unit.shape)
        start = 0
        for g, weight in zip(gradients, weights, strict=True):
            folded = weight * self.weight[:, None]
            if self.centred:
                folded -= folded.mean(1, keepdim=True)
            torch.bmm(g * r, folded.transpose(1, 2), out=out[start : start + len(weight)])
            start += len(weight)
        inner = torch.einsum("rnd,nd->rn", out, unit) / unit.shape[-1]
        return out.addcmul_(inner.unsqueeze(-1), unit, value=-1)

    def adjoint(self, x: Tensor, gradients: Tensor) -> Tensor:
        """Jᵀ g at x [..., d]: gradients with respect to the output [batch, readers, T, d] → with respect to the input."""
        centred, r = self.parts(x)
        unit = (centred * r).unsqueeze(1)
        g = gradients * self.weight
        inner = g - unit * (unit * g).mean(-1, keepdim=True)
        if self.centred:
            inner = inner - g.mean(-1, keepdim=True)
        return inner * r.unsqueeze(1)


def norm_of(module: nn.Module, where: str) -> Norm:
    """The formula of a norm module. Raises `ModelError` when no known formula reproduces what the module computes."""
    weight = getattr(module, "weight", None)
    eps = next((float(getattr(module, name)) for name in ("variance_epsilon", "eps", "epsilon") if hasattr(module, name)), None)
    if weight is None or eps is None:
        raise ModelError(f"{where} ({type(module).__name__}) has no weight or no epsilon, so it is not a known RMSNorm or LayerNorm")
    size = weight.numel()
    probe = torch.linspace(-1.3, 2.1, size, dtype=torch.float32, device=weight.device).roll(size // 3).to(weight.dtype)[None]
    with torch.no_grad():
        truth = upcast(module.forward(probe))  # without hooks
        for centred in (isinstance(module, nn.LayerNorm), not isinstance(module, nn.LayerNorm)):
            for offset in (0.0, 1.0):
                norm = Norm(module, centred, eps, offset)
                tolerance = 1e-4 if weight.dtype in (torch.float32, torch.float64) else 0.03
                if torch.allclose(norm.value(probe), truth, rtol=tolerance, atol=tolerance, equal_nan=True):
                    return norm
    raise ModelError(f"{where} ({type(module).__name__}) does not compute an RMSNorm or a LayerNorm, so gradients through it are unknown")
