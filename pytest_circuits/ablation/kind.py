"""Ablation kinds: where the values come from that replace ablated units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ..errors import OptionError, suggestion
from ..model.batches import Batch
from ..model.encoded_task import EncodedTask
from ..model.runner import Runner
from ..model.sites import Site

Change = Callable[[Tensor], Tensor]
Replace = Callable[[Batch], Sequence[Tensor | Change]]


@dataclass(frozen=True)
class AblationContext:
    """The inputs of an ablation. `examples` are ablated; `reference` are the examples that means are taken over (None: all)."""

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


class Ablation:
    """Base of ablation kinds. `prepare` measures what it needs once, and returns for each batch one value per site: a tensor that
    broadcasts to [batch, T, units, width], or a function of the activations [sets, batch, T, units, width] of the changed run.
    """

    name: ClassVar[str]
    levels: ClassVar[tuple[str, ...]] = ("component", "neuron", "edge")

    def places(self, context: AblationContext) -> list[Site]:
        """The places of the values, one per site of `context`; by default the sites themselves."""
        return context.sites

    def check_level(self, level: str) -> None:
        """Raise `OptionError` for a level that the kind does not work at."""
        if level not in self.levels:
            raise OptionError(f"{self.name} ablation does not work at level {level!r}; {suggestion(level, self.levels)}")

    def prepare(self, context: AblationContext) -> Replace:
        """Values for the batches of `context`."""
        raise NotImplementedError
