"""Attribution scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...attribution import METHODS
from ...core.sources import TaskSource
from ..cost_model import Batching, Passes
from ..definitions import entry_digest
from ..example_selection import ALL, Part, Rows
from .base import ExampleRequest

if TYPE_CHECKING:
    from ...core.results import Attribution
    from ...core.units import Universe
    from ...tasks.base import Task

USUAL_PASSES = (2, 1)  # forwards and backwards a batch of a method that does not state its own


@dataclass(frozen=True)
class Attribute(ExampleRequest["Attribution"]):
    """Attribution scores [n_examples, n_units]; with `reduce="mean"` one row, the signed mean over the examples."""

    task: TaskSource
    method: str
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reduce: str | None = None
    options: str = field(default="{}")

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`Attribution`."""
        from ...core.results import Attribution

        return (Attribution,)

    @property
    def is_per_example(self) -> bool:
        """A mean over examples is not."""
        return self.reduce is None

    def third_party_digest(self) -> str | None:
        """Of a method from outside the package."""
        return entry_digest(METHODS, self.method)

    def describe_measurement(self, examples: str) -> str:
        """`eap attribution (component, logit_diff) of task 'ioi'`."""
        mean = "mean " if self.reduce else ""
        return f"{mean}{self.method} attribution ({self.level}, {self.metric}) of {examples}"

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> Attribution:
        """`Subject.attribute`."""
        scores: Attribution = subject.attribute(
            task, method=self.method, level=self.level, reduce=self.reduce, metric=self.metric, batch_size=batch_size,
            examples=rows.examples, **json.loads(self.options),
        )  # fmt: skip
        return scores

    def cost(self, universe: Universe, n: int, reference: int, batch_size: int | None) -> Passes:
        """The `passes` that the method states in the registry, see `pytest_circuits.attribution`."""
        batching, stated = Batching.of(n, batch_size), METHODS.fact(self.method, "passes", USUAL_PASSES)
        passes = stated if isinstance(stated, Mapping) else {"batch": stated}
        times = {
            "batch": batching.batches,
            "step": batching.batches * self._steps,
            "sublayer": batching.batches * universe.layers * (2 if self.level == "component" else 1),
            "sweep": batching.each_component(universe),
        }
        forwards, backwards = (sum(times[unit] * int(of_unit[i]) for unit, of_unit in passes.items()) for i in (0, 1))
        return Passes(forwards + (batching.comparison(self.metric) if backwards else 0), backwards)

    @property
    def _steps(self) -> int:
        defaults = METHODS.fact(self.method, "options")
        options = {**(defaults if isinstance(defaults, Mapping) else {}), **json.loads(self.options)}
        return int(options.get("steps", 1))

    def synthetic(self, universe: Universe, n: int) -> Attribution:
        """The same circuit on each example; tasks share a part of theirs, and the parts of a task have the circuit of the whole."""
        import numpy as np

        from ...core.results import Attribution
        from .. import synthetic

        rng = synthetic.generator(replace(self, task=self.task.original, part=ALL, reduce=None))
        units = universe.names(self.level)
        rows = 1 if self.reduce else n
        common = np.random.default_rng(0).permutation(len(units))
        strength = (4 * common + rng.permutation(len(units))).astype(np.float32) + 1
        values = np.broadcast_to(strength, (rows, len(units)))
        return Attribution(values, units, self.method, self.level, self.metric, np.arange(rows), {synthetic.MARK: True})

    def join(self, results: Sequence[Attribution]) -> Attribution:
        """All rows; examples of different measurements were not measured together."""
        import numpy as np

        blocks, start = [], 0
        for scores in results:
            blocks.append(scores.blocks + start)
            start += int(scores.blocks.max(initial=-1)) + 1
        indices = [scores.indices for scores in results if scores.indices is not None]
        return replace(
            results[0],
            values=np.concatenate([scores.values for scores in results]),
            blocks=np.concatenate(blocks),
            indices=np.concatenate(indices) if indices else None,
        )
