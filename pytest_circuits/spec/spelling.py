"""Validation errors in the user's words, each with the path of the value that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError

from ..errors import suggestion
from .yaml_reader import Where

Schema = Mapping[str, Any]
_SIDES = (("exclusiveMinimum", "above"), ("minimum", "at least"), ("exclusiveMaximum", "below"), ("maximum", "at most"))
_EXACT = ("value_error", "finite_number")  # complaints that say more than a description of what is allowed
_NOUNS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a mapping",
    "null": "null",
}


@dataclass(frozen=True)
class Fault:
    """One mistake: the path of the value inside what was validated, the text, and whether its key is to be marked.

    `about` is the path that the text speaks of, where that is not the marked one (an unknown key is marked, its mapping is spoken of).
    """

    where: Where
    text: str
    on_key: bool = False
    about: Where | None = None


def faults(error: ValidationError, model: type[BaseModel], data: Any, what: str = "key") -> Iterator[Fault]:
    """The mistakes in `data` that pydantic found. `what` is what the user calls a field: a key or a parameter.

    Of several complaints about one value (one for each alternative of a union) one remains: the text of a
    validator if there is one, else a description of everything that is allowed.
    """
    schema = _schema(model)
    details = [(_real(error_details["loc"], data), error_details) for error_details in error.errors(include_url=False)]
    spoken = {where for where, error_details in details if error_details["type"] in _EXACT}
    deeper = {where[:i] for where, _ in details for i in range(len(where))}
    seen: set[Fault] = set()
    for where, error_details in details:
        if error_details["type"] not in (*_EXACT, "missing", "extra_forbidden") and (where in spoken or where in deeper):
            continue
        fault = _fault(where, error_details, schema, data, what)
        if fault not in seen:
            seen.add(fault)
            yield fault


def _fault(where: Where, error_details: Mapping[str, Any], schema: Schema, data: Any, what: str) -> Fault:
    kind, value = error_details["type"], _get(data, where)
    if kind == "missing":
        return Fault(where, f"the {what} {str(error_details['loc'][-1])!r} is missing", on_key=True)
    if kind == "extra_forbidden":
        allowed = _keys(_find(schema, schema, where[:-1]), schema)
        return Fault(where, f"unknown {what} {str(where[-1])!r}; {suggestion(str(where[-1]), allowed)}", on_key=True, about=where[:-1])
    if kind == "value_error":
        return Fault(where, str(error_details["ctx"]["error"]), on_key=isinstance(value, dict))
    if kind == "finite_number":
        return Fault(where, f"must be a finite number, got {show(value)}")
    known = _must_be(_find(schema, schema, where), schema, value)
    return Fault(where, known or f"{error_details['msg'][:1].lower()}{error_details['msg'][1:]}, got {show(value)}")


def _must_be(part: Schema, root: Schema, value: Any) -> str | None:
    words = describe(part, root)
    if not words:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        words = words.removeprefix("a number of ").removeprefix("a number ")
    if isinstance(value, int) and not isinstance(value, bool):
        words = words.removeprefix("a whole number of ").removeprefix("a whole number ")
    text = f"must be {words}, got {show(value)}"
    options = _resolve(part, root).get("enum", [])
    if isinstance(value, str) and options:
        return f"{show(value)} is not allowed; {suggestion(value, options)}"
    scalar = isinstance(value, (int, float, bool)) and words.startswith("text")
    return f"{text}; put it in quotes" if scalar else text


def describe(schema: Schema, root: Schema) -> str:
    """What a JSON Schema allows, in words: "a number above 0 and at most 1 or 'in_sample'"; empty if it says nothing."""
    schema = _resolve(schema, root)
    if "const" in schema:
        return show(schema["const"])
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "anyOf" in schema or "oneOf" in schema:
        options = [describe(option, root) for option in schema.get("anyOf", schema.get("oneOf", ())) if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(options)) if all(options) else ""
    kind = schema.get("type", "")
    if kind == "array":
        return _list_words(schema, root)
    if kind == "string" and schema.get("minLength"):
        return "text that is not empty"
    sides = [f"{word} {schema[key]:g}" for key, word in _SIDES if key in schema]
    link = ["of"] if sides and sides[0].startswith("at") else []
    return " ".join([*([_NOUNS[kind]] if kind in _NOUNS else []), *link, *[" and ".join(sides)][: len(sides)]])


def _list_words(schema: Schema, root: Schema) -> str:
    low, high, items = schema.get("minItems"), schema.get("maxItems"), describe(schema.get("items", {}), root)
    if low is not None and low == high:
        return f"a list of {low}" + (f", each {items}" if items else " values")
    size = f" of at least {low}" if low else f" of at most {high}" if high else ""
    return f"a list{size}" + (f", each {items}" if items else "")


def show(value: Any) -> str:
    """A value as a YAML author knows it, shortened."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


@cache
def _schema(model: type[BaseModel]) -> Schema:
    try:
        return model.model_json_schema()
    except PydanticUserError:  # a third-party type without a JSON Schema: pydantic's own words have to do
        return {}


def _real(location: Iterable[str | int], data: Any) -> Where:
    """The part of a pydantic location that is a path in the data: without the names of union members."""
    where: list[str | int] = []
    steps = list(location)
    for i, step in enumerate(steps):
        inside = isinstance(data, dict) and step in data
        if inside or (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            data = data[step]
            where.append(step)
        elif step == "[key]" and i == len(steps) - 1:
            break
    return tuple(where)


def _get(data: Any, where: Where) -> Any:
    for step in where:
        data = data[step]
    return data


def _resolve(schema: Schema, root: Schema) -> Schema:
    while "$ref" in schema:
        schema = root.get("$defs", {})[schema["$ref"].rsplit("/", 1)[-1]]
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _resolve(schema["allOf"][0], root)
    return schema


def _keys(schema: Schema, root: Schema) -> list[str]:
    schema = _resolve(schema, root)
    return [*schema.get("properties", {}), *(key for option in schema.get("anyOf", ()) for key in _keys(option, root))]


def _find(schema: Schema, root: Schema, where: Where) -> Schema:
    """The part of a JSON Schema that speaks of a path; empty if there is none."""
    schema = _resolve(schema, root)
    if not where:
        return schema
    for option in schema.get("anyOf", ()):
        part = _find(option, root, where)
        if part:
            return part
    step, rest = where[0], where[1:]
    if isinstance(step, int):
        items = schema.get("items")
        return _find(items, root, rest) if isinstance(items, dict) else {}
    inner = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return _find(inner, root, rest) if isinstance(inner, dict) else {}
