"""Made-up results for `--circuits-plan`: well-formed, so that a property asks for all that it would ask for, and nothing else.

Nothing here is measured, stored or shown. They look as friendly as a real model could: every circuit is alike, and the intact
model is always right.
"""

from __future__ import annotations

import json
from hashlib import sha256

import numpy as np

from .. import results
from ..requests import Ablate, Attribute, Conserve, Norms, Sweep
from ..results import Attribution, Bools, Description, Encoded, Outcome, SweepOutcome
from ..tasks.base import Task
from ..units import Universe

MARK = "invented"


def description(universe: Universe) -> Description:
    """A model of this shape."""
    return Description(MARK, MARK, 0, universe, "float32")


def encoded(task: Task) -> Encoded:
    """The task as if all its pairs fitted the tokenizer."""
    groups = tuple(pair.group if pair.group is not None else f"#{i}" for i, pair in enumerate(task))
    prompts = tuple(sha256(repr(pair.clean).encode()).hexdigest()[:12] for pair in task)
    return Encoded(len(task), groups, MARK, prompts=prompts)


Measured = Attribution | Outcome | results.Norms | results.Conservation


def result(request: Attribute | Ablate | Sweep | Norms | Conserve, universe: Universe, n: int) -> Measured:
    """A result of the right shapes for `n` examples."""
    if isinstance(request, Attribute):
        return _attribution(request, universe, n)
    if isinstance(request, Norms):
        return results.Norms(np.ones(universe.components, np.float32), universe.component_names)
    if isinstance(request, Conserve):
        boundaries = ("embeddings", *(f"L{layer}" for layer in range(universe.layers)))
        return results.Conservation(boundaries, np.ones((n, len(boundaries))), np.ones(n))
    intact = _outcome(np.ones(n, bool))
    if isinstance(request, Sweep):
        one = _outcome(_half(n, universe.components))
        return SweepOutcome(one.correct, one.metric, one.log_prob, intact, universe.component_names)
    if json.loads(request.options).get("each"):
        return _outcome(_half(1, n))
    everything = universe.size(request.level)
    whole = [not s if request.mode == "remove" else len(s) == everything for s in request.sets]
    correct = np.where(np.asarray(whole, bool)[:, None], True, _half(len(request.sets), n))
    return _outcome(correct)


def _attribution(request: Attribute, universe: Universe, n: int) -> Attribution:
    rng = np.random.default_rng(0)
    units = universe.names(request.level)
    rows = 1 if request.reduce else n
    strength = rng.permutation(len(units)).astype(np.float32) + 1
    return Attribution(
        np.broadcast_to(strength, (rows, len(units))), units, request.method, request.level, request.metric, np.arange(rows), {MARK: True}
    )


def _half(*shape: int) -> Bools:
    return np.random.default_rng(1).random(shape) < 0.5


def _outcome(correct: Bools) -> Outcome:
    rng = np.random.default_rng(2)
    metric = np.where(correct, 1.0, -1.0) * (1 + rng.random(correct.shape))
    return Outcome(correct, metric.astype(np.float32), -np.abs(metric).astype(np.float32))
