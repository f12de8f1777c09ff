"""Attribution patching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ..engine.batches import Batch
from ..engine.gradients import Rules, gradient_scores
from .base import Job, Method


@dataclass(frozen=True)
class Atp(Method):
    """Node attribution patching: Σ over positions and dimensions of (a(corrupt) − a(clean))·∂m/∂a, gradients at the clean input.

    It is the first-order estimate of m(unit patched with its corrupt value) − m(clean), and equals the signed sum of
    the unit's outgoing EAP edges.
    """

    name: ClassVar[str] = "atp"
    levels: ClassVar[tuple[str, ...]] = ("component", "neuron")

    def rules(self, job: Job) -> Rules | None:
        """Hooks that change derivatives; none here."""
        return None

    def baseline(self, job: Job, batch: Batch) -> list[Tensor] | None:
        """What units are replaced with: their values on the corrupt prompt."""
        return job.runner.activations(batch.corrupt, job.sites)

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """[batch, units]."""
        other = self.baseline(job, batch)
        return gradient_scores(job.runner, batch, job.metric, job.sites, other, job.universe.size(job.level), self.rules(job))
