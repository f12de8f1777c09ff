"""A task as one tokenizer sees it."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.results import Encoded
from ...core.sources import TaskSource
from .base import Request


@dataclass(frozen=True)
class Encode(Request[Encoded]):
    """The task as this model's tokenizer sees it: groups, counts, a digest of the token ids."""

    task: TaskSource
