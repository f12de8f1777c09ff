"""Counterfactual ablation (activation patching)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .kind import Kind, Replace, Setting


@dataclass(frozen=True)
class Counterfactual(Kind):
    """Units are replaced, position by position, with their values on the example's own corrupt prompt."""

    name: ClassVar[str] = "counterfactual"

    def prepare(self, setting: Setting) -> Replace:
        """Corrupt activations of each batch."""
        return lambda batch: setting.runner.activations(batch.corrupt, setting.sites)
