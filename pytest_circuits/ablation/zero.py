"""Zero ablation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from .kind import Kind, Replace, Setting


@dataclass(frozen=True)
class Zero(Kind):
    """Units are replaced with zeros at all positions. A head's output projection bias stays; an MLP loses its output bias too."""

    name: ClassVar[str] = "zero"

    def prepare(self, setting: Setting) -> Replace:
        """Zeros."""
        zeros = [torch.zeros(1, 1, 1, 1, device=setting.runner.device, dtype=setting.runner.dtype)] * len(setting.sites)
        return lambda _batch: zeros
