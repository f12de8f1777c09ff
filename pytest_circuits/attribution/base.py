"""What an attribution method is, and the loop over batches that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..engine.batches import Batch, batches
from ..engine.encode import EncodedTask
from ..engine.runner import Runner
from ..engine.sites import Site, sites_of
from ..engine.taps import measuring
from ..errors import MeasurementError, OptionError, suggestion
from ..registry import with_options
from ..results import Attribution
from ..units import Universe


@dataclass(frozen=True)
class Job:
    """One attribution: what it runs on and what for."""

    runner: Runner
    task: EncodedTask
    examples: Sequence[int] | None
    metric: str
    level: str
    batch_size: int | None
    sites: list[Site]
    universe: Universe

    @property
    def rows(self) -> int:
        """How many examples are attributed."""
        return self.task.n if self.examples is None else len(self.examples)

    def batches(self, shrink: int = 1) -> list[Batch]:
        """The batches, in order; `shrink` divides the default batch size for methods that stack several runs."""
        chosen = range(self.task.n) if self.examples is None else self.examples
        longest = max((len(self.task.clean[int(i)]) for i in chosen), default=1)
        size = self.runner.batch_size(self.batch_size, longest * shrink)
        return list(batches(self.task, size, self.runner.device, self.runner.vocabulary, self.examples))


class Method:
    """Base of attribution methods: `scores(job, batch)` gives [batch, units].

    Options of a method are the dataclass fields of its subclass.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[str, ...]] = ("component",)

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """Signed scores of one batch; [batch, units]."""
        raise NotImplementedError

    def shrink(self) -> int:
        """By how much the default batch is divided, for methods that run several copies of a prompt at once."""
        return 1

    def blocks(self, job: Job) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Which examples were measured together; by default each on its own."""
        return np.arange(job.rows)

    def run(self, job: Job) -> Tensor:
        """Scores of all examples in their order; [n_examples, n_units], on the CPU."""
        out = torch.zeros(job.rows, job.universe.size(job.level), dtype=torch.float32)
        for batch in job.batches(self.shrink()):
            out[batch.rows] = self.scores(job, batch).detach().to("cpu", torch.float32)
        return out

    def mean(self, job: Job) -> Tensor:
        """The signed mean over all examples, without keeping them; [1, n_units]."""
        total = torch.zeros(job.universe.size(job.level), dtype=torch.float64)
        for batch in job.batches(self.shrink()):
            total += self.scores(job, batch).detach().to("cpu", torch.float64).sum(0)
        return (total / job.rows).to(torch.float32)[None]


@dataclass(frozen=True)
class Call:
    """How `attribute` was called; kept together because methods see all of it."""

    metric: str = "logit_diff"
    level: str = "component"
    batch_size: int | None = None
    examples: Sequence[int] | None = None
    reduce: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def attribute(runner: Runner, task: EncodedTask, method_class: type[Method], call: Call) -> Attribution:
    """Run a method over a task. Raises `OptionError` for a level, metric or option that it does not have, and
    `MeasurementError` when a score is not finite.
    """
    if call.level not in method_class.levels:
        raise OptionError(f"{method_class.name} does not work at level {call.level!r}; {suggestion(call.level, method_class.levels)}")
    if call.reduce not in (None, "mean"):
        raise OptionError(f"unknown reduction {call.reduce!r}; allowed: mean, or none")
    options = dict(call.options)
    where = options.pop("site", "mlp_activation")
    method = with_options(method_class, options)
    sites, universe = sites_of(runner.anatomy, call.level, where)
    job = Job(runner, task, call.examples, call.metric, call.level, call.batch_size, sites, universe)
    with measuring(runner.model):
        scores = (method.mean(job) if call.reduce else method.run(job)).numpy()
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).any(1).sum())
        raise MeasurementError(
            f"{method_class.name} gave scores that are not finite on {bad} of {len(scores)} examples; "
            "try dtype: float32, and check the checkpoint for NaN weights"
        )
    blocks = np.zeros(1, np.int64) if call.reduce else method.blocks(job)
    return Attribution(scores, universe.names(call.level), method_class.name, call.level, call.metric, blocks, {"site": where, **options})
