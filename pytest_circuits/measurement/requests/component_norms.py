"""How large the contributions of components are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.sources import TaskSource
from ..cost_model import Batching, Passes
from ..example_selection import ALL, Part, Rows
from .base import ExampleRequest

if TYPE_CHECKING:
    from ...core.results import ComponentNorms
    from ...core.units import Universe
    from ...tasks.base import Task


@dataclass(frozen=True)
class MeasureNorms(ExampleRequest["ComponentNorms"]):
    """The size of each component's own contribution, float32 [n_components]: a mean over the examples."""

    task: TaskSource
    part: Part = ALL

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`ComponentNorms`."""
        from ...core.results import ComponentNorms

        return (ComponentNorms,)

    def describe_measurement(self, examples: str) -> str:
        """`the size of every component's contribution on task 'ioi'`."""
        return f"the size of every component's contribution on {examples}"

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> ComponentNorms:
        """`Subject.norms`."""
        norms: ComponentNorms = subject.norms(task, examples=rows.examples, batch_size=batch_size)
        return norms

    def cost(self, universe: Universe, n: int, reference: int, batch_size: int | None) -> Passes:
        """A forward."""
        return Passes(Batching.of(n, batch_size).batches)

    def synthetic(self, universe: Universe, n: int) -> ComponentNorms:
        """All alike."""
        import numpy as np

        from ...core.results import ComponentNorms

        return ComponentNorms(np.ones(universe.components, np.float32), universe.component_names)
