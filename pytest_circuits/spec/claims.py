"""A claim of a spec: its property, bound, marks and models, expanded to one claim for each test."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from ..claims.sequential import problem_with_max_n
from ..core.claim import Claim, MarkSpec
from ..core.sources import ModelSource, TaskSource
from ..core.verdict import Bound
from ..errors import suggestion
from ..properties import PROPERTIES
from ..properties.parameters import task_names
from ..properties.protocol import Property
from .document import BOUNDS, CLAIM_KEYS, ClaimKeys, name_problem
from .parameters import combinations, inner_names
from .problems import Problems
from .sections import validated
from .spelling import show
from .yaml_reader import Where


@dataclass(frozen=True)
class SpecContext:
    """What the claims of one file refer to. The names include entries that are themselves wrong, to report those once."""

    problems: Problems
    models: Mapping[str, tuple[ModelSource, ...]]  # by entry: one, or its checkpoints
    model_names: tuple[str, ...]
    tasks: Mapping[str, TaskSource]
    task_names: tuple[str, ...]
    defaults: Mapping[str, Any]
    replaced: frozenset[str] = frozenset()  # entries that the command line has put other models in the place of


@dataclass(frozen=True)
class Target:
    """What one test is about: a model, or, for a property over a series, all models of an entry. `name` is for the node id."""

    name: str
    entry: str
    model: ModelSource
    series: tuple[ModelSource, ...] = ()


def properties_of(claim: Any) -> Iterator[str]:
    """The name of the first registered property in a claim as written, and of the properties inside its parameters."""
    keys = claim if isinstance(claim, dict) else ()
    name = next((key for key in keys if key not in CLAIM_KEYS and key in PROPERTIES), None)
    if name is not None:
        yield name
        yield from inner_names(PROPERTIES.get(name), claim[name])


def expand_claim(context: SpecContext, name: str, claim: Any) -> list[Claim]:
    """The claims of all tests that one entry makes; none, with the mistakes reported, if anything in it is wrong."""
    problems, where = context.problems, ("claims", name)
    wrong = name_problem(name)
    if wrong:
        problems.at_key(where, wrong, about=("claims",))
    if not isinstance(claim, dict):
        problems.at_value(where, f"must be a mapping with a property and a bound, got {show(claim)}")
        return []
    prop = _property(problems, where, claim)
    entry, bad = _entry(problems, where, claim)
    bound = _bound(problems, where, claim, entry, bad, prop)
    marks = _marks(problems, where, entry)
    targets = _targets(context, where, entry, prop)
    if prop is None:
        return []
    written = claim[prop.name]
    if not isinstance(written, dict):
        problems.at_value((*where, prop.name), f"must be a mapping of parameters, got {show(written)}")
        return []
    expanded = combinations(problems, prop, (*where, prop.name), written, context.defaults, context.task_names)
    every = [parameters for parameters, _ in expanded]
    if bad or bound is None or any(task not in context.tasks for parameters in every for task in task_names(parameters)):
        return []
    for parameters in every:
        _check_bound(problems, where, claim, prop, bound, parameters)
        if "max_n" in written:  # one from the defaults is left unused where it is of no use, which the report says
            wrong = problem_with_max_n(prop, parameters, {task: context.tasks[task] for task in task_names(parameters)})
            if wrong:
                problems.at_key((*where, prop.name, "max_n"), wrong, about=(*where, prop.name))
    if prop.over_series:
        _check_series(context, where, claim, prop, targets, every)
    line, column = problems.document.key(where)
    return [
        Claim(
            prop.name,
            parameters,
            target.model,
            {task: context.tasks[task] for task in task_names(parameters)},
            target.series,
            bound=bound,
            expect=entry.expect,
            name=name,
            description=entry.description,
            entry=target.entry,
            ids=(target.name, *ids),
            marks=marks,
            line=line,
            column=column,
        )
        for target in targets
        for parameters, ids in expanded
    ]


def _property(problems: Problems, where: Where, claim: Mapping[str, Any]) -> Property | None:
    others = [key for key in claim if key not in CLAIM_KEYS]
    known = [key for key in others if key in PROPERTIES]
    wanted = [] if known else [key for key in others if isinstance(claim[key], dict) or claim[key] is None]
    for key in others:
        if key in known:
            continue
        if key in wanted:
            problems.at_key((*where, key), f"unknown property {key!r}; {suggestion(key, PROPERTIES)}", about=where)
        else:
            allowed = [*CLAIM_KEYS, *([] if known else PROPERTIES)]
            problems.at_key((*where, key), f"unknown key {key!r}; {suggestion(key, allowed)}", about=where)
    if not known and not wanted:
        problems.at_key(where, f"a claim needs one property; allowed: {', '.join(PROPERTIES)}")
    for key in known[1:]:
        problems.at_key(
            (*where, key), f"a claim has one property, and {known[0]!r} is here already; make {key!r} a claim of its own", about=where
        )
    return PROPERTIES.get(known[0]) if known else None


def _entry(problems: Problems, where: Where, claim: Mapping[str, Any]) -> tuple[ClaimKeys, set[str]]:
    """The keys that are right, and the names of those that are not: each key is checked on its own, so that one mistake hides no other."""
    good: dict[str, Any] = {}
    bad: set[str] = set()
    for key, value in claim.items():
        if key not in CLAIM_KEYS:
            continue
        if value is None:
            problems.at_key((*where, key), "has no value; write one, or leave the key out")
        elif validated(problems, ClaimKeys, {key: value}, where) is not None:
            good[key] = value
            continue
        bad.add(key)
    return ClaimKeys(**good), bad


def _bound(
    problems: Problems, where: Where, claim: Mapping[str, Any], entry: ClaimKeys, bad: set[str], prop: Property | None
) -> Bound | None:
    keys = [key for key in BOUNDS if key in claim]
    if not keys and prop is not None and prop.bound is not None:
        return prop.bound
    if len(keys) != 1:
        got = f", got {' and '.join(keys)}" if keys else ""
        place = (*where, keys[1]) if keys else where
        problems.at_key(place, f"a claim needs exactly one bound: at_least, at_most or within{got}", about=where)
        return None
    if keys[0] in bad:
        return None
    place = (*where, keys[0])
    low, high = entry.within if entry.within is not None else (entry.at_least, entry.at_most)
    if low is not None and high is not None and low >= high:
        problems.at_value(place, f"the lower end must be below the upper one, got [{low:g}, {high:g}]")
        return None
    bound = Bound(low, high)
    empty = bound.vacuous(prop.lowest, prop.highest) if prop else None
    if prop and empty:
        problems.at_value(place, f"a vacuous bound on {prop.name}: {empty}")
    return None if empty else bound


def _check_bound(problems: Problems, where: Where, claim: Mapping[str, Any], prop: Property, bound: Bound, parameters: Any) -> None:
    """Refuse a bound that says nothing under these very parameters."""
    empty = bound.vacuous(*prop.range(parameters))
    if empty:
        key = next(key for key in BOUNDS if key in claim)
        problems.at_value((*where, key), f"a vacuous bound on {prop.name}: {empty}")


def _check_series(
    context: SpecContext, where: Where, claim: Mapping[str, Any], prop: Property, targets: Iterable[Target], parameters: Iterable[Any]
) -> None:
    """Refuse a series that the claim cannot be about.

    A series that may fit later (another one on the command line, or a pattern that matches more checkpoints as training goes on) is not
    a mistake in the file: it makes the claim invalid when it is evaluated.
    """
    for target in targets:
        if prop.unfit is None or target.entry in context.replaced:
            continue
        places = [float(i) if model.at is None else model.at for i, model in enumerate(target.series)]
        later = [*places, inf, inf] if _may_grow(context, target.entry) else places
        for values in parameters:
            wrong = prop.unfit(values, target.entry, later) and prop.unfit(values, target.entry, places)
            if not wrong:
                continue
            key, text = wrong
            if key:
                context.problems.at_value((*where, prop.name, key), text)
            elif "model" in claim or "models" in claim:
                context.problems.at_value((*where, "model" if "model" in claim else "models"), text)
            else:
                context.problems.at_key(where, f"{text}, or name the series that the claim is about: models: [NAME]")


def _may_grow(context: SpecContext, entry: str) -> bool:
    """Whether the checkpoints of a model are those that match a pattern."""
    written = context.problems.document.data["models"][entry].get("checkpoints")
    patterns = written if isinstance(written, list) else [written]
    return any(isinstance(pattern, str) and any(char in pattern for char in "*?[") for pattern in patterns)


def _marks(problems: Problems, where: Where, entry: ClaimKeys) -> tuple[MarkSpec, ...]:
    marks: list[MarkSpec] = []
    for i, mark in enumerate(entry.marks):
        place = (*where, "marks", i)
        if isinstance(mark, str):
            name, arguments = mark, None
        elif len(mark) == 1:
            name, arguments = next(iter(mark.items()))
            place = (*place, name)
        else:
            problems.at_value(place, "a mark with arguments is a mapping with one key, such as {xfail: {reason: …}}")
            continue
        if not name.isidentifier() or keyword.iskeyword(name):
            problems.at_key(place, f"{name!r} is not the name of a pytest mark")
        elif name == "parametrize":
            problems.at_key(place, "the mark 'parametrize' does nothing here; give a parameter of the property as a list instead")
        elif isinstance(arguments, dict):
            for key in arguments:
                if not key.isidentifier():
                    problems.at_key((*place, key), f"{key!r} is not a keyword argument")
            marks.append((name, (), dict(arguments)))
        else:
            marks.append((name, tuple(arguments or ()), {}))
    return tuple(marks)


def _targets(context: SpecContext, where: Where, entry: ClaimKeys, prop: Property | None) -> list[Target]:
    if entry.model is not None and entry.models is not None:
        context.problems.at_key((*where, "models"), "a claim has one of model and models, not both", about=where)
    if entry.models is not None:
        wanted = [((*where, "models", i), name) for i, name in enumerate(entry.models)]
    elif entry.model is not None:
        wanted = [((*where, "model"), entry.model)]
    else:
        return [target for name in context.models for target in _of_entry(context, name, prop)]
    targets: list[Target] = []
    seen: set[str] = set()
    for place, name in wanted:
        named = _named(context, place, name, prop)
        known = seen | {target.name for target in targets}
        twice = next((label for label in (name, *(target.name for target in named)) if label in known), None)
        if twice is not None:
            context.problems.at_value(place, f"{twice!r} is given twice")
        seen.add(name)
        targets += named
    return targets


def _named(context: SpecContext, place: Where, name: str, prop: Property | None) -> list[Target]:
    """The models that a claim names: an entry, or a checkpoint of one."""
    if name in context.models:
        return _of_entry(context, name, prop)
    if name in context.model_names:  # wrong itself, which is reported there
        return []
    for entry, sources in context.models.items():
        for source in sources:
            if source.name == name:
                if prop is not None and prop.over_series:
                    context.problems.at_value(place, f"{prop.name} is about a series, and {name!r} is one checkpoint of it; name {entry!r}")
                    return []
                return [Target(name, entry, source)]
    near = next((label for label in context.model_names if name.startswith(f"{label}@")), None)
    if near is None:
        context.problems.at_value(place, f"unknown model {name!r}; {suggestion(name, context.model_names)}")
    elif near in context.models:
        labels = [label.name for label in context.models[near] if label.name != near]
        hint = suggestion(name, labels) if labels else "it is a single model"
        context.problems.at_value(place, f"{near!r} has no checkpoint {name!r}; {hint}")
    return []


def _of_entry(context: SpecContext, name: str, prop: Property | None) -> list[Target]:
    sources = context.models[name]
    if prop is not None and prop.over_series:
        return [Target(name, name, sources[-1], sources)]
    return [Target(source.name, name, source) for source in sources]
