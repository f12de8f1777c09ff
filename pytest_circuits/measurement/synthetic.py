"""Made-up results for `--circuits-plan`: well-formed, so that a property asks for all that it would ask for, and nothing else.

Nothing here is measured, stored or shown. They look as friendly as a real model could: the circuits of a task are alike on all of its
prompts and for all models, and the intact model is always right. Tasks, methods and sets differ, drawn by a seed that is made of the
request, so that tasks can be told apart and the same request has the same result in every process.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import numpy as np

from ..core import results
from ..core.results import Attribution, Bools, Description, Encoded, Outcome, SweepOutcome
from ..core.sources import ModelSource, TaskSource
from ..core.units import Universe
from ..tasks.base import Task
from .incremental import unextended
from .requests import ALL, Ablate, Attribute, Conserve, MeasureNorms, Sweep

MARK = "invented"


def description(universe: Universe, model: ModelSource) -> Description:
    """A model of this shape; another source is another model."""
    return Description(_digest(replace(model, name="")), MARK, 0, universe, "float32")


def encoded(task: Task) -> Encoded:
    """The task as if all its pairs fitted the tokenizer."""
    groups = tuple(pair.group if pair.group is not None else f"#{i}" for i, pair in enumerate(task))
    prompts = tuple(sha256(repr(pair.clean).encode()).hexdigest()[:12] for pair in task)
    return Encoded(len(task), groups, _digest(task.fingerprint), prompts=prompts)


Measured = Attribution | Outcome | results.ComponentNorms | results.Conservation


def result(request: Attribute | Ablate | Sweep | MeasureNorms | Conserve, universe: Universe, n: int) -> Measured:
    """A result of the right shapes for `n` examples."""
    if isinstance(request, Attribute):
        return _attribution(request, universe, n)
    if isinstance(request, MeasureNorms):
        return results.ComponentNorms(np.ones(universe.components, np.float32), universe.component_names)
    if isinstance(request, Conserve):
        boundaries = ("embeddings", *(f"L{layer}" for layer in range(universe.layers)))
        return results.Conservation(boundaries, np.ones((n, len(boundaries))), np.ones(n))
    rng = _drawn(replace(request, model=_NO_MODEL))
    intact = _outcome(np.ones(n, bool), rng, request.metric)
    if isinstance(request, Sweep):
        one = _outcome(_some(rng, n, universe.components), rng, request.metric)
        return SweepOutcome(one.correct, one.metric, one.log_prob, intact, universe.component_names)
    if json.loads(request.options).get("each"):
        return _outcome(_some(rng, 1, n), rng, request.metric)
    everything = universe.size(request.level)
    whole = [not s if request.mode == "remove" else len(s) == everything for s in request.sets]
    correct = np.where(np.asarray(whole, bool)[:, None], True, _some(rng, len(request.sets), n))
    return _outcome(correct, rng, request.metric)


def _attribution(request: Attribute, universe: Universe, n: int) -> Attribution:
    whole = replace(request, model=_NO_MODEL, task=unextended(request.task), part=ALL, reduce=None)  # parts of it agree with each other
    rng = _drawn(whole)
    units = universe.names(request.level)
    rows = 1 if request.reduce else n
    common = np.random.default_rng(0).permutation(len(units))  # tasks share a part of their circuits
    strength = (4 * common + rng.permutation(len(units))).astype(np.float32) + 1
    return Attribution(
        np.broadcast_to(strength, (rows, len(units))), units, request.method, request.level, request.metric, np.arange(rows), {MARK: True}
    )


_NO_MODEL = ModelSource("")


def _drawn(request: Attribute | Ablate | Sweep) -> np.random.Generator:
    """Random numbers for a request; what a task is called does not matter."""
    task: TaskSource = replace(request.task, name="")
    return np.random.default_rng(int(_digest(replace(request, task=task)), 16))


def _digest(value: object) -> str:
    return sha256(f"{MARK} {value!r}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _some(rng: np.random.Generator, *shape: int) -> Bools:
    """Right answers of a model that was damaged; few enough for the loss to be clear of noise."""
    return rng.random(shape) < 0.3


def _outcome(correct: Bools, rng: np.random.Generator, metric: str) -> Outcome:
    """Probabilities lie in [0, 1], their logarithms below 0; a logit difference is positive where the answer is right."""
    size = 1 + rng.random(correct.shape)
    log_prob = np.where(correct, -0.25, -1.0) * size
    values = {"prob": np.exp(log_prob), "log_prob": log_prob}.get(metric, np.where(correct, size, -size))
    return Outcome(correct, values.astype(np.float32), log_prob.astype(np.float32))
