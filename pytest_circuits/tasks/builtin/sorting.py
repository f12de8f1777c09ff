"""Sorting: `[START] 5 17 3 [SEP]` → ` 3 5 17 [END]`."""

from __future__ import annotations

from typing import ClassVar

from .sequences import Sequences


class Sorting(Sequences):
    """The numbers from least to greatest; equal ones are repeated."""

    name: ClassVar[str] = "sorting"

    @staticmethod
    def ordered(numbers: list[int]) -> list[int]:
        """Least to greatest."""
        return sorted(numbers)
