"""EAP with integrated gradients over the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..errors import OptionError
from ..model.batches import Batch
from ..model.hooks import Hooks
from .eap import Eap, clean_pass, edge_scores, residual_changes
from .edge_check import check_row_sums
from .method import Job

FACTS: dict[str, Any] = {
    "levels": ("component", "edge"),
    "options": {"steps": 5, "rule": "midpoint"},
    "nonnegative": ("component",),
    "sums_readers": True,
    "passes": {"batch": (4, 0), "step": (1, 1)},
}


def alphas(steps: int, rule: str) -> list[float]:
    """The points of a path from 0 to 1: `midpoint` (k − ½)/s, error O(1/s²), or `endpoint` k/s, error O(1/s); k = 1 … s."""
    if not isinstance(steps, int) or steps < 1:
        raise OptionError(f"steps must be a whole number of at least 1, got {steps!r}")
    if rule not in ("midpoint", "endpoint"):
        raise OptionError(f"unknown rule {rule!r}; allowed: midpoint, endpoint")
    return [(k - (0.5 if rule == "midpoint" else 0.0)) / steps for k in range(1, steps + 1)]


@dataclass(frozen=True)
class EapIg(Eap):
    """As `eap`, with the gradient averaged over inputs interpolated from the corrupt to the clean token embeddings.

    The change of each unit stays corrupt − clean of the real prompts. Source: EAP-IG (Hanna et al.), inputs variant.
    """

    steps: int = FACTS["options"]["steps"]
    rule: Literal["midpoint", "endpoint"] = "midpoint"
    name: ClassVar[str] = "eap_ig"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]
    clean_gradient: ClassVar[bool] = False

    def edges(self, job: Job, batch: Batch) -> list[tuple[slice, Tensor]]:
        """Signed edge scores, averaged over the path before any absolute value is taken."""
        runner = job.runner
        corrupt, clean = (runner.activations(ids, job.sites) for ids in (batch.corrupt, batch.clean))
        change = residual_changes(runner.anatomy, job.sites, corrupt, clean)
        with torch.no_grad():
            start, end = (_embedded(job, ids) for ids in (batch.corrupt, batch.clean))
        total: list[tuple[slice, Tensor]] = []
        for alpha in alphas(self.steps, self.rule):
            recorded = clean_pass(runner, batch, job.metric, job.sites, start + alpha * (end - start))
            scores = edge_scores(runner.anatomy, change, recorded)
            if recorded.slopes:
                check_row_sums(job.sites, corrupt, clean, recorded.slopes, scores)
            total = (
                [(a, e + f / self.steps) for (a, e), (_, f) in zip(total, scores, strict=True)]
                if total
                else [(a, f / self.steps) for a, f in scores]
            )
        return total


def _embedded(job: Job, ids: Tensor) -> Tensor:
    """The output of the embedding module, including scaling and a user's hooks."""
    outputs: list[Tensor] = []
    with Hooks() as hooks:
        hooks.on_output(job.runner.embedding, lambda x: outputs.append(x.detach().clone()), "token embedding")
        job.runner.logits(ids, 1)
    return outputs[0]
