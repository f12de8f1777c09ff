"""Scaling: units are multiplied instead of replaced."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any, ClassVar

from torch import Tensor

from ..errors import OptionError
from .kind import Ablation, AblationContext, Change, Replace

FACTS: dict[str, Any] = {"options": {"factor": None}, "levels": ("component", "neuron"), "values": "activation"}


@dataclass(frozen=True)
class Scale(Ablation):
    """Units are multiplied by `factor` at all positions: 0 is zero ablation, −1 flips the sign, 2 doubles them (steering).

    The factor applies to the unit's activation in the changed run, after the changes in the layers below. A factor of 1 would
    change nothing and is refused.
    """

    factor: float | None = None
    name: ClassVar[str] = "scale"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]

    def __post_init__(self) -> None:
        if self.factor is None:
            raise OptionError("scale needs the option factor, which units are multiplied by; for instance factor: 0.5")
        if isinstance(self.factor, bool) or not isinstance(self.factor, (int, float)) or not isfinite(self.factor):
            raise OptionError(f"scale: factor must be a finite number, got {self.factor!r}")
        if self.factor == 1:
            raise OptionError("scale: a factor of 1 changes nothing; the intact model is measured anyway, as the baseline")

    def prepare(self, context: AblationContext) -> Replace:
        """A multiplication at each site."""
        factor = float(self.factor or 0.0)

        def multiplied(x: Tensor) -> Tensor:
            return x * factor

        changes: list[Tensor | Change] = [multiplied] * len(context.sites)
        return lambda _batch: changes
