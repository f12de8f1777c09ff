"""Attribution scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import ALL, Part, Request

if TYPE_CHECKING:
    from ...core.results import Attribution  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class Attribute(Request["Attribution"]):
    """Attribution scores [n_examples, n_units]; with `reduce="mean"` one row, the signed mean over the examples."""

    task: TaskSource
    method: str
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reduce: str | None = None
    options: str = field(default="{}")
