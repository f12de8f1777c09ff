"""The parameters of a claim's property: defaults filled in, lists expanded, every combination validated."""

from __future__ import annotations

import itertools
import json
import re
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError

from ..core.unique_names import unique_name
from ..errors import suggestion
from ..properties import PROPERTIES
from ..properties.nested import OUTER, inner_problem, is_nested
from ..properties.parameters import AnyParameters, task_references
from ..properties.protocol import Property
from .problems import Problems
from .spelling import faults, show
from .yaml_reader import Where

MOST_TESTS = 10_000
INSTEAD = {"threshold": "size", "size": "threshold"}
"""Parameters of a claim that take the place of another one among the defaults."""
_UNSAFE = re.compile(r"[\s\[\]/\\:]+")


ExpandedParameters = tuple[AnyParameters, tuple[str, ...]]
"""One combination of parameters, and the parts of a node id that tell it from the others of its claim."""


@dataclass(frozen=True)
class Pick:
    """One of the values of a parameter, where it stands below the parameter, and the parts of a node id that tell it (None: made of it)."""

    where: Where
    value: Any
    ids: tuple[str, ...] | None = None


def takes_list(annotation: Any) -> bool:
    """Whether a type is itself a list (or may be one), so that a list is one value of it and not several."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return takes_list(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return any(map(takes_list, get_args(annotation)))
    kind = origin or annotation
    if kind in (Any, object):
        return True
    return isinstance(kind, type) and issubclass(kind, (Sequence, set, frozenset)) and not issubclass(kind, (str, bytes))


def takes_lists(annotation: Any) -> bool:
    """Whether a type may hold lists inside its list, so that a list of lists is one value of it and not several."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return takes_lists(inside[0])
    if origin in (Union, types.UnionType):
        return any(map(takes_lists, inside))
    return takes_list(annotation) and (not inside or any(takes_list(argument) for argument in inside if argument is not Ellipsis))


def several(annotation: Any, value: Any) -> bool:
    """Whether a value in a spec is a list of values of this type, each of which makes a test of its own."""
    if not isinstance(value, list):
        return False
    return not takes_list(annotation) or (bool(value) and all(isinstance(item, list) for item in value) and not takes_lists(annotation))


def check_defaults(problems: Problems, used: set[str]) -> dict[str, Any]:
    """The usable entries of `defaults`. Names that no property knows, and values that none accepts, are reported.

    `used` are the properties of the spec's claims: the others are imported only when a name or value needs them.
    """
    defaults = problems.document.data.get("defaults", {})
    if not isinstance(defaults, dict):
        problems.at_value(("defaults",), f"must be a mapping from parameters to values, got {show(defaults)}")
        return {}
    return {name: value for name, value in defaults.items() if _default_fits(problems, name, value, used)}


def _default_fits(problems: Problems, name: str, value: Any, used: set[str]) -> bool:
    knowing = [PROPERTIES.get(prop) for prop in sorted(used) if name in PROPERTIES.get(prop).parameters.model_fields]
    if not knowing:
        known = [PROPERTIES.get(prop) for prop in PROPERTIES]
        knowing = [prop for prop in known if name in prop.parameters.model_fields]
        if not knowing:
            allowed = {field for prop in known for field in prop.parameters.model_fields}
            problems.at_key(("defaults", name), f"no property has a parameter {name!r}; {suggestion(name, allowed)}", about=("defaults",))
            return False
    complaints = [_complaints(prop, name, value, _beside(problems)) for prop in knowing]
    if not all(complaints):
        return True
    for where, text in complaints[0]:
        problems.at_value(("defaults", name, *where), text)
    return False


def _beside(problems: Problems) -> dict[str, Any]:
    """For validators: the folder of the spec, from which relative paths are taken."""
    return {"folder": Path(problems.document.path).absolute().parent}


def _complaints(prop: Property, name: str, value: Any, context: dict[str, Any]) -> list[tuple[Where, str]]:
    listed = several(prop.parameters.model_fields[name].annotation, value)
    complaints: list[tuple[Where, str]] = []
    for index, item in enumerate(value) if listed else [(None, value)]:
        try:
            prop.parameters.model_validate_json(json.dumps({name: item}), context=context)
        except ValidationError as error:
            if all(item["loc"][:1] != (name,) for item in error.errors(include_url=False)):
                continue  # it misses other parameters only; putting that into words would cost a JSON Schema
            prefix = () if index is None else (index,)
            for fault in faults(error, prop.parameters, {name: item}, "parameter"):
                if fault.where[:1] == (name,):
                    complaints.append(((*prefix, *fault.where[1:]), fault.text))
    return complaints


def combinations(
    problems: Problems, prop: Property, where: Where, written: Mapping[str, Any], defaults: Mapping[str, Any], known_tasks: Sequence[str]
) -> list[ExpandedParameters]:
    """Every combination of the values that `given` (at `where` in the file) and the applicable defaults list."""
    fields = prop.parameters.model_fields
    instead = {INSTEAD[name] for name in written if name in INSTEAD}
    places: dict[str, Where] = {name: ("defaults", name) for name in defaults if name in fields and name not in instead}
    values = {name: defaults[name] for name in places} | dict(written)
    places |= {name: (*where, name) for name in written}
    listed = [name for name in ("task", *written, *values) if name in values and _is_listed(prop, name, values[name])]
    nested = {
        name: _nested(problems, places[name], values[name], defaults, known_tasks)
        for name, info in fields.items()
        if name in values and is_nested(info)
    }
    axes = _axes(problems, list(dict.fromkeys(name for name in listed if name not in nested)), values, places)
    if axes is None:
        return []
    broken = {name for name, picks in nested.items() if not picks}
    axes = {name: picks for name, picks in nested.items() if picks} | axes
    if nested and not _few_enough(problems, (*where, next(iter(nested))), prod(map(len, axes.values()))):
        return []
    expanded: list[ExpandedParameters] = []
    for picks in itertools.product(*axes.values()):
        picked = dict(zip(axes, picks, strict=True))
        chosen = values | {name: pick.value for name, pick in picked.items()}
        origins = places | {name: (*places[name], *pick.where) for name, pick in picked.items()}
        parameters = _validate(problems, prop, where, chosen, origins, known_tasks, broken)
        if parameters is not None:
            expanded.append((parameters, tuple(_ids(parameters, picked))))
    return _distinct(expanded)


def inner_names(prop: Property, written: Any) -> Iterator[str]:
    """The names of the registered properties inside the parameters of a property, as written."""
    for name, info in prop.parameters.model_fields.items():
        value = written.get(name) if isinstance(written, Mapping) and is_nested(info) else None
        for item in value if isinstance(value, list) else [value]:
            yield from (key for key in item if key in PROPERTIES) if isinstance(item, Mapping) else ()


def _nested(problems: Problems, where: Where, value: Any, defaults: Mapping[str, Any], known_tasks: Sequence[str]) -> list[Pick]:
    """The combinations of a property inside another one, as values that the outer one can be given; none if something is wrong.

    Its parameters may be lists, and have defaults, like those of any property.
    """
    several = value if isinstance(value, list) else [value]
    picks: list[Pick] = []
    for i, item in enumerate(several):
        below: Where = (i,) if isinstance(value, list) else ()
        place = (*where, *below)
        if not isinstance(item, Mapping) or len(item) != 1:
            problems.at_value(place, f"must be one property with its parameters, such as {{reuse: {{task: addition}}}}, got {show(item)}")
            return []
        ((name, written),) = item.items()
        problem = inner_problem(name, written)
        if problem and isinstance(written, Mapping):
            problems.at_key((*place, name), problem, about=place)
        elif problem:
            problems.at_value((*place, name), f"{problem}, got {show(written)}")
        for key in () if problem else OUTER:
            if key in written:
                text = f"{key!r} belongs to the property of the claim, not to {name!r} inside it; write it next to {where[-1]!r}"
                text = f"{name!r} is estimated once inside another property; leave 'max_n' out" if key == "max_n" else text
                problems.at_key((*place, name, key), text, about=(*place, name))
                problem = text
        if problem:
            return []
        inner = PROPERTIES.get(name)
        inherited = {key: default for key, default in defaults.items() if key not in OUTER}
        expanded = combinations(problems, inner, (*place, name), written, inherited, known_tasks)
        if not expanded:
            return []
        prefix = (name,) if len(several) > 1 else ()
        picks += [Pick(below, {name: inside.model_dump(mode="json", exclude_unset=True)}, (*prefix, *ids)) for inside, ids in expanded]
    if not several:
        problems.at_value(where, "an empty list makes no test; give a property with its parameters")
    return picks


def _is_listed(prop: Property, name: str, value: Any) -> bool:
    field = prop.parameters.model_fields.get(name)
    return field is not None and several(field.annotation, value)


def _axes(problems: Problems, listed: list[str], values: Mapping[str, Any], places: Mapping[str, Where]) -> dict[str, list[Pick]] | None:
    if listed and not _few_enough(problems, places[listed[0]], prod(len(values[name]) for name in listed)):
        return None
    good = True
    for name in listed:
        if not values[name]:
            problems.at_value(places[name], "an empty list makes no test; give a value")
            good = False
        for i, value in enumerate(values[name][:MOST_TESTS]):
            if value in values[name][:i]:
                problems.at_value((*places[name], i), f"{show(value)} is given twice")
                good = False
    return {name: [Pick((i,), value) for i, value in enumerate(values[name])] for name in listed} if good else None


def _few_enough(problems: Problems, where: Where, total: int) -> bool:
    if total > MOST_TESTS:
        problems.at_value(where, f"the lists of this claim make {total} tests; at most {MOST_TESTS} are allowed")
    return total <= MOST_TESTS


def _validate(
    problems: Problems,
    prop: Property,
    where: Where,
    chosen: dict[str, Any],
    origins: Mapping[str, Where],
    known_tasks: Sequence[str],
    broken: Collection[str] = (),
) -> AnyParameters | None:
    """The parameters, or None with the mistakes reported; those of `broken` ones are already."""
    try:
        parameters = prop.parameters.model_validate_json(json.dumps(chosen), context=_beside(problems))
    except ValidationError as error:
        for fault in faults(error, prop.parameters, chosen, "parameter"):
            if fault.where and fault.where[0] in broken:
                continue
            place = _place(fault.where, origins, where)
            if fault.on_key:
                about = None if fault.about is None else _place(fault.about, origins, where)
                problems.at_key(place, fault.text, about=about)
            else:
                problems.at_value(place, fault.text)
        return None
    good = True
    for path, task in task_references(parameters):
        if task not in known_tasks:
            problems.at_value(_place(path, origins, where), f"unknown task {task!r}; {suggestion(task, known_tasks)}")
            good = False
    return parameters if good else None


def _place(path: Where, origins: Mapping[str, Where], where: Where) -> Where:
    return where + path if not path or path[0] not in origins else origins[str(path[0])] + path[1:]


def _ids(parameters: AnyParameters, picked: Mapping[str, Pick]) -> Iterator[str]:
    for name in ("task", "tasks"):
        value = getattr(parameters, name, None)
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, tuple)) and value:
            yield "-".join(map(_slug, value))
    for name, pick in picked.items():
        if pick.ids is not None:
            yield from pick.ids
        elif name not in ("task", "tasks"):
            yield f"{_slug(name)}={_slug(pick.value)}"


def _slug(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        text = _slug(next(iter(value.values())))
    elif isinstance(value, dict):
        text = ",".join(f"{key}={_slug(item)}" for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        text = "-".join(map(_slug, value))
    else:
        text = show(value).strip("'\"") if not isinstance(value, str) else value
    text = "".join(char if char.isprintable() else "-" for char in _UNSAFE.sub("-", text))
    return text or "empty"


def _distinct(written: list[ExpandedParameters]) -> list[ExpandedParameters]:
    """With a number after those ids that would otherwise repeat: different values can look alike once made safe for ids."""
    taken: set[tuple[str, ...]] = set()
    distinct: list[ExpandedParameters] = []
    for parameters, ids in written:
        if ids in taken:
            *first, last = ids
            ids = (*first, unique_name(last, lambda label, first=first: (*first, label) in taken))  # type: ignore[misc]
        taken.add(ids)
        distinct.append((parameters, ids))
    return distinct
