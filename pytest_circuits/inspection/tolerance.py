"""When two tensors are the same number computed in two ways: bounds that know the precision of the model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..errors import ModelError
from ..model.precision import wide

TF32 = 2.0**-10


def rounding(*tensors: Tensor) -> float:
    """The relative rounding error of the coarsest of these tensors."""
    found = max(torch.finfo(t.dtype).eps for t in tensors)
    if any(t.is_cuda and t.dtype == torch.float32 for t in tensors) and torch.backends.cuda.matmul.allow_tf32:
        return max(found, TF32)
    return found


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

    def same(self, found: Tensor, expected: Tensor, allowed: Tensor | float, what: Callable[[], str] | str) -> None:
        """Raise unless |found − expected| ≤ allowed everywhere; `what` says "a differs from b" in words."""
        text = what if isinstance(what, str) else what()
        if found.shape != expected.shape:
            raise self.fail(f"{text}: shapes {tuple(found.shape)} and {tuple(expected.shape)}")
        gap = (wide(found) - wide(expected)).abs()
        bound = torch.as_tensor(allowed, device=gap.device, dtype=gap.dtype).expand_as(gap)
        # an overflow to the same infinity on both sides is no disagreement
        wrong = ~(gap <= bound) & ~(found == expected)
        if bool(wrong.any()):
            worst = float(torch.where(wrong, gap, torch.zeros_like(gap)).max())
            limit = float(bound[wrong].max())
            raise self.fail(f"{text} by {worst:.3g} (rounding explains {limit:.3g})")

    def equal(self, found: Tensor, expected: Tensor, what: str) -> None:
        """The same tensor handed on: a few units in the last place, for casts on the way."""
        self.same(found, expected, 2 * rounding(found, expected) * wide(expected).abs(), what)
