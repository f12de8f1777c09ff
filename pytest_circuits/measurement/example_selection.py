"""Which examples a `Part` means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.results import Encoded
from ..errors import OptionError, suggestion
from .requests import Part

SIDES = ("discovery", "evaluation")


def examples_of(part: Part, encoded: Encoded) -> NDArray[np.int64] | None:
    """Rising example numbers of one side of a split by group; None for all examples (`all`, and either side when in-sample).

    Raises `OptionError` for an unknown side, and what `split_first` raises when there are too few groups.
    """
    if part.which != "all" and part.which not in SIDES:
        raise OptionError(f"unknown part {part.which!r}; {suggestion(part.which, ('all', *SIDES))}")
    if part.which == "all" or part.split is None:
        return np.arange(part.since, encoded.n, dtype=np.int64) if part.since else None
    from ..stats.split import split_first

    sides = split_first(encoded.groups, encoded.first, part.split, part.seed)
    found = np.asarray(sides[SIDES.index(part.which)], dtype=np.int64)
    return found[found >= part.since]
