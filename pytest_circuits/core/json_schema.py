"""JSON Schemas made smaller: without noise, and with repeated parts in one place."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from .unique_names import unique_name

Json = dict[str, Any]
_NOISE = ("title", "circuits")
_VALUES = ("default", "enum", "const", "examples")
_NAMED = ("properties", "$defs")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("additionalProperties", "items", "not", "propertyNames")
_ANNOTATIONS = ("description", "default")
SMALLEST = 90
"""Characters of a part that is worth a definition of its own."""


def without_noise(schema: Any) -> Any:
    """The schema without generated titles and null defaults; the names of properties stay whatever they are."""
    if isinstance(schema, list):
        return [without_noise(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned: Json = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            cleaned[key] = {name: without_noise(inner) for name, inner in value.items()}
        elif key not in _NOISE and not (key == "default" and value is None):
            cleaned[key] = value if key in _VALUES else without_noise(value)
    return cleaned


def share_repeated(schema: Json) -> Json:
    """The same schema, with parts that occur more than once as definitions that the others refer to.

    Whole parts are shared first, then parts that are equal but for their description and default.
    """
    whole = _Sharing(schema, ()).shared()
    return _Sharing(whole, _ANNOTATIONS).shared()


class _Sharing:
    """One pass over a schema. Parts are equal if they differ only in the keys of `annotations`, which stay next to the reference."""

    def __init__(self, schema: Json, annotations: tuple[str, ...]) -> None:
        self.schema, self.annotations = schema, annotations
        self.counts: Counter[str] = Counter()
        self.names: dict[str, str] = {}
        self.definitions: Json = {}

    def shared(self) -> Json:
        """The schema with references."""
        existing = self.schema.get("$defs", {})
        top = {key: value for key, value in self.schema.items() if key != "$defs"}
        for name, part in existing.items():
            if not any(key in part for key in self.annotations):
                self.names[self._text(part)] = name
                self.counts[self._text(part)] += 1
        for part in (*existing.values(), top):
            self._count_inside(part)
        named = {name: self._rewritten_inside(name, part) for name, part in existing.items()}
        rewritten = self._rewritten_inside("", top)
        definitions = {**named, **self.definitions}
        return {**rewritten, "$defs": {name: definitions[name] for name in sorted(definitions)}}

    def _count(self, part: Any) -> None:
        if isinstance(part, dict):
            text = self._text(part)
            self.counts[text] += 1
            if self.counts[text] == 1:  # what is inside a repeated part occurs once, in its definition
                self._count_inside(part)

    def _count_inside(self, schema: Json) -> None:
        _map_parts(schema, "", lambda name, part: self._count(part))

    def _rewritten(self, name: str, part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        text = self._text(part)
        if len(text) < SMALLEST or self.counts[text] < 2:
            return self._rewritten_inside(name, part)
        if text not in self.names:
            taken = {*self.schema.get("$defs", {}), *self.names.values()}
            self.names[text] = unique_name(f"shared.{name}", taken.__contains__)
            self.definitions[self.names[text]] = self._rewritten_inside(name, json.loads(text))
        return {**{key: part[key] for key in self.annotations if key in part}, "$ref": f"#/$defs/{self.names[text]}"}

    def _rewritten_inside(self, name: str, schema: Json) -> Json:
        return _map_parts(schema, name, self._rewritten)

    def _text(self, part: Json) -> str:
        return json.dumps({key: value for key, value in part.items() if key not in self.annotations}, sort_keys=True)


def _map_parts(schema: Json, name: str, function: Callable[[str, Any], Any]) -> Json:
    """The schema with `function` applied to each part directly below it; parts are named after the property that they are inside."""
    mapped = dict(schema)
    for key, value in schema.items():
        if key == "properties":
            mapped[key] = {inner: function(inner, part) for inner, part in value.items()}
        elif key in _LISTS:
            mapped[key] = [function(name, part) for part in value]
        elif key in _SINGLE:
            mapped[key] = function(name, value)
    return mapped
