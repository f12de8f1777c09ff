"""A task before any tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import UnmeasuredRequest
from .sessions import Session

if TYPE_CHECKING:
    from ...tasks.base import Task


@dataclass(frozen=True)
class LoadTask(UnmeasuredRequest["Task"]):
    """The task itself, before a tokenizer sees it. Measures nothing."""

    task: TaskSource

    def describe(self) -> str:
        """`task 'ioi'`."""
        return f"task {self.task.name!r}"

    def answer(self, session: Session) -> Task:
        """The prompt pairs."""
        return session.task(self.task)
