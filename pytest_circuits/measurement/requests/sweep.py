"""The exact effect of every component."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import ALL, Part, Request

if TYPE_CHECKING:
    from ...core.results import SweepOutcome  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class Sweep(Request["SweepOutcome"]):
    """The exact effect of ablating each component by itself, arrays [n_examples, n_components]."""

    task: TaskSource
    kind: str = "zero"
    metric: str = "logit_diff"
    part: Part = ALL
    reference: Part | None = None
    options: str = field(default="{}")
