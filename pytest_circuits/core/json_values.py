"""Values that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """The value as plain JSON types: numpy scalars and arrays become numbers and lists, numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)  # no subclasses: xdist cannot send them
    return (str.__str__(value) if isinstance(value, str) else str(value)).encode("utf-8", "replace").decode()
