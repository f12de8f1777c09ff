"""Weight-gradient magnitude."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError
from ..model.batches import Batch
from ..model.hooks import Hooks
from ..model.metrics import log_prob
from ..model.precision import upcast
from .method import AttributionMethod, Job

FACTS: dict[str, Any] = {
    "levels": ("component",),
    "options": {"normalisation": "sqrt_parameters", "gradient_batch": 1},
    "clean_gradient": True,
    "nonnegative": ("component",),
    "passes": {"batch": (1, 1)},
}


@dataclass(frozen=True)
class WeightGradient(AttributionMethod):
    """Frobenius norm of the loss gradient of a head's value weights (its rows of W_V) or of an MLP's output matrix.

    The loss is the cross-entropy of the answer, the mean over its tokens. `normalisation`: `sqrt_parameters` divides
    by the square root of the matrix's parameter count (the later version of the paper), `none` does not. `gradient_batch`
    examples of one length share one mean gradient (the paper: 64); its norm is the score of each of them. Heads that share
    a value head (grouped-query attention) have the same score. Scores are ≥ 0. Source: The Gradient-Causal Gap.
    """

    normalisation: Literal["sqrt_parameters", "none"] = "sqrt_parameters"
    gradient_batch: int = 1
    name: ClassVar[str] = "weight_gradient"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]
    clean_gradient: ClassVar[bool] = FACTS["clean_gradient"]

    def _check(self) -> None:
        if self.normalisation not in ("sqrt_parameters", "none"):
            raise OptionError(f"unknown normalisation {self.normalisation!r}; allowed: sqrt_parameters, none")
        if not isinstance(self.gradient_batch, int) or self.gradient_batch < 1:
            raise OptionError(f"gradient_batch must be a whole number of at least 1, got {self.gradient_batch!r}")

    def pieces(self, job: Job) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches that are multiples of the gradient batch."""
        self._check()
        return super().pieces(self._job(job))

    def blocks(self, job: Job) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Examples of one gradient batch belong together."""
        numbers = np.zeros(job.rows, np.int64)
        count = 0
        for batch in self._job(job).batches():
            for part in torch.split(batch.rows, self.gradient_batch):
                numbers[part.numpy()] = count
                count += 1
        return numbers

    def _job(self, job: Job) -> Job:
        """The compute batch as a multiple of the gradient batch, so that the result does not depend on it."""
        longest = max((len(ids) for ids in job.task.clean), default=1)
        size = job.runner.batch_size(job.batch_size, longest)
        whole = max(1, size // self.gradient_batch) * self.gradient_batch
        return replace(job, batch_size=whole)

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """[batch, components]."""
        anatomy = job.runner.anatomy
        anatomy.require_neurons("weight_gradient")
        inputs: dict[tuple[str, int], Tensor] = {}
        outputs: dict[tuple[str, int], Tensor] = {}
        with torch.enable_grad(), Hooks() as hooks:
            for block in anatomy.blocks:
                for kind, module in (("value", block.readers["v"].module), ("down", block.mlp_output)):
                    key = (kind, block.index)
                    hooks.on_input(module, _recorder(inputs, key), f"{kind} projection of layer {block.index}")
                    hooks.on_output(module, _gradient_recorder(outputs, key), f"{kind} projection of layer {block.index}")
            logits = job.runner.logits(batch.clean, batch.tail)
            loss = -log_prob(logits, batch.targets) / batch.targets.answer.shape[1]
            slopes = dict(zip(outputs, job.runner.gradients(loss.sum(), list(outputs.values())), strict=True))
        scores = torch.empty(len(batch), job.universe.components, device=batch.clean.device)
        step, group = anatomy.heads + 1, anatomy.heads // anatomy.kv_heads
        for block in anatomy.blocks:
            columns = block.readers["v"].columns.to(batch.clean.device)
            g = slopes[("value", block.index)][..., columns.flatten()]
            g = g.view(*g.shape[:2], *columns.shape)
            norms = self._norms(inputs[("value", block.index)].unsqueeze(2), g)
            scores[:, block.index * step : block.index * step + anatomy.heads] = norms.repeat_interleave(group, 1)
            down = self._norms(inputs[("down", block.index)].unsqueeze(2), slopes[("down", block.index)].unsqueeze(2))
            scores[:, block.index * step + anatomy.heads] = down[:, 0]
        return scores

    def _norms(self, x: Tensor, g: Tensor) -> Tensor:
        """‖mean over a gradient batch of Σ_t g_t x_tᵀ‖ for x [batch, T, 1, in], g [batch, T, matrices, out]; [batch, matrices].

        Computed directly for many tokens; for few, by Gram matrices over them: ‖Σ g_t x_tᵀ‖² = Σ_tu (g_t·g_u)(x_t·x_u).
        """
        wide_in, wide_out = x.shape[-1], g.shape[-1]
        parts = []
        for xs, gs in zip(torch.split(x, self.gradient_batch), torch.split(g, self.gradient_batch), strict=True):
            tokens, signals = xs.flatten(0, 1).transpose(0, 1).double(), gs.flatten(0, 1).transpose(0, 1).double()
            count = tokens.shape[1]
            if count * (wide_in + wide_out) > wide_in * wide_out:
                squares = (signals.transpose(1, 2) @ tokens).square().sum((1, 2))
            else:
                squares = ((tokens @ tokens.transpose(1, 2)) * (signals @ signals.transpose(1, 2))).sum((1, 2))
            norm = squares.clamp(min=0).sqrt() / len(xs)
            if self.normalisation == "sqrt_parameters":
                norm = norm / (x.shape[-1] * g.shape[-1]) ** 0.5
            parts.append(norm.expand(len(xs), -1))
        return torch.cat(parts).float()


def _recorder(tensors: dict[tuple[str, int], Tensor], key: tuple[str, int]) -> Callable[[Tensor], None]:
    return lambda x: tensors.__setitem__(key, upcast(x.detach()))


def _gradient_recorder(tensors: dict[tuple[str, int], Tensor], key: tuple[str, int]) -> Callable[[Tensor], Tensor]:
    def edit(y: Tensor) -> Tensor:
        tensors[key] = y if y.requires_grad else y.detach().requires_grad_()
        return tensors[key]

    return edit
