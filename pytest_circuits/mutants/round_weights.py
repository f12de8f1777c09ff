"""Weights are rounded to few bits and back."""

from __future__ import annotations

from ..errors import MutationError
from .surgery import Surgery

FACTS = {"of": "weights", "options": {"bits": 8}}


def round_weights(surgery: Surgery, *, bits: int = 8) -> None:
    """Round all weight matrices of the layers to 2^(bits−1)−1 levels each side of zero, with a scale for each output, and back.

    A row w becomes s·round(w/s) with s = max|w| / levels. Embeddings, norms and biases stay.
    """
    if not 2 <= bits <= 16:
        raise MutationError(f"bits must be a whole number from 2 to 16, got {bits}")
    levels = 2 ** (bits - 1) - 1
    for weight, inputs in surgery.matrices():
        scale = weight.float().abs().amax(inputs, keepdim=True) / levels
        safe = scale.masked_fill(scale == 0, 1)
        weight.copy_(((weight.float() / safe).round().clamp(-levels, levels) * safe).to(weight.dtype))
