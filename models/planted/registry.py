"""The planted circuits by name."""

from __future__ import annotations

from collections.abc import Callable

from . import backup, copy_head, hero_bloat, induction, memory, two_step
from .truth import Planted

CIRCUITS: dict[str, Callable[[], Planted]] = {
    "copy_head": copy_head.build,
    "two_step": two_step.build,
    "backup": backup.build,
    "memory": memory.build,
    "hero_bloat": hero_bloat.build,
    "induction": induction.build,
}


def plant(name: str) -> Planted:
    """Build a planted model. Raises `ValueError` for an unknown name."""
    if name not in CIRCUITS:
        raise ValueError(f"no planted circuit {name!r}; there are {', '.join(CIRCUITS)}")
    return CIRCUITS[name]()
