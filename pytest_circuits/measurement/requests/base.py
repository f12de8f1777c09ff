"""What a measurement request is. A request type is one file with its key, its cost, its execution and its synthetic result.

Requests are plain, hashable descriptions: equal requests are measured once, whichever claims ask for them. P, K and thresholds are
not part of a request: they are applied to stored scores. This module is imported when specs are collected, so numpy is imported inside
methods, not here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from ...core.sources import ModelSource, TaskSource
from ..cost_model import Passes
from ..definitions import class_digest
from ..example_selection import ALL, Part, Rows, count_examples, examples_of, index_digest
from .sessions import MeasuringSession, PlanningSession, Session

if TYPE_CHECKING:
    from ...core.results import Encoded
    from ...core.units import Universe
    from ...tasks.base import Task

R = TypeVar("R")
_DIGESTED = {"model", "task", "part", "reference"}  # fields that a key holds as fingerprints and digests


@dataclass(frozen=True)
class Inputs:
    """What a measurement depends on besides the request's own fields.

    `facts` go into the cache key. `rows` are the examples. `is_stored` is False where the facts do not identify the result across
    sessions, so that it is kept in memory only.
    """

    facts: Mapping[str, Any]
    rows: Rows = field(default=Rows(), compare=False)
    is_stored: bool = True


@dataclass(frozen=True)
class Request(ABC, Generic[R]):
    """A request about `model` whose result has type `R`."""

    model: ModelSource

    @abstractmethod
    def describe(self) -> str:
        """The request in words, for messages; never part of a key."""

    def without_names(self) -> Self:
        """The same request where a spec gives other names to the model and the task."""
        return replace(self, model=replace(self.model, name=""))


class UnmeasuredRequest(Request[R]):
    """A request that is answered without a model."""

    @abstractmethod
    def answer(self, session: Session) -> R:
        """The result."""

    def answer_plan(self, session: Session) -> R:
        """The result in a plan. Raises `Invalid` where the plan ends here."""
        return self.answer(session)


class MeasuredRequest(Request[R]):
    """A request whose result is measured once and stored. What a new type has to define: `describe`, `result_types`, `inputs`,
    `execute` and `plan`; a type about examples of a task is a subclass of `ExampleRequest`, which needs less.
    """

    @classmethod
    @abstractmethod
    def result_types(cls) -> tuple[type, ...]:
        """The dataclasses that its results are made of, which the store reads and writes."""

    @abstractmethod
    def inputs(self, session: MeasuringSession) -> Inputs:
        """What the result depends on besides the fields of the request."""

    @abstractmethod
    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> R:
        """Measure on an open model. `task` are the prompt pairs of `source`; `batch_size` None leaves the size to the model."""

    @abstractmethod
    def plan(self, session: PlanningSession) -> tuple[R, Passes]:
        """A synthetic result of the right shape, and what measuring would cost."""

    def key_fields(self) -> dict[str, Any]:
        """The fields that are part of the cache key as they are, and the request's type; sets keep their order."""
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _DIGESTED}
        if "options" in content:
            content["options"] = json.loads(content["options"])
        return {"kind": type(self).__name__, **content}

    def third_party_digest(self) -> str | None:
        """A digest of code from outside the package that the result depends on, such as a registered method; None without any."""
        return class_digest(type(self))

    def cost(self, universe: Universe, n: int, reference: int, batch_size: int | None) -> Passes:
        """Batched model calls on `n` examples, with `reference` examples behind a mean; a partial forward counts as one."""
        return Passes()

    def canonical(self) -> Self:
        """The request with the same result that is measured in its place."""
        return self

    @property
    def source(self) -> TaskSource | None:
        """The task that `execute` needs."""
        return None

    def pieces(self, session: Session) -> list[Self]:
        """Requests whose results, joined by `join`, are the result of this one; the request alone where it is measured in one go."""
        return [self]

    def join(self, results: Sequence[R]) -> R:
        """One result for the examples of all `pieces`, in order. Only called for several."""
        raise NotImplementedError(f"results of {type(self).__name__} cannot be joined")

    def finish(self, result: R, session: Session) -> R:
        """The result as a property sees it, from the result as it is stored."""
        return result


@dataclass(frozen=True)
class TaskRequest(MeasuredRequest[R]):
    """A measured request about a task."""

    task: TaskSource

    @property
    def source(self) -> TaskSource | None:
        """The task."""
        return self.task

    def without_names(self) -> Self:
        """The same request where a spec gives other names to the model and the task."""
        return replace(super().without_names(), task=replace(self.task, name=""))


class ExampleRequest(TaskRequest[R]):
    """A request about examples of a task: each subclass is a frozen dataclass with a field `part: Part = ALL`.

    A type defines `result_types`, `execute`, `synthetic`, `cost` and `describe_measurement`, and `join` if its result has an entry for
    each example. On a task that was extended, what was measured before is then read back and only the new examples are measured.
    """

    part: Part

    @abstractmethod
    def describe_measurement(self, examples: str) -> str:
        """The request in words, but for the model; `examples` says which examples."""

    @abstractmethod
    def synthetic(self, universe: Universe, n: int) -> R:
        """A made-up result of the right shape for `n` examples (see `synthetic`), for plans."""

    @property
    def reference_part(self) -> Part | None:
        """The examples that reference values come from; None for the measured examples."""
        return None

    @property
    def is_per_example(self) -> bool:
        """Whether an example's entry of the result does not depend on the other examples, so that results can be joined."""
        return type(self).join is not MeasuredRequest.join

    def describe(self) -> str:
        """The request in words, for messages; never part of a key."""
        return f"{self.describe_measurement(f'task {self.task.name!r}{self.part.describe()}')} on model {self.model.describe()}"

    def rows(self, encoded: Encoded) -> Rows:
        """The numbers of its examples. Raises `OptionError` for an unknown part."""
        import numpy as np

        examples = examples_of(self.part, encoded)
        if self.reference_part is None:
            return Rows(examples)
        reference = examples_of(self.reference_part, encoded)
        return Rows(examples, np.arange(encoded.n, dtype=np.int64) if reference is None else reference)

    def inputs(self, session: MeasuringSession) -> Inputs:
        """Model, tokenizer, task, precision, device, batch size, and the token ids and numbers of the examples."""
        identity = session.identity(self.model)
        facts: dict[str, Any] = {
            "model": identity.model,
            "dtype": session.dtype(self.model),
            "tokenizer": identity.tokenizer,
            "task": session.task(self.task).fingerprint,
        }
        encoded = session.encoded(self.model, self.task)
        rows = self.rows(encoded)
        facts |= {
            "device": session.device_type(self.model),
            "batch_size": session.batch_size,
            "encoding": encoded.digest,
            "examples": index_digest(rows.examples),
            "reference": index_digest(rows.reference),
        }
        return Inputs(facts, rows)

    def plan(self, session: PlanningSession) -> tuple[R, Passes]:
        """A synthetic result for as many examples as the task seems to have, and the cost."""
        universe, encoded = session.universe(self.model), session.encoded(self.model, self.task)
        n = count_examples(self.part, encoded)
        reference = n if self.reference_part is None else count_examples(self.reference_part, encoded)
        return self.synthetic(universe, n), self.cost(universe, n, reference, session.batch_size)

    def pieces(self, session: Session) -> list[Self]:
        """The request on the task as it was at first, and one for each extension that adds examples."""
        if not self.task.grown or self.part.since:
            return [self]
        pieces = self.pieces_after(len(session.task(self.task.original)))
        return [piece for piece in pieces if not piece.part.since or count_examples(piece.part, session.encoded(piece.model, piece.task))]

    def pieces_after(self, first: int) -> list[Self]:
        """The same, also without examples; `first` is how many examples the task had at first."""
        if not self.task.grown:
            return [self]
        before = replace(self, task=self.task.original)
        if not self.part.is_extensible:
            return [before]
        if not self.is_per_example:
            return [self]
        pieces, since = [before], first
        for i, size in enumerate(self.task.grown):
            task = replace(self.task, grown=self.task.grown[: i + 1])
            changes: dict[str, Any] = {"task": task, "part": replace(self.part, since=since)}
            pieces.append(replace(self, **changes))
            since = size
        return pieces


__all__ = ["ALL", "ExampleRequest", "Inputs", "MeasuredRequest", "Part", "Request", "Rows", "TaskRequest", "UnmeasuredRequest"]
