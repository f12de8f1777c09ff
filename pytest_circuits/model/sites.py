"""Sites: the places where units live, all seen as tensors [batch, positions, units, width].

A head is its slice of the output projection's input, an MLP its down projection's output (before any
post-norm), a neuron a coordinate of the down projection's input (`mlp_activation`) or of its output
(`mlp_output`). `slices`, equal parts of the output projection's output, are not units; a published hook writes there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from ..core.units import Universe
from ..errors import OptionError, suggestion
from .hooks import Hooks
from .layout import Anatomy, Block

SITES = ("mlp_activation", "mlp_output")


@dataclass(frozen=True)
class Site:
    """Units of one kind in one layer; `columns` are their columns in the universe's order."""

    block: Block
    kind: Literal["heads", "slices", "mlp", "neurons", "outputs"]
    columns: slice
    units: int
    width: int

    @property
    def layer(self) -> int:
        """The layer's number."""
        return self.block.index

    @property
    def module(self) -> nn.Module:
        """The projection whose input or output the site is."""
        return self.block.output if self.kind in ("heads", "slices") else self.block.mlp_output

    def view(self, x: Tensor) -> Tensor:
        """[batch, positions, features] → [batch, positions, units, width]."""
        return x.reshape(*x.shape[:2], self.units, self.width)

    def hook(self, hooks: Hooks, edit: Callable[[Tensor], Tensor | None]) -> None:
        """Hook the site; `edit` sees and returns the four-dimensional view."""

        def flat(x: Tensor) -> Tensor | None:
            new = edit(self.view(x))
            if new is None:
                return x.clone() if guarded else None
            return new.reshape(x.shape).clone() if guarded else new.reshape(x.shape)

        register = hooks.on_input if self.kind in ("heads", "neurons") else hooks.on_output
        guarded = self.block.in_place and register == hooks.on_output  # the layer goes on with a copy
        register(self.module, flat, f"{self.kind} of layer {self.layer}")


def sites_of(anatomy: Anatomy, level: str = "component", site: str = "mlp_activation") -> tuple[list[Site], Universe]:
    """All sites of a level in forward order, and the universe that their columns index. Edges start at the sites of components."""
    if level in ("component", "edge"):
        step = anatomy.heads + 1
        sites = []
        for block in anatomy.blocks:
            start = block.index * step
            sites.append(Site(block, "heads", slice(start, start + anatomy.heads), anatomy.heads, anatomy.head_dim))
            sites.append(Site(block, "mlp", slice(start + anatomy.heads, start + step), 1, anatomy.width))
        return sites, anatomy.universe
    if level != "neuron":
        raise OptionError(f"no sites at level {level!r}; {suggestion(level, ('component', 'neuron'))}")
    if site not in SITES:
        raise OptionError(f"unknown site {site!r}; {suggestion(site, SITES)}")
    anatomy.require_neurons("the level 'neuron'")
    size = anatomy.neurons if site == "mlp_activation" else anatomy.width
    kind: Literal["neurons", "outputs"] = "neurons" if site == "mlp_activation" else "outputs"
    return (
        [Site(b, kind, slice(b.index * size, (b.index + 1) * size), size, 1) for b in anatomy.blocks],
        Universe(len(anatomy.blocks), anatomy.heads, size),
    )
