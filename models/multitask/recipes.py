"""The multi-task models that ship, by name: architecture, size, training plan, and what is saved."""

from __future__ import annotations

from dataclasses import dataclass, field

from .architectures import Size
from .train import Plan


@dataclass(frozen=True)
class Recipe:
    """`dtype`: of the saved weights, to which they are rounded before accuracy is measured.

    `series`: steps that are saved besides the last.
    """

    architecture: str
    size: Size = field(default_factory=Size)
    plan: Plan = field(default_factory=Plan)
    dtype: str = "bfloat16"
    series: tuple[int, ...] = ()


RECIPES = {
    "llama": Recipe("llama", dtype="float32"),
    "llama-8layers": Recipe("llama", Size(layers=8, width=96), Plan(steps=1500)),
    "qwen3": Recipe("qwen3", plan=Plan(steps=1200)),
    "gemma2": Recipe("gemma2", plan=Plan(steps=1200)),
    "olmo2": Recipe("olmo2", Size(mlp=3), Plan(steps=1000), series=(25, 50, 100, 200, 300, 450, 650)),
}
