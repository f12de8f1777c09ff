"""Gaussian noise on all weights."""

from __future__ import annotations

from ..errors import MutationError
from .surgery import Surgery

FACTS = {"of": "weights", "options": {"sigma": 0.1}}


def noise(surgery: Surgery, *, sigma: float = 0.1) -> None:
    """Add normal noise to all weight matrices of the layers, of `sigma` times each matrix's own root mean square."""
    if not sigma > 0:
        raise MutationError(f"sigma must be a number above 0, got {sigma}")
    for weight, _ in surgery.matrices():
        strength = sigma * float(weight.float().square().mean().sqrt())
        weight.add_((surgery.normal(weight.shape).to(weight.device) * strength).to(weight.dtype))
