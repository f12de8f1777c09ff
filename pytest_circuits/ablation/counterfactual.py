"""Counterfactual ablation (activation patching)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .kind import Ablation, AblationContext, Replace

FACTS: dict[str, Any] = {"options": {}, "values": "corrupt"}


@dataclass(frozen=True)
class Counterfactual(Ablation):
    """Units are replaced, position by position, with their values on the example's own corrupt prompt."""

    name: ClassVar[str] = "counterfactual"

    def prepare(self, context: AblationContext) -> Replace:
        """Corrupt activations of each batch."""
        return lambda batch: context.runner.activations(batch.corrupt, context.sites)
