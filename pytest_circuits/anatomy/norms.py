"""Normalisation layers as formulas: value, adjoint of the derivative, and the form with a frozen scale that RelP uses.

`y = w · (x − c·mean x) · r + b` with r the reciprocal root of mean (x − c·mean x)² + ε; c is 1 for LayerNorm
and 0 for RMSNorm. Which weight convention a module has (w, or 1 + w) is found by trying: the formula is
compared with the module before it is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import ModelError


@dataclass(frozen=True)
class Norm:
    """A norm module with its formula; `weight` [d_model] is the effective one, in float32 or wider."""

    module: nn.Module
    centred: bool
    eps: float
    weight: Tensor
    bias: Tensor | None

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(centred input, r), computed in float32 or wider."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        if self.centred:
            wide = wide - wide.mean(-1, keepdim=True)
        return wide, torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)

    def value(self, x: Tensor) -> Tensor:
        """The module's output by the formula."""
        wide, r = self.parts(x)
        y = wide * r * self.weight
        return y if self.bias is None else y + self.bias

    def frozen_scale(self, x: Tensor) -> Tensor:
        """Same value, with r a constant: linear in x up to the bias (the RelP rule for norms)."""
        wide, r = self.parts(x)
        return wide * (r.detach() * self.weight)

    def adjoint(self, x: Tensor, gradients: Tensor) -> Tensor:
        """Jᵀ g at x [..., d]: gradients with respect to the output [batch, readers, T, d] → with respect to the input."""
        wide, r = self.parts(x)
        unit = (wide * r).unsqueeze(1)
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
        raise ModelError(f"{where} ({type(module).__name__}) has no weight or no epsilon: it is no RMSNorm or LayerNorm that is known here")
    bias = getattr(module, "bias", None)
    wide = weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
    probe = torch.linspace(-1.3, 2.1, wide.numel(), dtype=torch.float32, device=wide.device).roll(wide.numel() // 3).to(weight.dtype)[None]
    with torch.no_grad():
        truth = module(probe).to(wide.dtype)
        for centred in (isinstance(module, nn.LayerNorm), not isinstance(module, nn.LayerNorm)):
            for offset in (0.0, 1.0):
                norm = Norm(module, centred, eps, wide + offset, None if bias is None else bias.detach().to(wide.dtype))
                tolerance = 1e-4 if weight.dtype in (torch.float32, torch.float64) else 0.03
                if torch.allclose(norm.value(probe), truth, rtol=tolerance, atol=tolerance):
                    return norm
    raise ModelError(
        f"{where} ({type(module).__name__}) does not compute an RMSNorm or a LayerNorm; gradients through it are not known here"
    )
