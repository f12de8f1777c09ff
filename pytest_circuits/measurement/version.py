"""What a measurement depends on besides its inputs: this package's way of measuring, and the libraries that do the arithmetic."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

# Raise this whenever the same request would now give other numbers: a formula, a hook site, a default, the
# order of ties, padding, the encoding of prompts, or the fields of a result changed. Stored measurements of the older
# number are then left alone and measured anew. Refactorings, messages and speed need no new number.
MEASUREMENT_VERSION = 6

LIBRARIES = ("torch", "transformers", "tokenizers")
STATISTICS_LIBRARIES = ("numpy", "scipy")


@cache
def libraries() -> dict[str, str | None]:
    """Installed versions by name, read from package metadata without importing anything; None where not installed."""
    return {name: _installed(name) for name in LIBRARIES}


@cache
def statistics_libraries() -> dict[str, str | None]:
    """The same of the libraries that estimate from measurements."""
    return {name: _installed(name) for name in STATISTICS_LIBRARIES}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
