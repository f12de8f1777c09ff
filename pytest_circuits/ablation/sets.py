"""Sets of units as an intervention: the units that each set replaces, and the logits of a batch under several sets at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from ..core.units import split_position
from ..errors import OptionError, UnitError, suggestion
from ..model.batches import Batch
from ..model.encoded_task import EncodedTask
from ..model.positions import span_of
from ..model.runner import Runner
from ..model.sites import Site, sites_of
from .edges import edge_logits, rows_of_edges
from .kind import Change
from .stacked import edited_logits, replaced_masks


class Sets(Protocol):
    """Several sets of units. `sites` are the places of the values, in the order of the ablation kind's values."""

    sites: list[Site]

    def touched(self) -> list[bool]:
        """For each set, whether it replaces anything."""

    def rows(self, size: int, batch: Batch) -> int:
        """How many sets to stack on a batch when `size` prompts fit a forward."""

    def logits(self, batch: Batch, which: Sequence[int], values: Sequence[Tensor | Change]) -> Tensor:
        """Logits of the batch under each of the sets `which`; rows are sets × examples, sets outermost."""


@dataclass
class UnitSets:
    """Sets of components or neurons. `masks` [sets, units] and `spots` (set, unit, position) are the members; `keep` replaces the rest."""

    runner: Runner
    sites: list[Site]
    masks: Tensor
    spots: list[tuple[int, int, int]]
    keep: bool

    def touched(self) -> list[bool]:
        """For each set, whether it replaces anything."""
        with_spots = {row for row, _, _ in self.spots}
        return [not bool(mask.all()) if self.keep else bool(mask.any()) or row in with_spots for row, mask in enumerate(self.masks)]

    def rows(self, size: int, batch: Batch) -> int:
        """As many as fit."""
        return max(1, size // len(batch))

    def logits(self, batch: Batch, which: Sequence[int], values: Sequence[Tensor | Change]) -> Tensor:
        """Logits [sets·examples, …]."""
        masks = self._replaced(batch, which).to(self.runner.device)
        return edited_logits(self.runner, batch, self.sites, masks, values)

    def _replaced(self, batch: Batch, which: Sequence[int]) -> Tensor:
        """[sets, units], or [sets, T, units] where a set names positions."""
        masks, length = self.masks[list(which)], batch.clean.shape[1]
        place = {row: i for i, row in enumerate(which)}
        spots = [(place[row], batch.start + 1 + offset, unit) for row, unit, offset in self.spots if row in place]
        if spots:
            masks = masks[:, None].repeat(1, length, 1)
        for row, at, unit in spots:
            if 0 <= at < length:
                masks[row, at, unit] = True
        return ~masks if self.keep else masks


@dataclass
class EdgeSets:
    """Sets of edges, as masks of the replaced ones; [sets, edges]."""

    runner: Runner
    sites: list[Site]
    masks: Tensor

    def touched(self) -> list[bool]:
        """For each set, whether it replaces anything."""
        return [bool(mask.any()) for mask in self.masks]

    def rows(self, size: int, batch: Batch) -> int:
        """Fewer than fit a plain forward: the contributions of all replaced sources are held."""
        return max(1, size // rows_of_edges(self.runner.anatomy, self.masks) // len(batch))

    def logits(self, batch: Batch, which: Sequence[int], values: Sequence[Tensor | Change]) -> Tensor:
        """Logits [sets·examples, …]."""
        tensors = [value for value in values if isinstance(value, Tensor)]  # all of them: functions do not work at edge level
        return edge_logits(self.runner, batch, self.sites, self.masks[list(which)], tensors)


def sets_of(
    runner: Runner, task: EncodedTask, sets: Sequence[Sequence[str]], mode: str, level: str, site: str, examples: Sequence[int] | None
) -> Sets:
    """The sets by unit names. Raises `UnitError` for a name that the model does not have, or a position that no example has."""
    if mode not in ("remove", "keep"):
        raise OptionError(f"unknown mode {mode!r}; {suggestion(mode, ('remove', 'keep'))}")
    sites, universe = sites_of(runner.anatomy, level, site)
    plain: list[list[int]] = []
    spots: list[tuple[int, int, int]] = []
    span = span_of(task, examples)
    for row, names in enumerate(sets):
        split = [split_position(name) for name in names]
        columns = universe.index([unit for unit, _ in split], level)
        plain.append([column for column, (_, at) in zip(columns, split, strict=True) if at is None])
        for name, column, (_, at) in zip(names, columns, split, strict=True):
            if at is not None:
                if at not in span.offsets:
                    raise UnitError(
                        f"{name!r}: no example has position {at}; those of task {task.name!r} have "
                        f"positions @{span.offsets[0]} … @{span.offsets[-1]}"
                    )
                spots.append((row, column, at))
    masks = replaced_masks(plain, "remove", universe.size(level))
    if level == "edge":
        return EdgeSets(runner, sites, masks if mode == "remove" else ~masks)
    return UnitSets(runner, sites, masks, spots, mode == "keep")
