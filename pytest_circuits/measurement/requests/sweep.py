"""The exact effect of every component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.sources import TaskSource
from ..cost_model import Batching, Passes
from ..example_selection import ALL, Part, Rows
from .ablation import AblationRequest, join_outcomes

if TYPE_CHECKING:
    from ...core.results import SweepOutcome
    from ...core.units import Universe
    from ...tasks.base import Task


@dataclass(frozen=True)
class Sweep(AblationRequest["SweepOutcome"]):
    """The exact effect of ablating each component by itself, arrays [n_examples, n_components]."""

    task: TaskSource
    kind: str = "zero"
    metric: str = "logit_diff"
    part: Part = ALL
    reference: Part | None = None
    options: str = field(default="{}")

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`SweepOutcome`, whose baseline is an `Outcome`."""
        from ...core.results import Outcome, SweepOutcome

        return SweepOutcome, Outcome

    def describe_measurement(self, examples: str) -> str:
        """`zero ablation of every component on task 'ioi'`."""
        return f"{self.kind} ablation of every component on {examples}"

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> SweepOutcome:
        """`Subject.sweep`."""
        outcome: SweepOutcome = subject.sweep(task, **self.call_options(rows, batch_size))
        return outcome

    def cost(self, universe: Universe, n: int, reference: int, batch_size: int | None) -> Passes:
        """The intact model and each component, side by side while the batch has room."""
        batching = Batching.of(n, batch_size)
        return Passes(batching.each_component(universe) + self.passes_for_values(reference, batching))

    def synthetic(self, universe: Universe, n: int) -> SweepOutcome:
        """The intact model is right on each example; a changed one on a few."""
        import numpy as np

        from ...core.results import SweepOutcome
        from .. import synthetic

        rng = synthetic.generator(self)
        intact = synthetic.outcome(np.ones(n, bool), rng, self.metric)
        changed = synthetic.outcome(synthetic.some_correct(rng, n, universe.components), rng, self.metric)
        return SweepOutcome(changed.correct, changed.metric, changed.log_prob, intact, universe.component_names)

    def join(self, results: Sequence[SweepOutcome]) -> SweepOutcome:
        """All rows."""
        return join_outcomes(results, 0)
