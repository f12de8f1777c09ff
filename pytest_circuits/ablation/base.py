"""What an ablation kind is: where the values come from that ablated units are replaced with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ..engine.batches import Batch
from ..engine.encode import EncodedTask
from ..engine.runner import Runner
from ..engine.sites import Site

Replace = Callable[[Batch], list[Tensor]]


@dataclass(frozen=True)
class Setting:
    """What an ablation runs on. `examples` are ablated; `reference` are the examples that means are taken over (None: all)."""

    runner: Runner
    task: EncodedTask
    sites: list[Site]
    examples: Sequence[int] | None
    reference: Sequence[int] | None
    batch_size: int | None

    def size(self, examples: Sequence[int] | None) -> int:
        """The batch size for a forward on some examples."""
        chosen = range(self.task.n) if examples is None else examples
        longest = max((len(self.task.clean[int(i)]) for i in chosen), default=1)
        return self.runner.batch_size(self.batch_size, longest)


class Kind:
    """Base of ablation kinds: `prepare` measures what is needed once and returns, for each batch, one tensor a site
    that broadcasts to [batch, T, units, width].
    """

    name: ClassVar[str]

    def prepare(self, setting: Setting) -> Replace:
        """Values for the batches of `setting`."""
        raise NotImplementedError
