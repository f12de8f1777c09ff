"""Tasks with other labels. No torch: prompts stay, answers and foils change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import MutationError
from ..tasks.base import PromptPair, Task
from .base import Mutation, applied

Relabel = Callable[[Sequence[PromptPair]], tuple[PromptPair, ...]]


def relabelled(task: Task, mutation: Mutation) -> Task:
    """The task as the mutation's operator leaves it. Raises `MutationError` for a task that it cannot change."""
    made = applied(mutation, task, mutation.random())
    if not isinstance(made, Task):
        raise MutationError(f"mutant {mutation.operator!r} returned a {type(made).__name__}, not a Task")
    if made.fingerprint == task.fingerprint:
        raise MutationError(f"{mutation.name} leaves task {task.name!r} as it is")
    return made


def with_pairs(task: Task, relabel: Relabel, note: str) -> Task:
    """The task with relabelled pairs. Of one that was extended the pairs that it had before are relabelled by themselves, so that they
    are the same in both; pairs of the continuation, which take the place of those that a tokenizer refuses, keep their labels.
    """
    before = None if task.base is None else with_pairs(task.base, relabel, note)
    first = () if before is None else before.pairs
    pairs = (*first, *relabel(task.pairs[len(first) :]))
    return replace(task, pairs=pairs, base=before, provenance={**task.provenance, "relabelled": note})
