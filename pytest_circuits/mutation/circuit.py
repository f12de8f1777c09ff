"""The circuit that mutation operators act inside or outside of: the component sets that the claims of a spec measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ..core.sources import ModelSource
from ..core.units import Universe, is_mlp, layer_of, level_of
from ..errors import CircuitsError
from ..measurement.requests import Attribute, Describe
from ..properties.payload import named_sets
from .judged_claim import JudgedClaim

LARGEST = 100_000
FREQUENT = 0.5  # share of examples, where no component reaches the default P


@dataclass(frozen=True)
class SpecCircuit:
    """`sets` by their origin, which `source` describes; `universe` is the model's. `is_measured`: the claims measured these sets."""

    universe: Universe
    sets: dict[str, tuple[str, ...]]
    source: str
    is_measured: bool = True

    @property
    def units(self) -> set[str]:
        """All components of all sets."""
        return {unit for members in self.sets.values() for unit in members}

    def inside(self, of: str) -> list[str]:
        """Heads, MLPs or layers of the circuit, ordered to cover the most sets not yet covered, then by membership in most sets."""
        units = [unit for unit in self._all(of) if self._members(unit)]
        chosen: list[str] = []
        open_sets = set(self.sets)
        while units:
            best = max(units, key=lambda u: (len(self._members(u) & open_sets), self._weight(u), -self._all(of).index(u)))
            units.remove(best)
            chosen.append(best)
            open_sets -= self._members(best)
        return chosen

    def outside(self, of: str) -> list[str]:
        """Heads, MLPs or layers without any component of the circuit, in a fixed random order."""
        units = [unit for unit in self._all(of) if not self._members(unit)]
        return Random(0).sample(units, len(units))

    def sets_of(self, unit: str) -> list[str]:
        """The sets that a component, or a component of the layer, is in."""
        return [name for name in self.sets if name in self._members(unit)]

    def _all(self, of: str) -> list[str]:
        if of == "layer":
            return [f"L{i}" for i in range(self.universe.layers)]
        return [unit for unit in self.universe.component_names if is_mlp(unit) == (of == "mlp")]

    def _members(self, unit: str) -> set[str]:
        return {name for name, units in self.sets.items() if any(_within(members, unit) for members in units)}

    def _weight(self, unit: str) -> int:
        return sum(_within(members, unit) for units in self.sets.values() for members in units)


def _within(unit: str, wanted: str) -> bool:
    """Whether a component is the wanted one, or lies in the wanted layer."""
    return unit == wanted or (wanted[1:].isdigit() and layer_of(unit) == int(wanted[1:]))


def circuit_of(executor: Any, model: ModelSource, claims: Sequence[JudgedClaim]) -> SpecCircuit:
    """The component sets in the details of the claims or, if there are none, the shared set of each task with default settings.

    Raises the `CircuitsError` of describing the model.
    """
    universe: Universe = executor.result(Describe(model)).universe
    sets: dict[str, tuple[str, ...]] = {}
    for judged in claims:
        for where, units in named_sets(judged.evaluation.details, LARGEST).items():
            if units and level_of(units) == "component":
                sets[f"{where.replace('_', ' ')} of {judged.name}"] = tuple(units)
    if sets:
        return SpecCircuit(universe, sets, "the sets of components that the claims measured")
    source = f"no claim measured a set: shared sets of the tasks by eap, 10%, P = 95%, or where that is empty P = {FREQUENT:.0%}"
    return SpecCircuit(universe, _by_default(executor, model, claims), source, is_measured=False)


def _by_default(executor: Any, model: ModelSource, claims: Iterable[JudgedClaim]) -> dict[str, tuple[str, ...]]:
    sets = {}
    for name, task in {name: task for judged in claims for name, task in judged.claim.tasks.items()}.items():
        try:
            circuits = executor.result(Attribute(model, task, "eap")).circuits("10%")
        except CircuitsError:
            continue
        units = circuits.shared(0.95) or circuits.shared(FREQUENT)
        if units:
            sets[f"shared set of {name}"] = units
    return sets
