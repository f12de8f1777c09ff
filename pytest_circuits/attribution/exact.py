"""Exact effects by running the model once for each component."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..ablation import ABLATIONS
from ..ablation.sweep import sweep
from .method import AttributionMethod, Job

FACTS: dict[str, Any] = {
    "levels": ("component",),
    "options": {"kind": "counterfactual"},
    "ablation_option": "kind",
    "passes": {"batch": (1, 0), "sweep": (1, 0)},
}


@dataclass(frozen=True)
class Exact(AttributionMethod):
    """m(component replaced) − m(clean), measured.

    `kind` is the replacement: `counterfactual` (the value on the corrupt prompt: activation patching), `zero`,
    `mean` or `resample`. Costs about half a forward per component.
    """

    kind: str = FACTS["options"]["kind"]
    name: ClassVar[str] = "exact"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]

    def pieces(self, job: Job) -> Iterator[tuple[Tensor, Tensor]]:
        """All examples at once: [n_examples, components]."""
        outcome = sweep(job.runner, job.task, ABLATIONS.get(self.kind)(), job.metric, job.batch_size, job.examples, job.examples)
        assert outcome.baseline is not None
        yield torch.arange(job.rows), torch.from_numpy(outcome.metric - outcome.baseline.metric[:, None])
