"""Results as a JSON document plus arrays, and back, without pickle.

Anything made of the result types of the registered requests, dicts, lists, tuples, strings, numbers, booleans, None and numpy arrays
comes back equal and of the same types (see `core.documents`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.documents import decode, encode
from ..core.results import CircuitSet
from ..errors import MeasurementError
from .requests import REQUESTS, MeasuredRequest

Arrays = dict[str, NDArray[Any]]
_TYPES: dict[str, type] = {CircuitSet.__name__: CircuitSet}


def pack(value: Any) -> tuple[str, Arrays]:
    """The document and its arrays by name. Raises `MeasurementError` naming the place of a value that cannot be stored."""
    arrays: Arrays = {}

    def special(value: Any, where: str) -> dict[str, str] | None:
        if not isinstance(value, np.ndarray) and (not isinstance(value, np.generic) or isinstance(value, np.str_)):
            return None
        name = str(len(arrays))
        arrays[name] = _plain(np.asarray(value), where)
        return {"$scalar" if isinstance(value, np.generic) else "$array": name}

    return json.dumps(encode(value, _result_type, special=special)), arrays


def unpack(document: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The value that was packed; its arrays are read-only. Raises `ValueError`, `KeyError` or `TypeError` for anything else."""

    def special(key: str, name: Any) -> Any:
        if key == "$array":
            array = arrays[name].view()
            array.flags.writeable = False
            return array
        if key == "$scalar":
            return arrays[name][()]
        raise ValueError(f"unknown mark {key!r}")

    return decode(json.loads(document), _result_type, special)


def _result_type(name: str) -> type | None:
    """The dataclass of this name among the result types; requests may be registered at any time."""
    for registered in ((), REQUESTS.builtin, REQUESTS):  # entry points are scanned last, since that is slow
        for request in map(REQUESTS.get, registered):
            if issubclass(request, MeasuredRequest):
                _TYPES.update({result_type.__name__: result_type for result_type in request.result_types()})
        if name in _TYPES:
            return _TYPES[name]
    return None


def _plain(array: NDArray[Any], where: str) -> NDArray[Any]:
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise MeasurementError(f"{where} is an array of {array.dtype}, which cannot be stored; use booleans, integers or floats")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
