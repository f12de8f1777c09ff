"""A validator for the keywords that the JSON Schema of specs uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def _kind(value: Any, kind: str) -> bool:
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def faults(value: Any, schema: Any, root: Any) -> Iterator[str]:
    """A validator for the keywords that the schema uses; any other keyword is an error of the test."""
    if isinstance(schema, bool):
        if not schema:
            yield "forbidden"
        return
    for key, rule in schema.items():
        yield from CHECKS[key](value, rule, schema, root)


def _fits(value: Any, schema: Any, root: Any) -> bool:
    return not list(faults(value, schema, root))


def _when(kind: Any, test: Any) -> Any:
    return lambda value, rule, schema, root: [f"{value!r} against {rule!r}"] if isinstance(value, kind) and not test(value, rule) else []


def _object(value: Any, rule: Any, schema: Any, root: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in rule.items():
            if key in value:
                yield from faults(value[key], inner, root)


def _others(value: Any, rule: Any, schema: Any, root: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key in value.keys() - schema.get("properties", {}).keys():
            yield from faults(value[key], rule, root)


def _places(value: Any, rule: Any, schema: Any, root: Any) -> Iterator[str]:
    if isinstance(value, list):
        for inner, part in zip(value, rule, strict=False):
            yield from faults(inner, part, root)


NUMBER = (int, float)


CHECKS: dict[str, Any] = {
    **{key: lambda *_: [] for key in ("$schema", "$defs", "title", "description", "default")},
    "type": lambda v, r, s, root: [] if _kind(v, r) else [f"{v!r} is no {r}"],
    "const": lambda v, r, s, root: [] if v == r else [f"{v!r} is not {r!r}"],
    "enum": lambda v, r, s, root: [] if v in r else [f"{v!r} not in {r}"],
    "$ref": lambda v, r, s, root: faults(v, root["$defs"][r.removeprefix("#/$defs/")], root),
    "anyOf": lambda v, r, s, root: [] if any(_fits(v, one, root) for one in r) else [f"{v!r} fits nothing"],
    "oneOf": lambda v, r, s, root: [] if sum(_fits(v, one, root) for one in r) == 1 else [f"{v!r} fits not one"],
    "allOf": lambda v, r, s, root: [f for one in r for f in faults(v, one, root)],
    "not": lambda v, r, s, root: [f"{v!r} fits {r!r}"] if _fits(v, r, root) else [],
    "required": _when(dict, lambda v, r: set(r) <= set(v)),
    "minProperties": _when(dict, lambda v, r: len(v) >= r),
    "maxProperties": _when(dict, lambda v, r: len(v) <= r),
    "propertyNames": lambda v, r, s, root: [f for key in v for f in faults(key, r, root)],
    "properties": _object,
    "additionalProperties": _others,
    "items": lambda v, r, s, root: [f for one in v for f in faults(one, r, root)] if isinstance(v, list) else [],
    "prefixItems": _places,
    "minItems": _when(list, lambda v, r: len(v) >= r),
    "maxItems": _when(list, lambda v, r: len(v) <= r),
    "uniqueItems": _when(list, lambda v, r: all(one not in v[:i] for i, one in enumerate(v))),
    "minLength": _when(str, lambda v, r: len(v) >= r),
    "pattern": _when(str, lambda v, r: re.search(r, v) is not None),
    "minimum": _when(NUMBER, lambda v, r: v >= r),
    "maximum": _when(NUMBER, lambda v, r: v <= r),
    "exclusiveMinimum": _when(NUMBER, lambda v, r: v > r),
    "exclusiveMaximum": _when(NUMBER, lambda v, r: v < r),
}
