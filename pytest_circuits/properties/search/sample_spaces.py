"""What a claim about all prompts draws from: prompt pairs, and sets of components."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.units import Universe
from ...errors import Invalid, OptionError, ReasonCode
from ...measurement.requests import LoadTask, Steps, ask
from ..protocol import Claim
from ..steps.circuits import find_circuits
from ..steps.examples import competent_task
from ..steps.shared_sets import shared_units
from .for_all_parameters import CircuitOf, ForAll

if TYPE_CHECKING:
    from ...strategies.search import Example, Make
    from ...tasks.grammar.spaces import Space


def prompt_space(claim: Claim) -> Steps[Space]:
    """The prompt pairs to draw from: those of the task's grammar, or the rows of a task without a grammar."""
    from ...tasks.grammar.spaces import grammar, has_grammar, rows

    source = claim.tasks[claim.parameters.prompts.task]
    if has_grammar(source):
        space = grammar(source.target, source.options)
        assert space is not None
        return space
    task = yield from ask(LoadTask(claim.model, source))
    return rows(task)


def component_spaces(claim: Claim, universe: Universe) -> Steps[tuple[tuple[str, ...] | None, Any]]:
    """The fixed set of components and None; or None and the `SetSpace` to draw sets from."""
    from ...strategies.sets import set_space

    p: ForAll = claim.parameters
    components = p.components
    if components.fixed is not None:
        return (yield from component_set(claim, components.fixed, universe)), None
    limits: dict[str, tuple[str, ...]] = {}
    for name in ("inside", "outside", "including"):
        if getattr(components, name) is not None:
            limits[name] = yield from component_set(claim, getattr(components, name), universe)
    assert components.size is not None
    size = components.size if isinstance(components.size, (int, str)) else (components.size[0], components.size[1])
    try:
        space = set_space(universe.component_names, size, of=components.of, **limits)
    except OptionError as problem:
        raise Invalid(str(problem), {"components": universe.components}, code=ReasonCode.NO_SET_TO_DRAW) from None
    if space.most + len(space.including) == universe.components:
        raise Invalid(
            f"the largest sets are all {universe.components} components; {'removing' if p.mode == 'remove' else 'keeping'} everything says "
            "nothing about any of them: lower size",
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    return None, space


def component_set(claim: Claim, circuit: CircuitOf, universe: Universe) -> Steps[tuple[str, ...]]:
    """Named components, or the shared set of a task, in universe order.

    Raises `Invalid` for an empty shared set, for a set of all components, and below the accuracy gate.
    """
    p: ForAll = claim.parameters
    if circuit.units is not None:
        universe.index(circuit.units)  # refuses names that the model does not have
        names = set(circuit.units)
    else:
        assert circuit.task is not None
        task = yield from competent_task(claim, circuit.task)
        discovery = (yield from find_circuits(claim, circuit.task)).take(task.examples.discovery)
        names = set(shared_units(discovery, circuit.p, circuit.task, p.threshold))
    if len(names) == universe.components:
        raise Invalid(
            f"the set is all {len(names)} components: nothing is left to compare with",
            {"components": len(names)},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    return tuple(unit for unit in universe.component_names if unit in names)


def example_maker(space: Space, sets: Any) -> Make:
    """A function that draws one example: a prompt pair and, from `sets` (a `SetSpace` or None), a set of components."""
    from ...strategies.search import Example

    def make(random: Any) -> Example | None:
        pair = space.draw(random)
        if pair is None:
            return None
        return Example(replace(pair, source=None), None if sets is None else sets.draw(random))

    return make


def explicit_examples(p: ForAll) -> list[Example]:
    """The examples written in the claim."""
    from ...strategies.search import Example
    from ...tasks.records import pair_from

    explicit = []
    for i, example in enumerate(p.explicit, 1):
        fields = example.model_dump(exclude_none=True, exclude={"units"})
        pair = pair_from({name: value for name, value in fields.items() if value != []}, f"explicit example {i}")
        explicit.append(Example(replace(pair, source=None), None if example.units is None else tuple(example.units)))
    return explicit
