"""What a claim's property says about its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def telling(record: Mapping[str, Any]) -> list[str]:
    """Lines that say what was compared with what, from the details of the record; none where nothing was measured."""
    return [] if record["estimate"] is None else list(record["details"].get("notes", ()))
