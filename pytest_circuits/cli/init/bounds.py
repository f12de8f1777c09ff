"""Bounds that an interval meets: its safe end, rounded to a readable number, or a margin around a target."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import isfinite

from ...core.verdict import Bound, Estimate

STEP = Decimal("0.01")
FINEST = Decimal("0.001")
DIGITS = 2  # of counts
NO_WIDTH = 1e-6
MARGINS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)


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
    """The tightest readable bound of a side (at_least, at_most) that the whole interval meets.

    `slack` loosens the bound by that many half-widths of the interval, so that other examples are more likely to meet it. Bounds are
    multiples of 0.01, or of 0.001 where 0.01 would round a positive lower end to 0; counts have two digits. If the interval has no
    width, because all examples are alike, the bound is one step further away (1 for counts). Raises `ValueError` for an interval that
    is not finite.
    """
    low, high = _ends(estimate, slack)
    floor = below(low) if below(low) > 0 or low <= 0 else below(low, FINEST)
    ceiling = count_above(high) if count else above(high)
    if count:
        floor = float(Decimal(low).to_integral_value(ROUND_FLOOR))
    if estimate.interval[1] - estimate.interval[0] < NO_WIDTH:
        step = 1.0 if count else float(STEP)
        floor, ceiling = round(floor - step, 9), round(ceiling + step, 9)
    return {"at_least": Bound(floor, None), "at_most": Bound(None, ceiling)}[side]


def around(estimate: Estimate, target: float, slack: float = 0.0) -> Bound | None:
    """The narrowest margin of `MARGINS` around `target` that contains the whole interval, as a bound; None if no margin does.

    A claim of equivalence must contain the target itself, whatever the estimate. `slack` and errors as for `safe_side`.
    """
    low, high = _ends(estimate, slack)
    bounds = ((round(target - margin, 9), round(target + margin, 9)) for margin in MARGINS)
    return next((Bound(*ends) for ends in bounds if ends[0] <= low and high <= ends[1]), None)


def _ends(estimate: Estimate, slack: float) -> tuple[float, float]:
    low, high = estimate.interval
    if not (isfinite(low) and isfinite(high)):
        raise ValueError(f"the interval [{low}, {high}] has no finite ends")
    extra = slack * (high - low) / 2
    return low - extra, high + extra
