"""Names of components and neurons, and the universe of a model.

`L10H7` is an attention head, `L10MLP` an MLP, `L10N2304` a neuron; `L10N2304@-1` is a neuron at one position: `@-1` the
last prompt token, `@-2` the one before, `@0`, `@1` … the answer tokens that are fed back. The order is by layer, heads before
the layer's MLP, positions of a unit from first to last; every score matrix of the package has its columns in this order.
Edges are in `pytest_circuits.core.edges`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from ..errors import UnitError, suggestion
from .edges import ARROW, Edges

LEVELS = ("component", "neuron", "edge")
_NAME = re.compile(r"L(0|[1-9][0-9]*)(?:H(0|[1-9][0-9]*)|(MLP)|N(0|[1-9][0-9]*))")
_POSITION = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


@dataclass(frozen=True)
class Universe:
    """How many layers, query heads and MLP neurons a model has; `neurons` is 0 where there is no neuron level (mixtures of experts).

    `kv_heads` (0: as many as heads) and `parallel` (attention and MLP of a layer read the same stream) decide which edges there are.
    """

    layers: int
    heads: int
    neurons: int = 0
    kv_heads: int = 0
    parallel: bool = False

    @property
    def components(self) -> int:
        """N = L·(H+1)."""
        return self.layers * (self.heads + 1)

    @cached_property
    def component_names(self) -> tuple[str, ...]:
        """All components in order: L0H0 … L0MLP, L1H0 …"""
        tails = [*(f"H{h}" for h in range(self.heads)), "MLP"]
        return tuple(f"L{layer}{tail}" for layer in range(self.layers) for tail in tails)

    @cached_property
    def edges(self) -> Edges:
        """The edges: from a component to a reader."""
        return Edges(self.layers, self.heads, self.kv_heads or self.heads, self.parallel)

    def names(self, level: str = "component") -> tuple[str, ...]:
        """All unit names of a level, in column order."""
        if level == "component":
            return self.component_names
        if level == "neuron":
            return tuple(f"L{layer}N{i}" for layer in range(self.layers) for i in range(self.neurons))
        if level == "edge":
            return self.edges.names
        raise UnitError(f"no unit names for level {level!r}; {suggestion(level, LEVELS)}")

    def size(self, level: str = "component") -> int:
        """Number of units at a level."""
        if level == "edge":
            return self.edges.count
        return self.components if level == "component" else self.layers * self.neurons

    def index(self, names: Iterable[str], level: str = "component") -> list[int]:
        """Column numbers of unit names (without positions). Raises `UnitError` naming the first one that this model does not have."""
        return [self.edges.index(name) if level == "edge" else self._index(name, level) for name in names]

    def _index(self, name: str, level: str) -> int:
        match = _NAME.fullmatch(str(name))
        if match is None and ARROW in str(name):
            raise UnitError(f"{name!r} is an edge, not a {level}; ablate edges with level='edge'")
        if match is None:
            raise UnitError(f"{name!r} is not a unit name; heads are written L10H7, MLPs L10MLP, neurons L10N2304")
        layer, head, mlp, neuron = int(match[1]), match[2], match[3], match[4]
        if (neuron is not None) != (level == "neuron"):
            raise UnitError(f"{name!r} is not a {level}; use a name such as {'L0N12' if level == 'neuron' else 'L0H1 or L0MLP'}")
        where = f"this model has layers 0–{self.layers - 1}"
        if layer >= self.layers:
            raise UnitError(f"{name!r} does not exist: {where}")
        if level == "neuron":
            if int(neuron) >= self.neurons:
                raise UnitError(f"{name!r} does not exist: {where} with neurons 0–{self.neurons - 1} each")
            return layer * self.neurons + int(neuron)
        if mlp:
            return layer * (self.heads + 1) + self.heads
        if int(head) >= self.heads:
            raise UnitError(f"{name!r} does not exist: {where} with heads 0–{self.heads - 1} each")
        return layer * (self.heads + 1) + int(head)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Span:
    """Positions of units: `before` prompt tokens, and `after` answer tokens that are fed back.

    Prompts of different lengths are aligned at the last prompt token, `@-1`.
    """

    before: int
    after: int = 0

    def __len__(self) -> int:
        return self.before + self.after

    @property
    def offsets(self) -> range:
        """-before … -1, 0 … after-1."""
        return range(-self.before, self.after)

    def names(self, units: Iterable[str]) -> tuple[str, ...]:
        """Each unit at each position, positions innermost."""
        tails = [f"@{offset}" for offset in self.offsets]
        return tuple(unit + tail for unit in units for tail in tails)


def split_position(name: str) -> tuple[str, int | None]:
    """The unit and the position of a name; None without a position. Raises `UnitError` for a position that is not a whole number."""
    unit, at, position = str(name).partition("@")
    if not at:
        return name, None
    if ARROW in unit:
        raise UnitError(f"{name!r}: edges have no positions; write {unit!r}")
    if not _POSITION.fullmatch(position):
        raise UnitError(f"{name!r}: a position is written @-1 (last prompt token), @-2 …, or @0, @1 … (answer tokens)")
    return unit, int(position)


def level_of(names: Iterable[str]) -> str:
    """The level of a set of unit names, by the form of the first name; component for an empty set."""
    first = next((str(name) for name in names), "")
    return "edge" if ARROW in first else "neuron" if "N" in first else "component"


def layer_of(name: str) -> int:
    """The layer of a unit name; of an edge, that of its source."""
    return int(name[1:].split("H")[0].split("M")[0].split("N")[0])


def is_mlp(name: str) -> bool:
    """Whether a component name is an MLP."""
    return name.endswith("MLP")


def head_mlp_split(names: Sequence[str]) -> dict[str, int]:
    """How many of these components are heads, and how many MLPs."""
    mlps = sum(map(is_mlp, names))
    return {"heads": len(names) - mlps, "mlps": mlps}


def per_layer(names: Sequence[str], layers: int) -> list[int]:
    """How many of these units lie in each layer."""
    counts = [0] * layers
    for name in names:
        counts[layer_of(name)] += 1
    return counts
