"""The damages by name, and their loaders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import cut, permutation, retraining, rounding
from .original import original

Parts = tuple[Any, Any]

EXACT: dict[str, Callable[[Any], dict[str, Any]]] = {
    "zeroed-head": cut.damage,
    "int8": rounding.damage,
    "permuted": permutation.damage,
}
DAMAGES = (*EXACT, "fine-tuned")


def damaged(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Model, tokenizer and a record of what was done, for an exact damage. Raises `ValueError` for an unknown name."""
    if name not in EXACT:
        raise ValueError(f"no exact damage {name!r}; there are {', '.join(EXACT)}")
    model, tokenizer = original()
    record = EXACT[name](model)
    return model, tokenizer, record


def zeroed_head() -> Parts:
    """multitask-llama without the head that most tasks share, and its tokenizer."""
    return damaged("zeroed-head")[:2]


def int8() -> Parts:
    """multitask-llama with linear layers rounded to int8 and back, and its tokenizer."""
    return damaged("int8")[:2]


def permuted() -> Parts:
    """multitask-llama with heads and neurons under other indices, and its tokenizer."""
    return damaged("permuted")[:2]


def fine_tuned() -> Parts:
    """The shipped fine-tuned release in float32, and its tokenizer."""
    return retraining.load()


LOADERS: dict[str, Callable[[], Parts]] = {"zeroed-head": zeroed_head, "int8": int8, "permuted": permuted, "fine-tuned": fine_tuned}
