"""Results as a JSON document plus arrays, and back, without pickle.

Anything made of the result types of the registered requests, dicts, lists, tuples, strings, numbers, booleans, None and numpy arrays
comes back equal and of the same types. What JSON lacks is written as an object with one key that starts with `$`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.results import CircuitSet
from ..errors import MeasurementError
from .requests import REQUESTS, MeasuredRequest

Arrays = dict[str, NDArray[Any]]
_TYPES: dict[str, type] = {CircuitSet.__name__: CircuitSet}


def _type(name: str) -> type | None:
    """The dataclass of this name among the result types; requests may be registered at any time."""
    for registered in ((), REQUESTS.builtin, REQUESTS):  # entry points are scanned last, since that is slow
        for request in map(REQUESTS.get, registered):
            if issubclass(request, MeasuredRequest):
                _TYPES.update({found.__name__: found for found in request.result_types()})
        if name in _TYPES:
            return _TYPES[name]
    return None


def pack(value: Any) -> tuple[str, Arrays]:
    """The document and its arrays by name. Raises `MeasurementError` naming the place of a value that cannot be stored."""
    arrays: Arrays = {}
    return json.dumps(_encode(value, arrays, "result")), arrays


def unpack(document: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The value that was packed; its arrays are read-only. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
    return _decode(json.loads(document), arrays)


def _encode(value: Any, arrays: Arrays, where: str) -> Any:
    if isinstance(value, np.ndarray) or (isinstance(value, np.generic) and not isinstance(value, np.str_)):
        name = str(len(arrays))
        arrays[name] = _plain(np.asarray(value), where)
        return {"$scalar" if isinstance(value, np.generic) else "$array": name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        items = [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if type(value) is list else {"$tuple": items}
    if isinstance(value, Mapping):
        pairs = [(k, _encode(v, arrays, f"{where}[{k!r}]")) for k, v in value.items()]
        if all(isinstance(k, str) and not k.startswith("$") for k, _ in pairs):
            return dict(pairs)
        return {"$dict": [[_encode(k, arrays, f"a key of {where}"), v] for k, v in pairs]}
    if is_dataclass(value) and _type(type(value).__name__) is type(value):
        content = {f.name: _encode(getattr(value, f.name), arrays, f"{where}.{f.name}") for f in fields(value)}
        return {"$type": [type(value).__name__, content]}
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    raise MeasurementError(f"{where} is a {kind}, which cannot be stored; use numpy arrays and plain values")


def _plain(array: NDArray[Any], where: str) -> NDArray[Any]:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise MeasurementError(f"{where} is an array of {array.dtype}, which cannot be stored; use booleans, integers or floats")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, list):
        return [_decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        key, inside = next(iter(value.items()))
        if key.startswith("$"):
            return _special(key, inside, arrays)
    return {k: _decode(v, arrays) for k, v in value.items()}


def _special(key: str, inside: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if key == "$array":
        array = arrays[inside].view()
        array.flags.writeable = False
        return array
    if key == "$scalar":
        return arrays[inside][()]
    if key == "$tuple":
        return tuple(_decode(item, arrays) for item in inside)
    if key == "$dict":
        return {_decode(k, arrays): _decode(v, arrays) for k, v in inside}
    if key == "$type":
        name, content = inside
        found = _type(name)
        if found is None:
            raise ValueError(f"unknown type {name!r}")
        return found(**{k: _decode(v, arrays) for k, v in content.items()})
    raise ValueError(f"unknown mark {key!r}")
