"""The bytes of one stored measurement: a safetensors file whose metadata names what it is and carries a checksum over everything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from .codec import pack, unpack
from .version import MEASUREMENT_VERSION, libraries

SCHEMA = "1"
_DOCUMENT = "document"


class DamagedError(Exception):
    """The bytes are not a measurement of this key that this version can read; the message says in what way."""


def dump(value: Any, *, key: str, kind: str, request: str) -> bytes:
    """`value` as bytes for the entry `key`; `request` says in words what was measured."""
    document, arrays = pack(value)
    tensors = {_DOCUMENT: np.frombuffer(document.encode(), np.uint8), **{f"array.{name}": a for name, a in arrays.items()}}
    metadata = {
        "schema": SCHEMA,
        "key": key,
        "kind": kind,
        "request": request.encode("utf-8", "replace").decode(),  # paths may hold bytes that are not text
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": json.dumps({"measurement": MEASUREMENT_VERSION, **libraries()}, sort_keys=True),
    }
    return save_tensors(tensors, metadata | {"sha256": _checksum(metadata, tensors)})


def load(data: bytes, key: str) -> Any:
    """The value stored under `key`. Raises `DamagedError`."""
    metadata = read_metadata(data)
    if metadata.get("schema") != SCHEMA:
        raise DamagedError(f"its schema is {metadata.get('schema')!r} instead of {SCHEMA!r}")
    if metadata.get("key") != key:
        raise DamagedError("it is the measurement of another key")
    try:
        tensors = load_tensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as problem:
        raise DamagedError(f"its tensors cannot be read ({problem})") from None
    if _checksum({k: v for k, v in metadata.items() if k != "sha256"}, tensors) != metadata.get("sha256"):
        raise DamagedError("its checksum does not match its content")
    try:
        arrays = {name.removeprefix("array."): a for name, a in tensors.items() if name != _DOCUMENT}
        return unpack(tensors[_DOCUMENT].tobytes().decode(), arrays)
    except (ValueError, KeyError, TypeError) as problem:
        raise DamagedError(f"its content has another form ({problem})") from None


def read_metadata(data: bytes) -> dict[str, str]:
    """The metadata in the header of a safetensors file. Raises `DamagedError`."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise DamagedError("it is empty" if not data else "it is cut short or not a safetensors file")
    try:
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
    except (ValueError, KeyError, TypeError):
        raise DamagedError("its header cannot be read") from None
    if not isinstance(metadata, dict):
        raise DamagedError("its header cannot be read")
    return metadata


def _checksum(metadata: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        if array.size:
            digest.update(np.asarray(array, order="C").reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
