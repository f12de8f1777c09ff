"""Tolerances for comparing tensors that are computed in two ways, by the precision of the model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..errors import ModelError
from ..model.precision import upcast

TF32 = 2.0**-10


def rounding(*tensors: Tensor) -> float:
    """The relative rounding error of the coarsest of these tensors."""
    eps = max(torch.finfo(t.dtype).eps for t in tensors)
    if any(t.is_cuda and t.dtype == torch.float32 for t in tensors) and torch.backends.cuda.matmul.allow_tf32:
        return max(eps, TF32)
    return eps


def single(*tensors: Tensor) -> float:
    """The same, for computations that may go through float32 whatever the model's precision."""
    return max(rounding(*tensors), torch.finfo(torch.float32).eps)


class Examiner:
    """Compares parts of one model. A disagreement is a `ModelError` that names the part and the size of the difference."""

    def __init__(self, architecture: str, advice: str) -> None:
        self.start, self.advice = f"the self-check of this {architecture} model failed", advice

    def fail(self, what: str) -> ModelError:
        """The error to raise."""
        return ModelError(f"{self.start}: {what}. {self.advice}")

    def same(self, actual: Tensor, expected: Tensor, allowed: Tensor | float, what: Callable[[], str] | str) -> None:
        """Raise unless |actual − expected| ≤ allowed everywhere; `what` is a message of the form "a differs from b"."""
        text = what if isinstance(what, str) else what()
        if actual.shape != expected.shape:
            raise self.fail(f"{text}: shapes {tuple(actual.shape)} and {tuple(expected.shape)}")
        gap = (upcast(actual) - upcast(expected)).abs()
        bound = torch.as_tensor(allowed, device=gap.device, dtype=gap.dtype).expand_as(gap)
        # overflow to the same infinity on both sides counts as equal
        wrong = ~(gap <= bound) & ~(actual == expected)
        if bool(wrong.any()):
            worst = float(torch.where(wrong, gap, torch.zeros_like(gap)).max())
            limit = float(bound[wrong].max())
            raise self.fail(f"{text} by {worst:.3g} (rounding explains {limit:.3g})")

    def equal(self, actual: Tensor, expected: Tensor, what: str) -> None:
        """The same tensor passed on: a few units in the last place are allowed, for casts on the way."""
        self.same(actual, expected, 2 * rounding(actual, expected) * upcast(expected).abs(), what)
