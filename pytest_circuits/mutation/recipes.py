"""The recipes that `--circuits-mutate` names, and the mutants that they give for a model and its circuit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.sources import ModelSource
from ..errors import OptionError, suggestion
from ..mutants import OPERATORS, target_of
from ..mutants.base import Mutation, check_options
from .circuit import SpecCircuit

DEFAULT = (
    "zero-head:in", "zero-head:in", "zero-head:out", "shuffle-head:in", "swap-heads", "reinit-mlp:in", "reinit-mlp:out", "undo-layer:in",
    "round:bits=8", "round:bits=4", "noise:sigma=0.1", "permute-heads", "swap-labels", "shuffle-labels",
)  # fmt: skip
"""The recipes of `--circuits-mutate=default`; a repeated recipe takes the next unit."""
MORE = {"round": ("bits=8", "bits=4", "bits=2"), "noise": ("sigma=0.05", "sigma=0.1", "sigma=0.3")}
PLACES = ("in", "out", "each")
_UNITS = {"head": r"L\d+H\d+", "mlp": r"L\d+MLP", "layer": r"L\d+", "pair": r"L\d+H\d+\+L\d+H\d+"}


@dataclass(frozen=True)
class Recipe:
    """An operator, its place (`in` the circuit, `out` of it, `each` of its units, or a unit by name), and options."""

    operator: str
    place: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The recipe as written on the command line."""
        return ":".join([self.operator, *([self.place] if self.place else []), *(f"{k}={v}" for k, v in self.options.items())])


@dataclass(frozen=True)
class UnmadeMutant:
    """A recipe that gives no mutant for this model, and why."""

    name: str
    reason: str


def recipes(text: str) -> list[Recipe]:
    """The recipes of a comma-separated list: `default`, `all`, or `OPERATOR[:PLACE][:OPTION=VALUE…]`. Raises `OptionError`."""
    expanded: list[Recipe] = []
    for word in (part.strip() for part in text.split(",")):
        if word == "default":
            expanded += [recipe for name in DEFAULT for recipe in _recipe(name)]
        elif word == "all":
            expanded += [recipe for name in _every() for recipe in _recipe(name)]
        else:
            expanded += _recipe(word)
    return expanded


def _every() -> Iterator[str]:
    for name in OPERATORS.names():
        if target_of(name) in ("head", "mlp", "layer"):
            yield from (f"{name}:each", f"{name}:out")
        else:
            yield from (f"{name}:{option}" for option in MORE[name]) if name in MORE else (name,)


def _recipe(word: str) -> list[Recipe]:
    name, *rest = word.split(":")
    if name not in OPERATORS:
        hint = "; the specs go before --circuits-mutate, or write --circuits-mutate=default" if re.search(r"[/\\]|\.yaml$", word) else ""
        raise OptionError(f"unknown mutant {name!r}; {suggestion(name, [*OPERATORS.names(), 'all', 'default'])}{hint}")
    of, options, places = target_of(name), {}, []
    for part in rest:
        key, equals, value = part.partition("=")
        if equals:
            options[key] = _value(value)
        else:
            places.append(part)
    check_options(name, options)
    if len(places) > 1:
        raise OptionError(f"{word!r} names several places, {' and '.join(places)}; name only one")
    if not places:
        return [Recipe(name, place, options) for place in (("in", "out") if of in ("head", "mlp", "layer") else ("",))]
    return [Recipe(name, _place(word, name, of, places[0]), options)]


def _place(word: str, name: str, of: str, place: str) -> str:
    if of in ("weights", "labels"):
        raise OptionError(f"{word!r}: {name} changes all {of}, so it takes no place; write {name!r}")
    if (place in PLACES and of != "pair") or re.fullmatch(_UNITS[of], place):
        return place
    example = {"head": "L0H5", "mlp": "L2MLP", "layer": "L2", "pair": "L0H5+L1H2"}[of]
    words = "name two heads, such as" if of == "pair" else f"{suggestion(place, PLACES)}, or a name such as"
    raise OptionError(f"{word!r}: {place!r} is not a place for {name}; {words} {example}")


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def mutations(
    wanted: Iterable[Recipe], circuit: SpecCircuit, donor: ModelSource | None = None, tasks: Sequence[str] = ()
) -> list[Mutation | UnmadeMutant]:
    """The mutants that the recipes give, without duplicates, and the recipes that give none, with the reason."""
    taken: Counter[tuple[str, str]] = Counter()
    mutants: dict[str, Mutation | UnmadeMutant] = {}
    for recipe in wanted:
        of = target_of(recipe.operator)
        for units in _units(recipe, of, circuit, taken):
            if isinstance(units, str):
                mutant: Mutation | UnmadeMutant = UnmadeMutant(recipe.name, units)
            else:
                source = donor if OPERATORS.fact(recipe.operator, "donor") else None
                mutant = Mutation.make(recipe.operator, units, recipe.options, source)
            mutants.setdefault(mutant.text if isinstance(mutant, Mutation) else f"{mutant.name} {mutant.reason}", mutant)
    return list(mutants.values())


def _units(recipe: Recipe, of: str, circuit: SpecCircuit, taken: Counter[tuple[str, str]]) -> Iterator[tuple[str, ...] | str]:
    """Unit tuples to act on, or why there are none."""
    if of in ("weights", "labels"):
        yield ()
    elif of == "pair":
        yield _pair(recipe, circuit)
    elif recipe.place in ("in", "out"):
        units = circuit.inside(of) if recipe.place == "in" else circuit.outside(of)
        number = taken[recipe.operator, recipe.place]
        taken[recipe.operator, recipe.place] += 1
        if number < len(units):
            yield (units[number],)
        elif recipe.place == "in":
            yield f"the circuit has {len(units)} {_plural(of, len(units))}" if units else f"no {of} is in the circuit"
        else:
            yield (
                f"every {of} has a part in the circuit" if not units else f"{len(units)} {_plural(of, len(units))} are outside the circuit"
            )
    elif recipe.place == "each":
        yield from ((unit,) for unit in circuit.inside(of)) if circuit.inside(of) else (f"no {of} is in the circuit",)
    else:
        known = {*circuit.universe.component_names, *(f"L{i}" for i in range(circuit.universe.layers))}
        yield (recipe.place,) if recipe.place in known else f"the model has no {recipe.place}"


def _pair(recipe: Recipe, circuit: SpecCircuit) -> tuple[str, ...] | str:
    if recipe.place:
        first, _, other = recipe.place.partition("+")
        missing = [unit for unit in (first, other) if unit not in circuit.universe.component_names]
        return (first, other) if not missing else f"the model has no {missing[0]}"
    inside, outside = circuit.inside("head"), circuit.outside("head")
    if not inside or not outside:
        return "no head is in the circuit" if not inside else "every head is in the circuit"
    layer = inside[0].partition("H")[0]
    return inside[0], next((unit for unit in outside if unit.partition("H")[0] == layer), outside[0])


def _plural(of: str, n: int) -> str:
    return of if n == 1 else {"mlp": "MLPs"}.get(of, f"{of}s")
