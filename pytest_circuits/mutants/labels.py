"""Tasks with other labels: prompts stay, answers and foils change. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import MutationError
from ..tasks.base import PromptPair, Task
from .base import Mutation, applied

Relabel = Callable[[Sequence[PromptPair]], tuple[PromptPair, ...]]


def relabelled(task: Task, mutation: Mutation) -> Task:
    """The task changed by the mutation's operator. Raises `MutationError` for a task that it cannot change."""
    changed = applied(mutation, task, mutation.random())
    if not isinstance(changed, Task):
        raise MutationError(f"mutant {mutation.operator!r} returned a {type(changed).__name__}, not a Task")
    if changed.fingerprint == task.fingerprint:
        raise MutationError(f"{mutation.name} does not change task {task.name!r}")
    return changed


def with_pairs(task: Task, relabel: Relabel, note: str) -> Task:
    """The task with relabelled pairs. The first pairs of an extended task are relabelled by themselves, so that they are the same with
    and without the extension; pairs of the continuation, which replace pairs that do not fit a tokenizer, keep their labels.
    """
    before = None if task.base is None else with_pairs(task.base, relabel, note)
    first = () if before is None else before.pairs
    pairs = (*first, *relabel(task.pairs[len(first) :]))
    return replace(task, pairs=pairs, base=before, provenance={**task.provenance, "relabelled": note})
