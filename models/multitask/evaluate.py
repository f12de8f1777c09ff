"""Accuracy of a model on a task, by the scoring that claims use."""

from __future__ import annotations

from typing import Any

import torch

from pytest_circuits.engine.batches import batches
from pytest_circuits.engine.encode import encode
from pytest_circuits.engine.metrics import correct
from pytest_circuits.tasks import Task


@torch.no_grad()
def accuracy(model: Any, tokenizer: Any, task: Task) -> float:
    """Share of the task's pairs that are answered correctly, including that a number ends."""
    model.eval()
    vocabulary = model.get_input_embeddings().weight.shape[0]
    right = total = 0
    for batch in batches(encode(task, tokenizer, vocabulary), 128, "cpu", vocabulary):
        logits = model(input_ids=batch.clean, use_cache=False).logits[:, -batch.tail :]
        right += int(correct(logits, batch.targets).sum())
        total += len(batch)
    return right / total
