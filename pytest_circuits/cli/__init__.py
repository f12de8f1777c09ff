"""The command `pytest-circuits`."""

from __future__ import annotations

from .commands import main

__all__ = ["main"]
