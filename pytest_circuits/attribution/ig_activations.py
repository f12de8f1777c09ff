"""Integrated gradients over activations, one sublayer at a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ..model.batches import Batch
from ..model.hooks import Hooks
from ..model.metrics import metric_function
from ..model.precision import upcast
from ..model.sites import Site
from .eap_ig import alphas
from .method import AttributionMethod, Job, Positions

FACTS: dict[str, Any] = {
    "levels": ("component", "neuron"),
    "options": {"steps": 10, "rule": "midpoint", "unpaired": False, "positions": "all"},
    "passes": {"batch": (3, 0), "sublayer": (1, 1)},
}


@dataclass(frozen=True)
class IgActivations(AttributionMethod):
    """Σ (a(corrupt) − a(clean)) · mean over the path of ∂m/∂a, with one sublayer's output interpolated and the rest recomputed.

    Over the units of one sublayer the scores sum to m(sublayer patched) − m(clean), up to the error of the rule
    (midpoint O(1/s²), endpoint k/s as in Transluce's code O(1/s)). Runs `steps` passes for each sublayer.
    `unpaired` takes a zero baseline. `positions` as for `atp`.
    """

    steps: int = FACTS["options"]["steps"]
    rule: Literal["midpoint", "endpoint"] = "midpoint"
    unpaired: bool = False
    positions: Positions = "all"
    name: ClassVar[str] = "ig_activations"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]

    def shrink(self) -> int:
        """All steps run side by side."""
        return self.steps

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """[batch, units]."""
        runner = job.runner
        clean = runner.activations(batch.clean, job.sites)
        corrupt = [torch.zeros_like(a) for a in clean] if self.unpaired else runner.activations(batch.corrupt, job.sites)
        streams = runner.residuals(batch.clean, batch.tail)[0] if runner.can_skip else None
        pool = job.pool(batch)
        out = []
        for site, a, c in zip(job.sites, clean, corrupt, strict=True):
            slope = self._mean_gradient(job, batch, site, a, c, streams)
            out.append(pool((upcast(c) - upcast(a)) * slope).to(batch.clean.device))
        return torch.cat(out, 1)

    def _mean_gradient(self, job: Job, batch: Batch, site: Site, a: Tensor, c: Tensor, streams: list[Tensor] | None) -> Tensor:
        """∂m/∂a at one site, averaged over the path from clean to corrupt; [batch, T, units, width]."""
        path = alphas(self.steps, self.rule)
        points = torch.cat([a + alpha * (c - a) for alpha in path]).requires_grad_()
        put: Callable[[Tensor], Tensor] = lambda _: points  # noqa: E731
        prefix = (
            job.runner.starting_at(site.layer, streams[site.layer - 1].repeat(self.steps, 1, 1))
            if streams is not None and site.layer
            else nullcontext()
        )
        with torch.enable_grad(), prefix, Hooks() as hooks:
            site.hook(hooks, put)
            logits = job.runner.logits(batch.clean.repeat(self.steps, 1), batch.tail)
            value = metric_function(job.metric)(logits, batch.targets.repeat(self.steps)).sum()
            (slope,) = job.runner.gradients(value, [points])
        return slope.view(self.steps, *a.shape).mean(0)
