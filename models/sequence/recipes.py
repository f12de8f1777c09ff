"""The two families: what is trained, how long, and on which lengths it is tested."""

from __future__ import annotations

from dataclasses import dataclass

SEEDS = tuple(range(10))
TRAINED = (3, 4, 5, 6, 7)  # lengths seen in training, one a batch
FURTHER = (8, 9, 10, 11, 12, 13, 14)  # out of distribution
PUBLISHED = (8, 9, 10, 11)  # those of the paper, taken together
USABLE = (0.20, 0.75)  # accuracy between which ablations can be told apart: above the floor, below the ceiling


@dataclass(frozen=True)
class Recipe:
    """Numbers of a training run. `task`: the built-in task; `floor`: the learning rate's last share of its peak."""

    name: str
    task: str
    steps: int
    batch: int = 64
    rate: float = 2e-3
    warm_up: int = 100
    floor: float = 0.02
    clip: float = 1.0
    dtype: str = "bfloat16"


RECIPES = {
    "reverse": Recipe("reverse", "reversal", 1000),
    "sort": Recipe("sort", "sorting", 1500),
}
