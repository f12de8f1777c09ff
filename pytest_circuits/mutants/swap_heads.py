"""Two heads write with each other's output weights."""

from __future__ import annotations

from ..errors import MutationError
from .surgery import Surgery

FACTS = {"of": "pair", "options": {}}


def swap_heads(surgery: Surgery, one: str, other: str) -> None:
    """Exchange the rows of the output projections that read two heads, which may lie in two layers. Done twice it undoes itself.

    Queries, keys and values stay: two heads of one layer that traded all of their weights would be the same model under other names.
    """
    if one == other:
        raise MutationError(f"{one} cannot be swapped with itself")
    first, second = surgery.head(one), surgery.head(other)
    kept = first.clone()
    first.copy_(second)
    second.copy_(kept)
