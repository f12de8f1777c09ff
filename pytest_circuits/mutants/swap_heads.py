"""Two heads write with each other's output weights."""

from __future__ import annotations

from ..errors import MutationError
from .surgery import Surgery

FACTS = {"of": "pair", "options": {}}


def swap_heads(surgery: Surgery, first_name: str, second_name: str) -> None:
    """Exchange the rows of the output projections that read two heads, which may lie in two layers. Done twice it undoes itself.

    Queries, keys and values stay: two heads of one layer that traded all of their weights would be the same model under other names.
    """
    if first_name == second_name:
        raise MutationError(f"{first_name} cannot be swapped with itself")
    first, second = surgery.head(first_name), surgery.head(second_name)
    copy = first.clone()
    first.copy_(second)
    second.copy_(copy)
