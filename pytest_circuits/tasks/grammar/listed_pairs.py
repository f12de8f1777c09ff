"""Prompt pairs that were drawn one by one, as a self-contained task that a search measures in one go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...core.sources import TaskSource
from ..base import PromptPair, Task

KIND = "drawn"
FIELDS = ("clean", "corrupt", "answer", "foils", "corrupt_answer", "group")  # in the order of `PromptPair`


def drawn_source(
    name: str, pairs: Sequence[PromptPair], scoring: Literal["choices", "argmax"] = "choices", stop: Literal["digits"] | None = None
) -> TaskSource:
    """The source of a task of exactly these pairs, in this order. Pairs that do not fit a tokenizer are left out (`Encoded.kept`)."""
    rows = [[_plain(getattr(pair, field)) for field in FIELDS] for pair in pairs]
    return TaskSource.make(name, KIND, KIND, {"pairs": rows, "scoring": scoring, "stop": stop})


def drawn_task(options: Mapping[str, Any]) -> Task:
    """The task of such a source."""
    pairs = [PromptPair(*map(_text, row)) for row in options["pairs"]]
    return Task(KIND, tuple(pairs), options["scoring"], options["stop"], unfit="drop")


def as_dict(pair: PromptPair) -> dict[str, Any]:
    """The pair's fields that are not empty, as plain values, as a JSONL line or a spec has them."""
    named = {field: _plain(getattr(pair, field)) for field in FIELDS}
    return {field: value for field, value in named.items() if value not in (None, [])}


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _text(value: Any) -> Any:
    return tuple(map(_text, value)) if isinstance(value, list) else value
