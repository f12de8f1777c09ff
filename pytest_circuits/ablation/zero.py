"""Zero ablation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from .kind import Ablation, AblationContext, Replace

FACTS: dict[str, Any] = {"options": {}, "values": "constant"}


@dataclass(frozen=True)
class Zero(Ablation):
    """Units are replaced with zeros at all positions. A head's output projection bias stays; an MLP loses its output bias too."""

    name: ClassVar[str] = "zero"

    def prepare(self, context: AblationContext) -> Replace:
        """Zeros."""
        zeros = [torch.zeros(1, 1, 1, 1, device=context.runner.device, dtype=context.runner.dtype)] * len(context.sites)
        return lambda _batch: zeros
