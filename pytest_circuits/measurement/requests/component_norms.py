"""How large the contributions of components are."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.results import ComponentNorms
from ...core.sources import TaskSource
from .base import ALL, Part, Request


@dataclass(frozen=True)
class MeasureNorms(Request[ComponentNorms]):
    """The size of each component's own contribution, float32 [n_components]."""

    task: TaskSource
    part: Part = ALL
