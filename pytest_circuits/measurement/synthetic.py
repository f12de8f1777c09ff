"""Made-up results for `--circuits-plan`: well-formed, so that a property asks for all that it would ask for, and nothing else.

Nothing here is measured, stored or shown. Synthetic results are as favourable as a real model's could be: the circuits of a task are alike
on all of its prompts and for all models, and the intact model is always right. Tasks, methods and sets differ, drawn by a seed that is made
of the request, so that tasks can be told apart and the same request has the same result in every process. Each request type makes its own
result, with the helpers of this module.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from ..core.results import Bools, Encoded, Outcome
from ..core.sources import ModelSource
from ..tasks.base import Task

MARK = "invented"
_NO_MODEL = ModelSource("")


def digest(value: object) -> str:
    """A stand-in for a fingerprint."""
    return sha256(f"{MARK} {value!r}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def encoded_task(task: Task) -> Encoded:
    """The task as if all its pairs fitted the tokenizer."""
    groups = tuple(pair.group if pair.group is not None else f"#{i}" for i, pair in enumerate(task))
    prompts = tuple(sha256(repr(pair.clean).encode()).hexdigest()[:12] for pair in task)
    return Encoded(len(task), groups, digest(task.fingerprint), prompts=prompts)


def generator(request: Any) -> np.random.Generator:
    """Random numbers for a request about a task; the model and the task's name do not matter."""
    anonymous = replace(request, model=_NO_MODEL, task=replace(request.task, name=""))
    return np.random.default_rng(int(digest(anonymous), 16))


def some_correct(rng: np.random.Generator, *shape: int) -> Bools:
    """Right answers of a model that was damaged; few enough for the loss to be clear of noise."""
    return rng.random(shape) < 0.3


def outcome(correct: Bools, rng: np.random.Generator, metric: str) -> Outcome:
    """Probabilities lie in [0, 1], their logarithms below 0; a logit difference is positive where the answer is right."""
    size = 1 + rng.random(correct.shape)
    log_prob = np.where(correct, -0.25, -1.0) * size
    values = {"prob": np.exp(log_prob), "log_prob": log_prob}.get(metric, np.where(correct, size, -size))
    return Outcome(correct, values.astype(np.float32), log_prob.astype(np.float32))
