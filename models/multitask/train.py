"""The training loop: each step one batch of equal-length prompts from every task, loss on the answers only."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from .data import Stack
from .muon import Muon


@dataclass(frozen=True)
class Plan:
    """Numbers of a training run. A task whose running loss is under `mastered` takes part in a quarter of the steps."""

    steps: int = 1500
    batch: int = 32
    seed: int = 0
    adam: float = 3e-3
    muon: float = 0.02
    decay: float = 0.05
    warm_up: int = 50
    clip: float = 1.0
    mastered: float = 0.01

    def pace(self, step: int) -> float:
        """Learning rate as a share of its peak: linear warm-up, then a cosine to 2%."""
        return min(1.0, (step + 1) / self.warm_up) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / self.steps)))


class Optimizers:
    """Muon for hidden matrices, AdamW for embeddings (with decay) and for vectors (without)."""

    def __init__(self, model: Any, plan: Plan) -> None:
        ends = {id(model.get_input_embeddings().weight), id(model.get_output_embeddings().weight)}
        hidden = [p for p in model.parameters() if p.ndim == 2 and id(p) not in ends]
        outer = [p for p in model.parameters() if id(p) in ends]
        vectors = [p for p in model.parameters() if p.ndim < 2]
        groups = [{"params": outer, "weight_decay": plan.decay}, {"params": vectors, "weight_decay": 0.0}]
        self.peaks = [
            (torch.optim.AdamW(groups, lr=plan.adam, betas=(0.9, 0.98), fused=True), plan.adam),
            (Muon(hidden, lr=plan.muon), plan.muon),
        ]

    def step(self, pace: float) -> None:
        """One update at this share of the peak learning rates."""
        for optimizer, peak in self.peaks:
            for group in optimizer.param_groups:
                group["lr"] = peak * pace
            optimizer.step()


def _batch(stacks: list[Stack], size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    weights = torch.tensor([float(len(s.ids)) for s in stacks])
    chosen = stacks[int(torch.multinomial(weights, 1, generator=generator))]
    rows = torch.randint(len(chosen.ids), (size,), generator=generator)
    return chosen.ids[rows], chosen.wanted[rows]


def _losses(
    model: Any, tasks: dict[str, list[Stack]], plan: Plan, generator: torch.Generator, running: dict[str, float]
) -> Iterator[Tensor]:
    for name, stacks in tasks.items():
        if running[name] < plan.mastered and float(torch.rand((), generator=generator)) > 0.25:
            continue
        ids, wanted = _batch(stacks, plan.batch, generator)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=wanted.shape[1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        running[name] += 0.05 * (loss.item() - running[name])
        yield loss / len(tasks)


def train(model: Any, tasks: dict[str, list[Stack]], plan: Plan, after: Callable[[int, float, dict[str, float]], None]) -> float:
    """Train in place; `after(step, seconds, running loss by task)` is called after each step. Returns the seconds it took."""
    generator = torch.Generator().manual_seed(plan.seed)
    optimizers = Optimizers(model, plan)
    running = dict.fromkeys(tasks, 9.0)
    begun = time.perf_counter()
    for step in range(plan.steps):
        model.train()
        for loss in _losses(model, tasks, plan, generator, running):
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip)
        optimizers.step(plan.pace(step))
        model.zero_grad(set_to_none=True)
        after(step + 1, time.perf_counter() - begun, running)
    return time.perf_counter() - begun
