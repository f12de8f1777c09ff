"""Answer and first foil are swapped on every example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ..errors import MutationError
from ..tasks.base import PromptPair, Task
from .labels import with_pairs

FACTS = {"of": "labels", "options": {}}


def swap_labels(task: Task, random: Random) -> Task:
    """Swap answer and first foil. A competence gate should make every claim on the task invalid."""
    if not all(pair.foils for pair in task):
        raise MutationError(f"task {task.name!r} has examples without foils, so their answers cannot be swapped")
    return with_pairs(task, _swapped, "answers and foils swapped")


def _swapped(pairs: Sequence[PromptPair]) -> tuple[PromptPair, ...]:
    # the text after the corrupt prompt stays the same
    return tuple(
        replace(
            p,
            answer=p.foils[0],
            foils=(p.answer, *p.foils[1:]),
            corrupt_answer=p.foils[0] if p.corrupt_answer is None else p.corrupt_answer,
        )
        for p in pairs
    )
