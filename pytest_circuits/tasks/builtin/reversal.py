"""Reversal: `[START] 5 17 3 [SEP]` → ` 3 17 5 [END]`."""

from __future__ import annotations

from typing import ClassVar

from .sequences import Sequences


class Reversal(Sequences):
    """The numbers from last to first."""

    name: ClassVar[str] = "reversal"

    @staticmethod
    def ordered(numbers: list[int]) -> list[int]:
        """Last to first."""
        return numbers[::-1]
