"""Values as JSON documents and back, without pickle and without numpy.

Anything made of the dataclasses in `types`, dicts, lists, tuples, strings, numbers, booleans and None comes back equal and of the same
types. What JSON lacks is written as an object with one key that starts with `$`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..errors import MeasurementError

Types = Callable[[str], type | None]
"""The dataclass of a name, or None."""


def encode(value: Any, types: Types, where: str = "result", special: Callable[[Any, str], Any] = lambda value, where: None) -> Any:
    """The document of a value. `special` may encode values that have no document otherwise: an object with one key that starts with `$`.

    Raises `MeasurementError` naming the place of a value that cannot be stored.
    """

    def inner(value: Any, where: str) -> Any:
        document = special(value, where)
        if document is not None or value is None or isinstance(value, (bool, int, float, str)):
            return value if document is None else document
        if isinstance(value, (list, tuple)):
            items = [inner(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return items if type(value) is list else {"$tuple": items}
        if isinstance(value, Mapping):
            pairs = [(k, inner(v, f"{where}[{k!r}]")) for k, v in value.items()]
            if all(isinstance(k, str) and not k.startswith("$") for k, _ in pairs):
                return dict(pairs)
            return {"$dict": [[inner(k, f"a key of {where}"), v] for k, v in pairs]}
        if is_dataclass(value) and types(type(value).__name__) is type(value):
            content = {f.name: inner(getattr(value, f.name), f"{where}.{f.name}") for f in fields(value)}
            return {"$type": [type(value).__name__, content]}
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise MeasurementError(f"{where} is a {kind}, which cannot be stored; use numpy arrays and plain values")

    return inner(value, where)


def decode(document: Any, types: Types, special: Callable[[str, Any], Any] | None = None) -> Any:
    """The value of a document. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""

    def inner(document: Any) -> Any:
        if isinstance(document, list):
            return [inner(item) for item in document]
        if not isinstance(document, dict):
            return document
        if len(document) == 1:
            key, content = next(iter(document.items()))
            if key.startswith("$"):
                return marked(key, content)
        return {k: inner(v) for k, v in document.items()}

    def marked(key: str, content: Any) -> Any:
        if key == "$tuple":
            return tuple(inner(item) for item in content)
        if key == "$dict":
            return {inner(k): inner(v) for k, v in content}
        if key == "$type":
            name, values = content
            dataclass = types(name)
            if dataclass is None:
                raise ValueError(f"unknown type {name!r}")
            return dataclass(**{k: inner(v) for k, v in values.items()})
        if special is None:
            raise ValueError(f"unknown mark {key!r}")
        return special(key, content)

    return inner(document)
