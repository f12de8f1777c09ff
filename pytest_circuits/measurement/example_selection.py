"""Which examples of a task a request is about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..errors import OptionError, suggestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.results import Encoded

SIDES = ("discovery", "evaluation")


@dataclass(frozen=True)
class Part:
    """Which examples of a task: all, or one side of a seeded split by group. `split` None means in-sample: both sides are all.

    `since` leaves out examples with a lower number.
    """

    which: str = "all"
    split: float | None = None
    seed: int = 0
    since: int = 0

    @property
    def is_extensible(self) -> bool:
        """Whether examples that are added to the task belong to it: the discovery side of a split stays as it was decided at first."""
        return self.which != "discovery" or self.split is None

    def describe(self) -> str:
        """For messages: empty for all examples."""
        return "" if self.which == "all" or self.split is None else f" ({self.which} examples)"


ALL = Part()


class Rows(NamedTuple):
    """Example numbers: those that are measured (None for all), and those that reference values come from (None for the same ones)."""

    examples: NDArray[np.int64] | None = None
    reference: NDArray[np.int64] | None = None


def examples_of(part: Part, encoded: Encoded) -> NDArray[np.int64] | None:
    """Rising example numbers of one side of a split by group; None for all examples (`all`, and either side when in-sample).

    Raises `OptionError` for an unknown side, and what `split_first` raises when there are too few groups.
    """
    import numpy as np

    if part.which != "all" and part.which not in SIDES:
        raise OptionError(f"unknown part {part.which!r}; {suggestion(part.which, ('all', *SIDES))}")
    if part.which == "all" or part.split is None:
        return np.arange(part.since, encoded.n, dtype=np.int64) if part.since else None
    from ..stats.split import split_first

    sides = split_first(encoded.groups, encoded.first, part.split, part.seed)
    side = np.asarray(sides[SIDES.index(part.which)], dtype=np.int64)
    return side[side >= part.since]


def count_examples(part: Part, encoded: Encoded) -> int:
    """How many examples a part has."""
    examples = examples_of(part, encoded)
    return encoded.n if examples is None else len(examples)


def index_digest(indices: NDArray[np.int64] | None) -> str | None:
    """Digest of example numbers in order; None stands for all examples."""
    if indices is None:
        return None
    import numpy as np

    return hashlib.sha256(np.asarray(indices, "<i8").tobytes()).hexdigest()
