"""How strongly a claim is refuted: the smallest error level at which it would still be refuted."""

from __future__ import annotations

from collections.abc import Callable

LEVELS = (0.2, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0005, 0.0001, 0.00001)
"""Error levels that are tried. Holm's correction needs 0.05/m for the strongest of m claims, so these serve up to 5000."""


def level_of(confidence: float) -> float:
    """The error level of a confidence, without the digits that subtraction adds."""
    return round(1 - confidence, 12)


def smallest_level(at: float, is_refuted: Callable[[float], bool]) -> float:
    """The smallest of `LEVELS` below `at` at which the claim is still refuted, else `at`, the level at which it was.

    If a true claim is refuted at level a with probability at most a, the returned level is at most a with at most that probability: it
    bounds the p-value from above, coarsely. Levels are bisected, so `is_refuted` is called four times at most; a claim refuted at one level
    is taken to be refuted at larger ones, since intervals grow with their confidence.
    """
    smaller = [level for level in LEVELS if level < at]
    low, high = 0, len(smaller)  # refuted at all before low, at none from high on
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_refuted(smaller[middle]) else (low, middle)
    return smaller[low - 1] if low else at
