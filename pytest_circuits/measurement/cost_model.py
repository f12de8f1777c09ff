"""What a request would cost, in batched calls of the model. An estimate: prompts of several lengths make more and smaller batches,
and the default batch depends on the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from ..core.metric_names import COMPARISONS

if TYPE_CHECKING:
    from ..core.units import Universe

ASSUMED_BATCH = 128  # examples a call, where no batch size is given


class Passes(NamedTuple):
    """Batched forward and backward calls of the model."""

    forwards: int = 0
    backwards: int = 0


@dataclass(frozen=True)
class Batching:
    """How `n` examples go through the model in batches of `size`."""

    n: int
    size: int

    @classmethod
    def of(cls, n: int, batch_size: int | None) -> Batching:
        """With the assumed size where none is given."""
        return cls(n, batch_size or ASSUMED_BATCH)

    @property
    def batches(self) -> int:
        """Calls for all examples."""
        return ceil(self.n / self.size)

    @property
    def stacked(self) -> int:
        """How many changed copies of the examples fit into these batches side by side."""
        return max(1, self.size * self.batches // max(1, self.n))

    def comparison(self, metric: str) -> int:
        """Forwards of the intact model, for a metric that compares with it."""
        return self.batches if metric in COMPARISONS else 0

    def each_component(self, universe: Universe) -> int:
        """Forwards of the intact model and of each component changed alone, side by side while the batch has room."""
        return self.batches * (1 + universe.layers * ceil((universe.heads + 1) / self.stacked))
