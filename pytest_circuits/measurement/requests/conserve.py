"""Whether relevance adds up to the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core.sources import TaskSource
from ..cost_model import Batching, Passes
from ..example_selection import ALL, Part, Rows
from .base import ExampleRequest

if TYPE_CHECKING:
    from ...core.results import Conservation
    from ...core.units import Universe
    from ...tasks.base import Task


@dataclass(frozen=True)
class Conserve(ExampleRequest["Conservation"]):
    """Whether relevance adds up to the metric at every layer.

    `rules` is relp (its replacement model) or none (the model's own gradient).
    """

    task: TaskSource
    rules: str = "relp"
    metric: str = "logit_diff"
    part: Part = ALL

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`Conservation`."""
        from ...core.results import Conservation

        return (Conservation,)

    def describe_measurement(self, examples: str) -> str:
        """`conservation of relevance under the relp rules (logit_diff) on task 'ioi'`."""
        rules = "of the plain gradient" if self.rules == "none" else f"under the {self.rules} rules"
        return f"conservation of relevance {rules} ({self.metric}) on {examples}"

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> Conservation:
        """`Subject.conserve`."""
        conservation: Conservation = subject.conserve(
            task, rules=self.rules, metric=self.metric, examples=rows.examples, batch_size=batch_size
        )
        return conservation

    def cost(self, universe: Universe, n: int, reference: int, batch_size: int | None) -> Passes:
        """A forward and a backward."""
        batches = Batching.of(n, batch_size).batches
        return Passes(batches, batches)

    def synthetic(self, universe: Universe, n: int) -> Conservation:
        """Conserved everywhere."""
        import numpy as np

        from ...core.results import Conservation

        boundaries = ("embeddings", *(f"L{layer}" for layer in range(universe.layers)))
        return Conservation(boundaries, np.ones((n, len(boundaries))), np.ones(n))

    def join(self, results: Sequence[Conservation]) -> Conservation:
        """All rows."""
        import numpy as np

        biases = [part.biases for part in results if part.biases is not None]
        return replace(
            results[0],
            totals=np.concatenate([part.totals for part in results]),
            metric=np.concatenate([part.metric for part in results]),
            biases=np.concatenate(biases) if biases else None,
        )
