"""Batches of examples of one length. Batches are never padded, so a score cannot depend on the length of another example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .encoded_task import EncodedTask
from .metrics import Targets


@dataclass(frozen=True)
class Batch:
    """Examples with equal token length, answer position and number of answer tokens.

    rows: the positions of the examples in the selection; clean, corrupt: token ids [batch, T]. Logits from
    position `start` on predict the answer.
    """

    rows: Tensor
    clean: Tensor
    corrupt: Tensor
    start: int
    targets: Targets

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tail(self) -> int:
        """The number of last positions whose logits are needed."""
        return self.clean.shape[1] - self.start


def _targets(task: EncodedTask, chosen: Sequence[int], device: Any, vocabulary: int) -> Targets:
    answer = torch.tensor([task.answer[i] for i in chosen], device=device)
    most_foils = max((len(task.foils[i]) for i in chosen), default=0)
    longest = max((len(f) for i in chosen for f in task.foils[i]), default=0)
    width = min(longest, answer.shape[1])
    foils = torch.full((len(chosen), most_foils, width), -1, dtype=torch.long)
    for row, i in enumerate(chosen):
        for j, foil in enumerate(task.foils[i]):
            foils[row, j, : min(len(foil), width)] = torch.tensor(foil[:width])
    stop = None
    if task.stop is not None:
        stop = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        stop[list(task.stop_ids)] = True
    return Targets(answer, foils.to(device), task.scoring, stop)


def batches(task: EncodedTask, batch_size: int, device: Any, vocabulary: int, examples: Sequence[int] | None = None) -> Iterator[Batch]:
    """Batches of at most `batch_size` examples of one shape, in a stable order; `examples` are indices into the task (None: all)."""
    chosen = list(range(task.n)) if examples is None else [int(i) for i in examples]
    shapes: dict[tuple[int, int, int], list[int]] = {}
    for row, i in enumerate(chosen):
        shapes.setdefault((len(task.clean[i]), task.start[i], len(task.answer[i])), []).append(row)
    for (_, start, _), rows in sorted(shapes.items()):
        for begin in range(0, len(rows), batch_size):
            part = rows[begin : begin + batch_size]
            indices = [chosen[row] for row in part]
            yield Batch(
                torch.tensor(part),
                torch.tensor([task.clean[i] for i in indices], device=device),
                torch.tensor([task.corrupt[i] for i in indices], device=device),
                start,
                _targets(task, indices, device, vocabulary),
            )
