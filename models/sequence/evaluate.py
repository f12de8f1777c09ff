"""Accuracy by length, by the scoring that claims use.

Greedy decoding gives the whole answer exactly when each teacher-forced argmax is right.
"""

from __future__ import annotations

from typing import Any

from pytest_circuits.subject import Subject
from pytest_circuits.tasks.load import load_task

from .recipes import FURTHER, PUBLISHED, TRAINED, USABLE, Recipe

N = 2000  # prompts a length


def accuracies(model: Any, tokenizer: Any, recipe: Recipe, lengths: tuple[int, ...] = (*TRAINED, *FURTHER), n: int = N) -> dict[int, float]:
    """Share of whole sequences that the intact model gives, by length; of the prompts of `load_task(task, length=…, n=…, seed=0)`."""
    subject = Subject(model.eval(), tokenizer)
    tasks = {length: load_task(recipe.task, n, length=length) for length in lengths}
    return {length: round(float(subject.ablate_many(task, [()]).correct.mean()), 4) for length, task in tasks.items()}


def usable(accuracy: dict[int, float]) -> list[int]:
    """The lengths beyond training at which the model is neither near the floor nor near the ceiling."""
    return [length for length in FURTHER if USABLE[0] <= accuracy[length] <= USABLE[1]]


def summary(accuracy: dict[int, float]) -> dict[str, Any]:
    """What a record says of a model: accuracy by length, that of the published lengths together, and the usable lengths."""
    return {
        "prompts": N,
        "accuracy": {str(length): share for length, share in accuracy.items()},
        "accuracy_published": round(sum(accuracy[length] for length in PUBLISHED) / len(PUBLISHED), 4),
        "usable_lengths": usable(accuracy),
    }
