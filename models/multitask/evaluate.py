"""Accuracy of a model on a task, by the scoring that claims use."""

from __future__ import annotations

from typing import Any

from pytest_circuits.subject import Subject
from pytest_circuits.tasks import Task


def accuracy(model: Any, tokenizer: Any, task: Task) -> float:
    """Share of the task's pairs that the intact model answers correctly, including that a number ends."""
    return float(Subject(model.eval(), tokenizer).ablate_many(task, [()]).correct.mean())
