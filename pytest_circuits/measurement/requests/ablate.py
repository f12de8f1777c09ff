"""Outcomes under ablation of several sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

from ...core.sources import TaskSource
from ..cost_model import Batching, Passes
from ..example_selection import ALL, Part, Rows
from .ablation import AblationRequest, join_outcomes

if TYPE_CHECKING:
    from ...core.results import Outcome
    from ...core.units import Universe
    from ...tasks.base import Task


@dataclass(frozen=True)
class Ablate(AblationRequest["Outcome"]):
    """Outcomes under ablation of several sets, arrays [n_sets, n_examples].

    `mode` is remove or keep; an empty set with mode remove is the intact model. `reference` says which
    examples a mean ablation takes its means from (`part` of the same task's prompts: clean or corrupt).
    """

    task: TaskSource
    sets: tuple[tuple[str, ...], ...]
    mode: str = "remove"
    kind: str = "zero"
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reference: Part | None = None
    options: str = field(default="{}")

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`Outcome`."""
        from ...core.results import Outcome

        return (Outcome,)

    def describe_measurement(self, examples: str) -> str:
        """`zero ablation, without each of 3 sets of units (component), on task 'ioi'`."""
        if self.sets == ((),) and self.mode == "remove":
            return f"the intact model on {examples}"
        verb = {"remove": "without", "keep": "with only"}.get(self.mode, self.mode)
        how_many = "one set" if len(self.sets) == 1 else f"each of {len(self.sets)} sets"
        return f"{self.kind} ablation, {verb} {how_many} of units ({self.level}), on {examples}"

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> Outcome:
        """`Subject.ablate_many`."""
        sets = [list(units) for units in self.sets]
        outcome: Outcome = subject.ablate_many(task, sets, mode=self.mode, level=self.level, **self.call_options(rows, batch_size))
        return outcome

    def cost(self, universe: Universe, n: int, reference: int, batch_size: int | None) -> Passes:
        """The intact model once, and each other set, side by side while the batch has room."""
        batching = Batching.of(n, batch_size)
        values, compared = self.passes_for_values(reference, batching), batching.comparison(self.metric)
        if json.loads(self.options).get("each"):
            return Passes(batching.batches + compared + values)
        changed = len(self.sets) if self.mode == "keep" else sum(map(bool, self.sets))
        has_intact = len(self.sets) > changed
        passes = batching.batches * (has_intact + ceil(changed / batching.stacked))
        return Passes(passes + (0 if has_intact else compared) + values * bool(changed))

    def synthetic(self, universe: Universe, n: int) -> Outcome:
        """The intact model is right on each example; a changed one on a few."""
        import numpy as np

        from .. import synthetic

        rng = synthetic.generator(self)
        synthetic.outcome(np.ones(n, bool), rng, self.metric)  # as for a sweep, the intact model's numbers are drawn first
        if json.loads(self.options).get("each"):
            return synthetic.outcome(synthetic.some_correct(rng, 1, n), rng, self.metric)
        everything = universe.size(self.level)
        is_whole = [not units if self.mode == "remove" else len(units) == everything for units in self.sets]
        correct = np.where(np.asarray(is_whole, bool)[:, None], True, synthetic.some_correct(rng, len(self.sets), n))
        return synthetic.outcome(correct, rng, self.metric)

    def join(self, results: Sequence[Outcome]) -> Outcome:
        """All columns."""
        return join_outcomes(results, 1)
