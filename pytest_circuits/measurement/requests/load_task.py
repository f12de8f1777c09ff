"""A task before any tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import Request

if TYPE_CHECKING:
    from ...tasks.base import Task  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class LoadTask(Request["Task"]):
    """The task itself, before a tokenizer sees it. Measures nothing."""

    task: TaskSource
