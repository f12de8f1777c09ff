"""Longer versions of a task: the same pairs, followed by further ones."""

from __future__ import annotations

from dataclasses import replace

from ..errors import TaskError
from .base import PromptPair, Task


def grown(task: Task, n: int) -> Task:
    """The task with `n` pairs: its pairs, then those of its continuation whose clean prompts are new.

    The first pairs stay as they are, even where a tokenizer has some of them replaced (`Task.base`), so results on them stay valid.
    Raises `TaskError` for a task without a continuation, or with one that is too short.
    """
    if n <= len(task):
        raise TaskError(f"task {task.name!r} already has {len(task)} pairs, so it cannot be extended to {n}")
    if task.more is None:
        raise TaskError(f"task {task.name!r} has no more than {len(task)} pairs: lower max_n to that number, or leave it out")
    pairs = list(task.pairs)
    seen = {pair.clean for pair in pairs}
    for pair in task.more():
        if pair.clean not in seen:
            seen.add(pair.clean)
            pairs.append(pair)
            if len(pairs) == n:
                return _continued(task, pairs)
    raise TaskError(f"task {task.name!r} has only {len(pairs)} different prompts with these parameters: lower max_n ({n}) to at most that")


def _continued(task: Task, pairs: list[PromptPair]) -> Task:
    more = task.more
    assert more is not None
    taken = {(pair.clean, pair.corrupt) for pair in pairs}
    return replace(task, pairs=tuple(pairs), base=task, more=lambda: (pair for pair in more() if (pair.clean, pair.corrupt) not in taken))
