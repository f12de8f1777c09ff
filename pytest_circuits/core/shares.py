"""Shares and sizes in exact arithmetic.

`ceil(P * n)` in floats is wrong for 141 pairs of (P, n) with n ≤ 1000, and so is `floor(N * K)`. Numbers from YAML and
Python are therefore read as the decimals that were written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from ..errors import OptionError


def exact(number: float | int | str | Fraction) -> Fraction:
    """The decimal that was written: `exact(0.95)` is 19/20, not the nearest binary float."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


def share(p: float | int | Fraction) -> Fraction:
    """A share in (0, 1]. Raises `OptionError` otherwise."""
    if isinstance(p, bool) or not isinstance(p, (int, float, Fraction)) or not 0 < p <= 1:
        raise OptionError(f"a share must lie in (0, 1], got {p!r}")
    return exact(p)


def needed(p: float | Fraction, n: int) -> int:
    """`ceil(P·n)`: the number of n examples that a component must be in, to be in at least a share P of them."""
    return ceil(share(p) * n)


_PERCENTAGE = re.compile(r"\s*(\d{1,3}(?:\.\d{1,12})?)\s*%\s*", re.ASCII)  # no exponents: 1e99999999% is a number, but too large
ROUNDINGS = {"floor": floor, "ceil": ceil, "nearest": lambda x: floor(x + Fraction(1, 2))}


@dataclass(frozen=True)
class Size:
    """A circuit size K: a share of the universe (`"10%"`) or a count."""

    share: Fraction | None
    count: int | None

    @classmethod
    def parse(cls, text: Any) -> Size:
        """`"10%"`, a count ≥ 1, or a `Size`. Raises `OptionError` for anything else, including 0 and 0%."""
        if isinstance(text, Size):
            return text
        if isinstance(text, str) and (match := _PERCENTAGE.fullmatch(text)):
            value = Fraction(match[1]) / 100
            if 0 < value <= 1:
                return cls(value, None)
        elif isinstance(text, int) and not isinstance(text, bool) and text >= 1:
            return cls(None, text)
        raise OptionError(f"a circuit size is a percentage above 0% and up to 100%, such as '10%', or a count of at least 1; got {text!r}")

    def of(self, universe: int, rounding: str = "floor") -> int:
        """How many of `universe` units: at least 1, at most all of them."""
        if rounding not in ROUNDINGS:
            raise OptionError(f"unknown rounding {rounding!r}; allowed: {', '.join(ROUNDINGS)}")
        wanted = self.count if self.count is not None else ROUNDINGS[rounding]((self.share or Fraction(0)) * universe)
        return max(1, min(universe, wanted))

    def __str__(self) -> str:
        return str(self.count) if self.share is None else f"{float(self.share * 100):g}%"
