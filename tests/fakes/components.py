"""Made-up studies: scores, groups and answers that a test states, handed to a property as if they had been measured."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pytest_circuits.core.results import Attribution, ComponentNorms, Description, Encoded, Outcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import Rows, examples_of
from pytest_circuits.measurement.requests import Ablate, Attribute, Describe, Encode, MeasureNorms
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.protocol import Claim


def always(names, mode, n):
    """Whatever is ablated, every answer is right."""
    return np.ones(n, bool)


@dataclass
class Fake:
    """One task: `scores` [n, N]; `correct(set, mode, n)` [n] says which of all n examples are right when a set is removed or kept."""

    scores: np.ndarray
    correct: object = always
    groups: tuple[str, ...] = ()
    chance: float = 0.0

    def __post_init__(self):
        self.scores = np.asarray(self.scores, np.float32)
        self.groups = self.groups or tuple(f"g{i}" for i in range(len(self.scores)))

    def encoded(self):
        return Encoded(len(self.scores), tuple(self.groups), "digest", chance=self.chance)


def estimate(name, parameters, tasks, answer):
    """The estimate of a property, each of its requests being answered by `answer`."""
    prop = PROPERTIES.get(name)
    sources = {task: TaskSource.make(task, "fixture", task) for task in tasks}
    steps = prop.estimate(Claim(prop.name, prop.parameters(**parameters), ModelSource("m", "nowhere"), sources))
    return drive(steps, answer)


@dataclass
class Study:
    """A model of this universe and its tasks; `asked` keeps the requests."""

    universe: Universe
    tasks: dict[str, Fake]
    asked: list = field(default_factory=list)

    def estimate(self, name, **parameters):
        return estimate(name, parameters, self.tasks, self.answer)

    def answer(self, request):
        self.asked.append(request)
        if isinstance(request, Describe):
            return Description("weights", "fake", 1, self.universe, "float32")
        task = self.tasks[request.task.name]
        if isinstance(request, Encode):
            return task.encoded()
        chosen = examples_of(request.part, task.encoded())
        rows = np.arange(len(task.scores)) if chosen is None else chosen
        if isinstance(request, Attribute):
            return Attribution(task.scores[rows], self.universe.names("component"), request.method, "component", request.metric)
        if isinstance(request, MeasureNorms):
            return ComponentNorms(np.arange(self.universe.components, dtype=np.float32), self.universe.names("component"))
        assert isinstance(request, Ablate)
        correct = np.stack([np.asarray(task.correct(frozenset(s), request.mode, len(task.scores)), bool)[rows] for s in request.sets])
        return Outcome(correct, np.where(correct, 1, -1).astype(np.float32), np.zeros(correct.shape, np.float32))


def planted_scores(n, universe, causal, seed=0, noise=0.01):
    """Scores in which the `causal` units are by far the strongest on every example."""
    scores = np.random.default_rng(seed).uniform(0, noise, (n, universe.components))
    scores[:, universe.index(causal)] += 1
    return scores.astype(np.float32)


@dataclass
class Opened:
    """A model that is really run: answers requests as the executor would, without a store."""

    subject: object
    tasks: dict[str, object]

    def estimate(self, name, **parameters):
        return estimate(name, parameters, self.tasks, self.answer)

    def answer(self, request):
        if isinstance(request, Describe):
            return request.execute(self.subject, None, Rows(), None)
        task = self.tasks[request.task.name]
        encoded = Encode(request.model, request.task).execute(self.subject, task, Rows(), None)
        return encoded if isinstance(request, Encode) else request.execute(self.subject, task, request.rows(encoded), None)
