"""Resample ablation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError
from ..model.batches import Batch
from .kind import Ablation, AblationContext, Replace

FACTS: dict[str, Any] = {"options": {"seed": 0}, "values": "donor"}


@dataclass(frozen=True)
class Resample(Ablation):
    """Units are replaced, position by position, with their values on another clean prompt of the same length, drawn by `seed`."""

    seed: int = 0
    name: ClassVar[str] = "resample"

    def prepare(self, context: AblationContext) -> Replace:
        """Activations of each example's donor."""
        task = context.task
        chosen = list(range(task.n)) if context.examples is None else [int(i) for i in context.examples]
        by_length: dict[int, list[int]] = {}
        for i in range(task.n):
            by_length.setdefault(len(task.clean[i]), []).append(i)
        donors = []
        for i in chosen:
            pool = by_length[len(task.clean[i])]
            if len(pool) < 2:
                raise OptionError(
                    f"resample ablation: example {i} is the only one with {len(task.clean[i])} tokens, so it has no donor; "
                    "add examples of that length, or use mean ablation"
                )
            # one generator per example, so that a donor does not depend on the other examples
            pick = int(np.random.default_rng([self.seed, i]).integers(len(pool) - 1))
            donors.append(pool[pick + (pick >= pool.index(i))])

        def values(batch: Batch) -> list[Tensor]:
            ids = torch.tensor([task.clean[donors[int(row)]] for row in batch.rows], device=context.runner.device)
            return context.runner.activations(ids, context.sites)

        return values
