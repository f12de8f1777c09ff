"""Two made-up models on the same prompts: scores and answers that a test states, answered by the model's name."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.measurement.driver import drive
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.payload import plain_json
from pytest_circuits.properties.protocol import BaselineReference, Claim
from tests.fakes.components import Fake, Study, planted_scores

UNIVERSE = Universe(2, 4)
N = 80
TASKS = {name: TaskSource.make(name, "fixture", name) for name in ("t", "other")}
RELEASED = ModelSource("released", "r")


def world(causal=("L0H1", "L1MLP"), wrong=(), seed=0, universe=UNIVERSE, digest="digest", scores=None, groups=()):
    """A model whose circuits are the `causal` units, and which is wrong on these examples. Noise makes the scores differ by seed."""
    scores = planted_scores(N, universe, list(causal), seed, 0.3) if scores is None else scores

    def correct(names, mode, n):
        right = np.ones(n, bool)
        right[list(wrong)] = False
        hurt = bool(names & set(causal)) if mode == "remove" else False
        return right & ~(np.arange(n) % 3 > 0) if hurt else right

    class Coded(Fake):
        def encoded(self):
            return replace(super().encoded(), digest=digest)

    return Study(universe, {"t": Coded(scores, correct, groups)})


def permuted(study, order):
    """The same model with heads under other indices: entry i of `order` is the old index of what stands at i, in each layer."""
    heads = study.universe.heads
    columns = [layer * (heads + 1) + i for layer in range(study.universe.layers) for i in (*order, heads)]
    old = study.tasks["t"]
    return Study(study.universe, {"t": type(old)(old.scores[:, columns], old.correct, old.groups)})


def drift(now, against, *, of=None, **parameters):
    """The estimate of the drift of model `now`; `against` is another world, or what a baseline holds."""
    prop = PROPERTIES.get("drift")
    of = {"reuse": {"task": "t", "p": 0.8, "size": 3}} if of is None else of
    p = prop.parameters.model_validate({"of": of, **parameters})
    recorded = isinstance(against, BaselineReference) or against is None
    claim = Claim("drift", p, ModelSource("candidate", "c"), TASKS, against=against if recorded else RELEASED)
    steps = prop.estimate(claim)

    def answer(one):
        return (against if one.model.name == "released" else now).answer(one)

    return drive(steps, answer)


def baseline(study, **parameters):
    """What a baseline holds after the release was measured with these parameters; the run that writes it and one that reads it agree."""
    fresh = drift(study, BaselineReference(None, "no baseline", writes=True), **parameters)
    assert fresh.details["compared_with_itself"] and fresh.value == 0
    of = {"reuse": {"task": "t", "p": 0.8, "size": 3}} if parameters.get("of") is None else parameters["of"]
    p = PROPERTIES.get("drift").parameters.model_validate({**parameters, "of": of})
    entry = json.loads(json.dumps({"parameters": p.model_dump(mode="json"), "kept": plain_json(fresh.payload)}, allow_nan=False))
    return BaselineReference(entry, command="pytest again", when="again")
