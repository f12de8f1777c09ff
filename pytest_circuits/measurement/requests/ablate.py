"""Outcomes under ablation of several sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...core.sources import TaskSource
from .base import ALL, Part, Request

if TYPE_CHECKING:
    from ...core.results import Outcome  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class Ablate(Request["Outcome"]):
    """Outcomes under ablation of several sets, arrays [n_sets, n_examples].

    `mode` is remove or keep; an empty set with mode remove is the intact model. `reference` says which
    examples a mean ablation takes its means from (`part` of the same task's prompts: clean or corrupt).
    """

    task: TaskSource
    sets: tuple[tuple[str, ...], ...]
    mode: str = "remove"
    kind: str = "zero"
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reference: Part | None = None
    options: str = field(default="{}")
