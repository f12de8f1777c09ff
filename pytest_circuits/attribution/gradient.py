"""Gradient times activation: attribution without a counterfactual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from ..model.batches import Batch
from .atp import Atp
from .method import Job

FACTS: dict[str, Any] = {
    "levels": ("component", "neuron"),
    "options": {"positions": "all"},
    "clean_gradient": True,
    "passes": {"batch": (1, 1)},
}


@dataclass(frozen=True)
class Gradient(Atp):
    """Attribution patching to a zero baseline: Σ (0 − a(clean))·∂m/∂a, the first-order effect of zero ablation.

    Its absolute value is |gradient × activation|; the sign is that of the effect of removing the unit, as for all methods here.
    """

    name: ClassVar[str] = "gradient"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]
    clean_gradient: ClassVar[bool] = FACTS["clean_gradient"]

    def baseline(self, job: Job, batch: Batch) -> list[Tensor] | None:
        """Zero."""
        return None
