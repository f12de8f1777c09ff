"""The bound of a check in Python, from its keyword arguments."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from ...core.verdict import Bound
from ...errors import OptionError

if TYPE_CHECKING:
    from ...properties.parameters import AnyParameters
    from ...properties.protocol import Property


def stated_bound(
    prop: Property, parameters: AnyParameters, at_least: float | None, at_most: float | None, within: Sequence[float] | None
) -> Bound:
    """The bound in the arguments, or the property's own where there is none.

    Raises `OptionError` unless there is exactly one, for a bound that is not a finite number, and for a vacuous one.
    """
    if prop.bound is not None and at_least is None and at_most is None and within is None:
        return prop.bound
    if sum(x is not None for x in (at_least, at_most, within)) != 1:
        raise OptionError("a check needs exactly one bound: at_least, at_most or within")
    if within is not None and (isinstance(within, str) or len(within) != 2):
        raise OptionError(f"within needs two numbers [low, high], got {within!r}")
    low, high = within if within is not None else (at_least, at_most)
    for edge in (low, high):
        if edge is not None and (isinstance(edge, (bool, str)) or not isfinite(edge)):
            raise OptionError(f"a bound is a finite number, got {edge!r}")
    if low is not None and high is not None and not low < high:
        raise OptionError(f"the lower end of within must be below the upper one, got [{low:g}, {high:g}]")
    bound = Bound(low, high)
    problem = bound.vacuous(*prop.range(parameters))
    if problem:
        raise OptionError(f"the bound says nothing: {problem}")
    return bound
