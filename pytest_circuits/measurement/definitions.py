"""Digests of code from outside this package, so that a stored measurement is not used again after that code was changed."""

from __future__ import annotations

import hashlib
import inspect
import secrets
from pathlib import Path
from typing import Any

from ..registry import Registry

_SESSION = secrets.token_hex(16)
_PACKAGE = __name__.partition(".")[0]


def entry_digest(registry: Registry, name: str) -> str | None:
    """A digest of the file that defines a third party's entry of a registry; None for built-in entries."""
    return None if name in registry.builtin else source_digest(registry.get(name))


def class_digest(cls: type) -> str | None:
    """A digest of the file that defines a class; None for a class of this package."""
    return None if cls.__module__.partition(".")[0] == _PACKAGE else source_digest(cls)


def source_digest(definition: Any) -> str:
    """A digest of the file that defines a class, a function, or the class of an object.

    Code without a file, such as code typed at a prompt, has another digest in each session, so that its measurements are not reused.
    """
    try:
        has_file = inspect.isclass(definition) or inspect.isroutine(definition)
        path = inspect.getsourcefile(definition if has_file else type(definition))
        return hashlib.sha256(Path(path or "").read_bytes()).hexdigest()
    except (OSError, TypeError):
        return f"{_SESSION}-{id(definition)}"
