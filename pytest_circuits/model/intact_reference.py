"""Log-probabilities of the intact model, for metrics that compare with it."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..core.metric_names import COMPARISONS
from .batches import Batch
from .runner import Runner


def with_intact(runner: Runner, batch: Batch, metric: str, logits: Tensor | None = None) -> Batch:
    """The batch with the intact model's log-probabilities at the answer, where `metric` needs them; else the batch itself.

    `logits` [batch, tail, vocabulary]: those of the intact model, where known; without them this costs a forward.
    """
    if metric not in COMPARISONS:
        return batch
    if logits is None:
        with torch.no_grad():
            logits = runner.logits(batch.clean, batch.tail)
    tokens = batch.targets.answer.shape[1]
    return replace(batch, targets=replace(batch.targets, intact=logits[:, :tokens].log_softmax(2)))
