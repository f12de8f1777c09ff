"""Attribution methods: their base class, and the loop over batches that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ..core.metric_names import COMPARISONS
from ..core.results import Attribution
from ..core.units import Span, Universe
from ..errors import MeasurementError, OptionError, suggestion
from ..model.batches import Batch, batches
from ..model.encoded_task import EncodedTask
from ..model.hooks import measuring
from ..model.intact_reference import with_intact
from ..model.positions import check_positions, pooled, span_of
from ..model.runner import Runner
from ..model.sites import Site, sites_of
from ..registry import with_options
from . import vanishing
from .top_k import strongest

Positions = Literal["all", "each", "last", "answer"]


@dataclass(frozen=True)
class Job:
    """One attribution: its inputs, and the derived columns and batches."""

    runner: Runner
    task: EncodedTask
    examples: Sequence[int] | None
    metric: str
    level: str
    batch_size: int | None
    sites: list[Site]
    universe: Universe
    positions: str = "all"

    @cached_property
    def span(self) -> Span:
        """Every position that some example of the task has."""
        return span_of(self.task)

    @property
    def columns(self) -> int:
        """The number of scores of an example."""
        return self.universe.size(self.level) * (len(self.span) if self.positions == "each" else 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Unit names, in the order of the columns."""
        names = self.universe.names(self.level)
        return self.span.names(names) if self.positions == "each" else names

    def pool(self, batch: Batch) -> Callable[[Tensor], Tensor]:
        """Sums [batch, T, units, width] to [batch, columns]: over width, and over positions unless each is a unit."""
        return lambda x: pooled(x, self.positions, batch.start, self.span)

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


class AttributionMethod:
    """Base of attribution methods: `scores(job, batch)` gives [batch, units].

    Options of a method are the dataclass fields of its subclass.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[str, ...]] = ("component",)
    clean_gradient: ClassVar[bool] = False  # whether scores are derivatives at the clean input

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """Signed scores of one batch; [batch, units]."""
        raise NotImplementedError

    def shrink(self) -> int:
        """The divisor of the default batch, for methods that run several copies of a prompt at once."""
        return 1

    def blocks(self, job: Job) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Numbers of the examples that were measured together; by default each by itself."""
        return np.arange(job.rows)

    def pieces(self, job: Job) -> Iterator[tuple[Tensor, Tensor]]:
        """Row numbers and their scores [rows, columns], a batch at a time."""
        for batch in job.batches(self.shrink()):
            yield batch.rows, self.scores(job, with_intact(job.runner, batch, job.metric)).detach()

    def run(self, job: Job) -> Tensor:
        """Scores of all examples in their order; [n_examples, columns], on the CPU."""
        out = torch.zeros(job.rows, job.columns, dtype=torch.float32)
        for rows, scores in self.pieces(job):
            out[rows] = scores.to("cpu", torch.float32)
        return out

    def top(self, job: Job, k: int) -> tuple[Tensor, Tensor]:
        """The k strongest scores of each example and their columns, [n_examples, k] each; the others exist for one batch at a time."""
        values, columns = torch.zeros(job.rows, k, dtype=torch.float32), torch.zeros(job.rows, k, dtype=torch.int32)
        for rows, scores in self.pieces(job):
            best, where = strongest(scores.float(), k)
            values[rows], columns[rows] = best.cpu(), where.to("cpu", torch.int32)
        return values, columns

    def mean(self, job: Job) -> Tensor:
        """The signed mean over all examples, accumulated by batch; [1, columns]."""
        total = torch.zeros(job.columns, dtype=torch.float64)
        for _, scores in self.pieces(job):
            total += scores.to("cpu", torch.float64).sum(0)
        return (total / job.rows).to(torch.float32)[None]


@dataclass(frozen=True)
class AttributeOptions:
    """The arguments of `attribute`."""

    metric: str = "logit_diff"
    level: str = "component"
    batch_size: int | None = None
    examples: Sequence[int] | None = None
    reduce: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    top: int | None = None


def attribute(runner: Runner, task: EncodedTask, method_class: type[AttributionMethod], call: AttributeOptions) -> Attribution:
    """Run a method over a task. Raises `OptionError` for a level, metric or option that it does not have, and
    `MeasurementError` when a score is not finite.
    """
    if call.level not in method_class.levels:
        raise OptionError(f"{method_class.name} does not work at level {call.level!r}; {suggestion(call.level, method_class.levels)}")
    if call.metric in COMPARISONS and method_class.clean_gradient:
        raise OptionError(vanishing(method_class.name, call.metric))
    _check_reduction(call)
    options = dict(call.options)
    where = options.pop("site", "mlp_activation")
    method = with_options(method_class, options)
    positions = getattr(method, "positions", "all")
    check_positions(positions)
    sites, universe = sites_of(runner.anatomy, call.level, where)
    job = Job(runner, task, call.examples, call.metric, call.level, call.batch_size, sites, universe, positions)
    indices, before = None, (runner.prompts_forward, runner.prompts_backward)
    with measuring(runner.model):
        if call.reduce:
            scores = method.mean(job).numpy()
        elif call.top is None:
            scores = method.run(job).numpy()
        else:
            scores, indices = (t.numpy() for t in method.top(job, min(call.top, job.columns)))
    if not np.isfinite(scores).all():
        bad = int((~np.isfinite(scores)).any(1).sum())
        raise MeasurementError(
            f"{method_class.name} gave scores that are not finite on {bad} of {len(scores)} examples; "
            "try dtype: float32, and check the checkpoint for NaN weights"
        )
    blocks = np.zeros(1, np.int64) if call.reduce else method.blocks(job)
    details = {"site": where, **options, "passes": _passes(runner, before, job.rows)}
    return Attribution(scores, job.names, method_class.name, call.level, call.metric, blocks, details, indices)


def _passes(runner: Runner, before: tuple[float, float], rows: int) -> dict[str, float]:
    """Forward and backward passes of one prompt per example; a pass through some of the layers counts as a part of one."""
    forwards, backwards = runner.prompts_forward - before[0], runner.prompts_backward - before[1]
    return {"forwards": round(forwards / max(1, rows), 6), "backwards": round(backwards / max(1, rows), 6)}


def _check_reduction(call: AttributeOptions) -> None:
    if call.reduce not in (None, "mean"):
        raise OptionError(f"unknown reduction {call.reduce!r}; allowed: mean, or none")
    if call.top is not None and (isinstance(call.top, bool) or not isinstance(call.top, int) or call.top < 1):
        raise OptionError(f"top must be a whole number of at least 1, got {call.top!r}")
    if call.top is not None and call.reduce:
        raise OptionError("top keeps the strongest units of each example, but reduce='mean' has one row for all: give only one of them")
