"""A task as one tokenizer sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import Request

if TYPE_CHECKING:
    from ...core.results import Encoded  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class Encode(Request["Encoded"]):
    """The task as this model's tokenizer sees it: groups, counts, a digest of the token ids."""

    task: TaskSource
