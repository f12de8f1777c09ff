"""Edges, from a component to a reader: their names and their order.

`L0H1->L2H3.q` leads from head 1 of layer 0 to the query of head 3 of layer 2; keys and values belong to
key-value heads (`L0MLP->L2KV0.k`, `L0H1->L2KV0.v`); an MLP reads as a whole (`L0H0->L1MLP`), and so do the logits
(`L2MLP->logits`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ..errors import UnitError

ARROW = "->"
_SOURCE = re.compile(r"L(0|[1-9][0-9]*)(?:H(0|[1-9][0-9]*)|MLP)", re.ASCII)
_READER = re.compile(r"logits|L(0|[1-9][0-9]*)(?:MLP|(H|KV)(0|[1-9][0-9]*)\.([qkv]))", re.ASCII)
_HOW = "an edge is written L0H1->L2H3.q, L0MLP->L2KV0.k, L0H1->L2KV0.v, L0H0->L1MLP or L2MLP->logits"


@dataclass(frozen=True)
class EdgeReader:
    """One reader: `part` is q, k or v (with the number of its `head`), mlp, or logits.

    It reads the first `sources` components. Its edges are the columns from `start` on, in the order of their sources.
    """

    name: str
    layer: int
    part: str
    head: int
    sources: int
    start: int

    @property
    def columns(self) -> slice:
        """The columns of its edges."""
        return slice(self.start, self.start + self.sources)


@dataclass(frozen=True)
class Edges:
    """The edges of a model, ordered by reader (layer by layer its queries, keys, values and MLP; the logits last), then by source.

    In a `parallel` block the MLP reads what its heads read, so it has no edges from them. Readers without sources are left out.
    """

    layers: int
    heads: int
    kv_heads: int
    parallel: bool = False

    @cached_property
    def readers(self) -> tuple[EdgeReader, ...]:
        """All readers that have a source, in order."""
        readers: list[EdgeReader] = []
        start = 0
        for name, layer, part, head, sources in self._readers():
            if sources:
                readers.append(EdgeReader(name, layer, part, head, sources, start))
                start += sources
        return tuple(readers)

    def _readers(self) -> Iterator[tuple[str, int, str, int, int]]:
        for layer in range(self.layers):
            below = layer * (self.heads + 1)
            yield from ((f"L{layer}H{h}.q", layer, "q", h, below) for h in range(self.heads))
            for part in "kv":
                yield from ((f"L{layer}KV{h}.{part}", layer, part, h, below) for h in range(self.kv_heads))
            yield f"L{layer}MLP", layer, "mlp", 0, below if self.parallel else below + self.heads
        yield "logits", self.layers, "logits", 0, self.layers * (self.heads + 1)

    @property
    def count(self) -> int:
        """How many edges there are."""
        last = self.readers[-1]
        return last.start + last.sources

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The components, in order."""
        tails = [*(f"H{h}" for h in range(self.heads)), "MLP"]
        return tuple(f"L{layer}{tail}" for layer in range(self.layers) for tail in tails)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All edges, in order."""
        return tuple(f"{source}{ARROW}{r.name}" for r in self.readers for source in self.sources[: r.sources])

    @cached_property
    def _places(self) -> dict[str, EdgeReader]:
        return {r.name: r for r in self.readers}

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.sources)}

    def index(self, name: str) -> int:
        """The column of an edge. Raises `UnitError`, which says which half of the name is wrong and why."""
        source, arrow, target = str(name).partition(ARROW)
        if not arrow or not _SOURCE.fullmatch(source) or not _READER.fullmatch(target):
            raise UnitError(f"{name!r} is not an edge name; {self._hint(target) or _HOW}")
        if source not in self._columns:
            raise UnitError(f"{name!r} does not exist: {self._missing_source(source)}")
        reader = self._places.get(target)
        column = self._columns[source]
        if reader is None or column >= reader.sources:
            raise UnitError(f"{name!r} does not exist: {self._missing_reader(source, target)}")
        return reader.start + column

    def outgoing(self, source: str) -> tuple[str, ...]:
        """All edges from a component, in order. Raises `UnitError`."""
        if source not in self._columns:
            raise UnitError(f"{source!r} does not exist: {self._missing_source(source)}")
        return tuple(f"{source}{ARROW}{r.name}" for r in self.readers if r.sources > self._columns[source])

    def _hint(self, target: str) -> str:
        if re.fullmatch(r"L[0-9]+(H|KV)[0-9]+", target):
            return f"{target!r} does not name the reader: write L2H3.q for a query, L2KV0.k or L2KV0.v for a key or a value"
        return ""

    def _missing_source(self, source: str) -> str:
        return f"{source!r} is not a component of this model, which has layers 0–{self.layers - 1} with heads 0–{self.heads - 1} each"

    def _missing_reader(self, source: str, target: str) -> str:
        match = _READER.fullmatch(target)
        assert match is not None
        if target != "logits" and int(match[1]) >= self.layers:
            return f"this model has layers 0–{self.layers - 1}"
        kind, number, part = match[2], match[3], match[4]
        if kind == "H" and part != "q":
            kv_head = int(number) * self.kv_heads // self.heads
            return f"keys and values belong to key-value heads: those of head {number} are L{match[1]}KV{kv_head}.{part}"
        if kind == "KV" and part == "q":
            return f"queries belong to heads: write L{match[1]}H0.q (heads 0–{self.heads - 1})"
        if kind and int(number) >= (self.heads if kind == "H" else self.kv_heads):
            count = self.heads if kind == "H" else self.kv_heads
            return f"each layer has {'heads' if kind == 'H' else 'key-value heads'} 0–{count - 1}"
        if self.parallel and kind is None and source[1:].split("H")[0] == match[1]:
            return "attention and MLP of a layer run in parallel in this model, so the MLP does not read the heads of its layer"
        return f"{source} does not come before {target}"
