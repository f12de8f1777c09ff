"""Whether relevance adds up to the metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import ALL, Part, Request

if TYPE_CHECKING:
    from ...core.results import Conservation  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class Conserve(Request["Conservation"]):
    """Whether relevance adds up to the metric at every layer.

    `rules` is relp (its replacement model) or none (the model's own gradient).
    """

    task: TaskSource
    rules: str = "relp"
    metric: str = "logit_diff"
    part: Part = ALL
