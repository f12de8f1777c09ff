"""Attribution patching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from ..model.batches import Batch
from ..model.gradients import Rules, gradient_scores
from .method import AttributionMethod, Job, Positions

FACTS: dict[str, Any] = {
    "levels": ("component", "neuron"),
    "options": {"positions": "all"},
    "clean_gradient": True,
    "passes": {"batch": (2, 1)},
}


@dataclass(frozen=True)
class Atp(AttributionMethod):
    """Node attribution patching: Σ over positions and dimensions of (a(corrupt) − a(clean))·∂m/∂a, gradients at the clean input.

    It is the first-order estimate of m(unit patched with its corrupt value) − m(clean), and equals the signed sum of
    the unit's outgoing EAP edges. `positions`: all (summed), last (the last prompt token), answer (those whose logits
    are scored), or each: units are then named by position, `L0H1@-1`.
    """

    positions: Positions = "all"
    name: ClassVar[str] = "atp"
    clean_gradient: ClassVar[bool] = FACTS["clean_gradient"]
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]

    def rules(self, job: Job) -> Rules | None:
        """Hooks that change derivatives; none here."""
        return None

    def baseline(self, job: Job, batch: Batch) -> list[Tensor] | None:
        """The replacement values of units: those on the corrupt prompt."""
        return job.runner.activations(batch.corrupt, job.sites)

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """[batch, units]."""
        other = self.baseline(job, batch)
        return gradient_scores(job.runner, batch, job.metric, job.sites, other, job.pool(batch), self.rules(job))
