"""Tasks in JSONL files: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..errors import TaskError
from .base import Task
from .records import pair_from, refuse_degenerate


class Parameters(BaseModel):
    """Parameters of a task that is read from a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    n: Annotated[int | None, Field(ge=1, description="use the first n pairs (default: all)")] = None
    scoring: Annotated[Literal["choices", "argmax"], Field(description="how an answer is correct")] = "choices"
    stop: Annotated[Literal["digits"] | None, Field(description="`digits`: no digit may follow the answer")] = None


def read(path: str | Path, parameters: Parameters | None = None, name: str | None = None) -> Task:
    """The task in a file; every line is checked, also beyond the first n.

    Raises `TaskError` with `file:line` for what cannot be read, is no pair, or is degenerate, and when there are fewer than n pairs.
    """
    chosen = parameters or Parameters()
    path = Path(path)
    pairs = [pair_from(record, where) for record, where in _records(path)]
    if not pairs:
        raise TaskError(f"{path}: no prompt pairs in this file; it needs one JSON object a line")
    refuse_degenerate(pairs, str(path))
    if chosen.n is not None and chosen.n > len(pairs):
        raise TaskError(f"{path}: n={chosen.n} asks for more than the {len(pairs)} pairs in this file; lower n or leave it out")
    provenance = {"file": path.name, **chosen.model_dump(mode="json")}
    return Task(name or path.stem, tuple(pairs[: chosen.n]), chosen.scoring, chosen.stop, provenance=provenance)


def _records(path: Path) -> Iterator[tuple[Any, str]]:
    for number, line in enumerate(_decoded(path).split("\n"), 1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                yield json.loads(line, object_pairs_hook=partial(_unique, where)), where
            except (ValueError, RecursionError) as problem:
                what = f"{problem.msg}, column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else str(problem)
                raise TaskError(f"{where}: not a JSON object ({what}); each line must be one complete object") from None


def _decoded(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise TaskError(f"{path}: cannot read the task file: {problem.strerror or problem}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise TaskError(f"{path}:{line}: not UTF-8 (byte 0x{content[problem.start]:02x}); save the file as UTF-8") from None


def _unique(where: str, items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) < len(items):
        double = next(key for i, (key, _) in enumerate(items) if key in dict(items[:i]))
        raise TaskError(f"{where}: the field {double!r} is given twice")
    return found
