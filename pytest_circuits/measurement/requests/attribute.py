"""Attribution scores."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...core.results import Attribution
from ...core.sources import TaskSource
from .base import ALL, Part, Request


@dataclass(frozen=True)
class Attribute(Request[Attribution]):
    """Attribution scores [n_examples, n_units]; with `reduce="mean"` one row, the signed mean over the examples."""

    task: TaskSource
    method: str
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reduce: str | None = None
    options: str = field(default="{}")
