"""Names that must not repeat: the second `x` becomes `x-2`."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def unique_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """`name`, or the first of `name-2`, `name-3` … that is not taken."""
    candidate, number = name, 1
    while is_taken(candidate):
        number += 1
        candidate = f"{name}-{number}"
    return candidate


def unique_names(names: Iterable[str]) -> list[str]:
    """The names in order, those that repeat numbered."""
    taken: dict[str, None] = {}
    for name in names:
        taken[unique_name(name, taken.__contains__)] = None
    return list(taken)
