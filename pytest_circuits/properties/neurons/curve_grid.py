"""MIB's grid of circuit sizes, and the trapezoid rule over it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

GRID = tuple(Fraction(p) for p in (".001", ".002", ".005", ".01", ".02", ".05", ".1", ".2", ".5", "1"))
"""Shares of the universe that are kept."""


@dataclass(frozen=True)
class CurveSizes:
    """Circuit sizes on the grid for a universe of `units` units: k = int(p·units), in exact arithmetic."""

    units: int

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of units that each share of the grid keeps; 0 if a share is less than one unit."""
        return tuple(int(p * self.units) for p in GRID)

    @property
    def measured(self) -> tuple[int, ...]:
        """The sizes that have to be measured, ascending: those that keep some units but not all."""
        return tuple(sorted({k for k in self.grid if 0 < k < self.units}))

    @property
    def collapsed(self) -> dict[int, list[float]]:
        """Sizes that several shares fall on, with their shares."""
        shares: dict[int, list[float]] = {}
        for p, k in zip(GRID, self.grid, strict=True):
            shares.setdefault(k, []).append(float(p))
        return {k: several for k, several in shares.items() if len(several) > 1}


def trapezoid() -> tuple[Fraction, ...]:
    """Weights w with ∫ f = Σ w_j·f(p_j): the trapezoid rule in linear p over the grid. They add up to 0.999, the area of f ≡ 1."""
    ends = (GRID[0], *GRID, GRID[-1])
    return tuple((after - before) / 2 for before, after in zip(ends[:-2], ends[2:], strict=True))


def largest_area(sizes: CurveSizes) -> float:
    """The area of a curve that is 1 as soon as one unit is kept; less than 0.999 if shares of the grid are less than one unit."""
    return float(sum(w for w, k in zip(trapezoid(), sizes.grid, strict=True) if k))
