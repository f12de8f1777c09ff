"""From an interval to a bound that it meets: its safe side, rounded away from it to a number that can be read."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite

from ..verdict import Bound, Estimate

STEP = Decimal("0.01")
FINEST = Decimal("0.001")
DIGITS = 2  # of counts


def below(value: float, step: Decimal = STEP) -> float:
    """The largest multiple of `step` that is not above `value`."""
    return float((Decimal(value) / step).to_integral_value(ROUND_FLOOR) * step) + 0.0


def above(value: float, step: Decimal = STEP) -> float:
    """The smallest multiple of `step` that is not below `value`."""
    return float((Decimal(value) / step).to_integral_value(ROUND_CEILING) * step) + 0.0


def count_above(value: float) -> float:
    """A count that is not below `value`, of two digits followed by zeros."""
    whole = Decimal(value).to_integral_value(ROUND_CEILING)
    return above(float(whole), Decimal(10) ** max(0, len(str(int(whole))) - DIGITS))


def safe_side(estimate: Estimate, side: str, slack: float = 0.0, count: bool = False) -> Bound:
    """The tightest readable bound of a side (at_least, at_most, within) that the whole interval meets.

    `slack` gives away that many half-widths of the interval besides, so that other examples are likelier to meet it too. Steps are 0.01,
    or 0.001 where that would turn a positive lower end into 0; counts have two digits. Raises `ValueError` for an interval that is not
    finite.
    """
    low, high = estimate.interval
    if not (isfinite(low) and isfinite(high)):
        raise ValueError(f"the interval [{low}, {high}] has no finite ends")
    extra = slack * (high - low) / 2
    low, high = low - extra, high + extra
    floor = below(low) if below(low) > 0 or low <= 0 else below(low, FINEST)
    ceiling = count_above(high) if count else above(high)
    if count:
        floor = float(Decimal(low).to_integral_value(ROUND_FLOOR))
    return {"at_least": Bound(floor, None), "at_most": Bound(None, ceiling), "within": Bound(floor, ceiling)}[side]
