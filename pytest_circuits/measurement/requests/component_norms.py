"""How large the contributions of components are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import ALL, Part, Request

if TYPE_CHECKING:
    from ...core.results import ComponentNorms  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class MeasureNorms(Request["ComponentNorms"]):
    """The size of each component's own contribution, float32 [n_components]."""

    task: TaskSource
    part: Part = ALL
