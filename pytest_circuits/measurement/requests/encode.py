"""A task as one tokenizer sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from ...core.sources import TaskSource
from ..cost_model import Passes
from ..example_selection import Rows
from .base import Inputs, TaskRequest
from .sessions import MeasuringSession, PlanningSession, Session

if TYPE_CHECKING:
    from ...core.results import Encoded
    from ...tasks.base import Task


@dataclass(frozen=True)
class Encode(TaskRequest["Encoded"]):
    """The task as this model's tokenizer sees it: groups, counts, a digest of the token ids."""

    task: TaskSource

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`Encoded`."""
        from ...core.results import Encoded

        return (Encoded,)

    def describe(self) -> str:
        """`the encoding of task 'ioi' on model 'm' (path)`."""
        return f"the encoding of task {self.task.name!r} on model {self.model.describe()}"

    def canonical(self) -> Self:
        """A mutant reads prompts as the model does that it is made from."""
        return replace(self, model=replace(self.model, mutation=None))

    def inputs(self, session: MeasuringSession) -> Inputs:
        """Model, tokenizer and task; token ids do not depend on the precision. Not stored where the tokenizer is only known by loading."""
        identity = session.identity(self.model)
        facts: dict[str, Any] = {
            "model": identity.model, "tokenizer": identity.tokenizer, "task": session.task(self.task).fingerprint
        }  # fmt: skip
        if identity.tokenizer is None:  # models of equal weights may come with different tokenizers
            facts["source"] = [self.model.path, self.model.revision, self.model.loader]
        return Inputs(facts, is_stored=identity.tokenizer is not None)

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> Encoded:
        """`Subject.encode`, without its token ids."""
        from ...core.results import Encoded

        tokens = subject.encode(task)
        return Encoded(
            int(tokens.n), tuple(tokens.groups), str(tokens.digest), int(tokens.regenerated), tuple(tokens.notes), float(tokens.chance),
            tuple(tokens.prompts), kept=tuple(getattr(tokens, "kept", ())),
        )  # fmt: skip

    def plan(self, session: PlanningSession) -> tuple[Encoded, Passes]:
        """The task as if all its pairs fitted the tokenizer."""
        return session.encoded(self.model, self.task), Passes()

    def finish(self, result: Encoded, session: Session) -> Encoded:
        """With how many examples a task had before it was extended, since these decide how it is split."""
        return replace(result, first=len(session.task(self.task.original))) if self.task.grown else result
