"""Answers, with their foils, are moved to other examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

from ..errors import MutationError
from ..tasks.base import PromptPair, Task
from .labels import with_pairs

FACTS = {"of": "labels", "options": {}}


def shuffle_labels(task: Task, random: Random) -> Task:
    """Every example gets the answer and foils of another: a random cycle through the examples."""
    if len({(pair.answer, pair.foils) for pair in task}) < 2:
        raise MutationError(f"all examples of task {task.name!r} have the same answer and foils: there is nothing to shuffle")
    return with_pairs(task, partial(_dealt, random=random), "answers shuffled across examples")


def _dealt(pairs: Sequence[PromptPair], random: Random) -> tuple[PromptPair, ...]:
    order = random.sample(range(len(pairs)), len(pairs))
    relabelled = list(pairs)
    for index, donor in zip(order, order[1:] + order[:1], strict=True):
        label = pairs[donor]
        relabelled[index] = replace(pairs[index], answer=label.answer, foils=label.foils, corrupt_answer=label.corrupt_answer)
    return tuple(relabelled)
