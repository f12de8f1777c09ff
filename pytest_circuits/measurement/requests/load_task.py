"""A task before any tokenizer."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.sources import TaskSource
from ...tasks.base import Task
from .base import Request


@dataclass(frozen=True)
class LoadTask(Request[Task]):
    """The task itself, before a tokenizer sees it. Measures nothing."""

    task: TaskSource
