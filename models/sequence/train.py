"""The training loop: one length a batch, so that nothing is padded; loss at the answer's positions only."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from .recipes import TRAINED, Recipe
from .vocabulary import END, LARGEST, SEP, START

TARGETS: dict[str, Callable[[Tensor], Tensor]] = {
    "reverse": lambda numbers: numbers.flip(1),
    "sort": lambda numbers: numbers.sort(1).values,
}


def pace(step: int, recipe: Recipe) -> float:
    """Learning rate as a share of its peak: the lower one of a linear warm-up and a cosine that ends at the floor."""
    return min((step + 1) / recipe.warm_up, max(recipe.floor, 0.5 * (1 + math.cos(math.pi * step / recipe.steps))))


def rows(numbers: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """From numbers [n, length] to what the model reads [n, 2·length + 2] and what its last length + 1 logits shall predict."""

    def mark(token: int) -> Tensor:
        return numbers.new_full((len(numbers), 1), token)

    wanted = torch.cat([TARGETS[name](numbers), mark(END)], 1)
    return torch.cat([mark(START), numbers, mark(SEP), wanted[:, :-1]], 1), wanted


def batch(recipe: Recipe, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Fresh random numbers, all sequences of one random length."""
    length = TRAINED[int(torch.randint(len(TRAINED), (), generator=generator))]
    return rows(torch.randint(1, LARGEST + 1, (recipe.batch, length), generator=generator), recipe.name)


def train(model: Any, recipe: Recipe, seed: int, after: Callable[[int, float], None]) -> float:
    """Train in place; `after(step, loss)` is called after each step. Returns the seconds it took."""
    generator = torch.Generator().manual_seed(seed)
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    begun = time.perf_counter()
    model.train()
    for step in range(recipe.steps):
        optimizer.param_groups[0]["lr"] = recipe.rate * pace(step, recipe)
        ids, wanted = batch(recipe, generator)
        logits = model(input_ids=ids, use_cache=False, logits_to_keep=wanted.shape[1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        model.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, recipe.clip)
        optimizer.step()
        after(step + 1, loss.item())
    return time.perf_counter() - begun
