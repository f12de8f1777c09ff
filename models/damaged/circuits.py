"""Shared sets of a release, as the table and the model card state them: per-example circuits by EAP at K = 20%, S_P at P = 80%."""

from __future__ import annotations

from collections.abc import Collection
from statistics import mean
from typing import Any

import numpy as np

from models.multitask.data import NAMES, make
from pytest_circuits.core.results import CircuitSet
from pytest_circuits.subject import Subject
from pytest_circuits.tasks import Task

SIZE, P, N = "20%", 0.8, 256
HALVINGS = 50


def tasks() -> dict[str, Task]:
    """The six tasks, as `load_task(name, n=256)` makes them."""
    return {name: make(name, N) for name in NAMES}


def circuits(subject: Subject, task: Task) -> CircuitSet:
    """The circuit of each example."""
    return subject.attribute(task, method="eap").circuits(SIZE)


def jaccard(one: Collection[str], other: Collection[str]) -> float:
    """|A ∩ B| / |A ∪ B|; raises `ValueError` for two empty sets."""
    if not one and not other:
        raise ValueError("two empty sets have no Jaccard similarity")
    return len(set(one) & set(other)) / len(set(one) | set(other))


def ceiling(found: CircuitSet, seed: int = 0) -> float:
    """What noise leaves of the similarity: the mean Jaccard of the shared sets of two halves, over 50 random halvings."""
    random, half = np.random.default_rng(seed), len(found) // 2
    orders = [random.permutation(len(found)) for _ in range(HALVINGS)]
    return mean(jaccard(found.take(order[:half]).shared(P), found.take(order[half:]).shared(P)) for order in orders)


def opened(parts: tuple[Any, Any]) -> Subject:
    """A model and its tokenizer, for measuring."""
    return Subject(parts[0].eval(), parts[1])
