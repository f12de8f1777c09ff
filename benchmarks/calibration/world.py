"""Made-up models: tables of scores, and a function of what is ablated; they answer the requests of a property as a measured model would.

No torch. `World.ask` drives the property's own generator, so that splits, shared sets, controls, intervals and refusals are the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_circuits.core.results import Attribution, ComponentNorms, Conservation, Description, Encoded, Outcome, SweepOutcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Estimate
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import examples_of
from pytest_circuits.measurement.requests import (
    Ablate,
    Attribute,
    Conserve,
    Describe,
    Encode,
    LoadTask,
    MeasureNorms,
    PlanBoundary,
    Sweep,
)
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.protocol import Claim
from pytest_circuits.tasks.base import PromptPair, Task
from pytest_circuits.tasks.grammar.listed_pairs import KIND as DRAWN

Array = NDArray[Any]
MODEL = ModelSource("m", "m")


class Intervention(NamedTuple):
    """What is done to the model: `live` bool [units] of the level says what is left as it was; `factor` is that of a scaling."""

    live: Array
    level: str
    site: str
    kind: str
    metric: str
    factor: float | None


class Behaviour(NamedTuple):
    """What comes of it on each example, [n] each."""

    correct: Array
    metric: Array
    log_prob: Array


def plain(correct: Array) -> Behaviour:
    """A model of which only the correctness of answers matters."""
    value = np.where(correct, 1.0, -1.0)
    return Behaviour(np.asarray(correct, bool), value, value - 2.0)


@dataclass
class Sample:
    """One task's examples: `scores` [n, N] of components, or by method; `neurons` [n, units], or by site; `behave` as a function.

    `totals` [n, boundaries] and `metric` [n] are what a check of conservation finds.
    """

    scores: Array | Mapping[str, Array]
    behave: Callable[[Intervention], Behaviour]
    groups: tuple[str, ...] = ()
    neurons: Array | Mapping[str, Array] | None = None
    prompts: tuple[str, ...] = ()
    chance: float = 0.0
    digest: str = "digest"
    norms: Array | None = None
    totals: Array | None = None
    metric: Array | None = None

    @property
    def n(self) -> int:
        """How many examples."""
        table = self.scores
        return len(table if isinstance(table, np.ndarray) else next(iter(table.values())))

    def encoded(self) -> Encoded:
        """The examples as a tokenizer sees them; each is a group of its own unless stated otherwise."""
        groups = self.groups or tuple(f"g{i}" for i in range(self.n))
        return Encoded(self.n, groups, self.digest, chance=self.chance, prompts=self.prompts)


@dataclass
class World:
    """A model of this universe, and its tasks. `asked` keeps the requests."""

    universe: Universe
    tasks: Mapping[str, Sample]
    fingerprint: str = "weights"
    asked: list[Any] = field(default_factory=list)

    def ask(self, name: str, series: Mapping[str, World] | None = None, **parameters: Any) -> Estimate:
        """The estimate of a property on this world, or on a series of worlds. Raises what the property raises."""
        return ask(name, parameters, {MODEL.name: self, **(series or {})}, tuple(series or ()))

    def answer(self, request: Any) -> Any:
        """The result of a request."""
        self.asked.append(request)
        if isinstance(request, Describe):
            return Description(self.fingerprint, "made-up", 1, self.universe, "float32")
        if isinstance(request, PlanBoundary):
            return None
        if isinstance(request, LoadTask):
            return _written(request.task.name, self.tasks[request.task.name])
        if request.task.kind == DRAWN:
            return self._of_drawn(request)
        task = self.tasks[request.task.name]
        encoded = task.encoded()
        if isinstance(request, Encode):
            return encoded
        chosen = examples_of(request.part, encoded)
        rows = np.arange(task.n) if chosen is None else chosen
        if isinstance(request, MeasureNorms):
            norms = np.arange(1, self.universe.components + 1) if task.norms is None else task.norms
            return ComponentNorms(np.asarray(norms, np.float32), self.universe.component_names)
        if isinstance(request, Conserve):
            return self._conservation(task, rows)
        if isinstance(request, Attribute):
            return self._attribution(task, request, rows)
        intact = self._outcome([self._behave(task, request, "component", None)], rows)
        if isinstance(request, Sweep):
            each = [self._behave(task, request, "component", {unit}) for unit in self.universe.component_names]
            found = self._outcome(each, rows)
            base = Outcome(intact.correct[0], intact.metric[0], intact.log_prob[0])
            return SweepOutcome(found.correct.T, found.metric.T, found.log_prob.T, base, self.universe.component_names)
        assert isinstance(request, Ablate)
        return self._outcome([self._behave(task, request, request.level, set(one), request.mode) for one in request.sets], rows)

    def _of_drawn(self, request: Any) -> Any:
        """Of pairs that were drawn from a task's rows."""
        places = [row[0].rpartition("/") for row in request.task.options["pairs"]]
        task, rows = self.tasks[places[0][0]], np.asarray([int(row) for _, _, row in places])
        if isinstance(request, Encode):
            return Encoded(len(rows), tuple(f"g{i}" for i in range(len(rows))), "drawn")
        assert isinstance(request, Ablate)
        if not json.loads(request.options).get("each"):
            return self._outcome([self._behave(task, request, request.level, set(one), request.mode) for one in request.sets], rows)
        each = [self._behave(task, request, request.level, set(one), request.mode) for one in request.sets]
        own = [self._outcome([one], rows[[i]]) for i, one in enumerate(each)]
        return Outcome(*(np.concatenate([getattr(one, name) for one in own], 1) for name in Behaviour._fields))

    def _behave(self, task: Sample, request: Any, level: str, names: Iterable[str] | None, mode: str = "remove") -> Behaviour:
        options = json.loads(request.options)
        site = options.get("site", "mlp_activation")
        named = np.zeros(self.universe.size(level), bool)
        named[self.universe.index(names or (), level)] = True
        live = named if mode == "keep" else ~named
        return task.behave(Intervention(live, level, site, request.kind, request.metric, options.get("factor")))

    @staticmethod
    def _outcome(each: Sequence[Behaviour], rows: Array) -> Outcome:
        correct, metric, log_prob = (np.stack([np.asarray(getattr(one, name))[rows] for one in each]) for name in Behaviour._fields)
        return Outcome(correct.astype(bool), metric.astype(np.float32), log_prob.astype(np.float32))

    def _attribution(self, task: Sample, request: Attribute, rows: Array) -> Attribution:
        if request.level == "neuron":
            assert task.neurons is not None
            site = json.loads(request.options).get("site", "mlp_activation")
            table = task.neurons if isinstance(task.neurons, np.ndarray) else task.neurons[site]
        else:
            table = task.scores if isinstance(task.scores, np.ndarray) else task.scores[request.method]
        values = np.asarray(table[rows], np.float32)
        if request.reduce:
            values = values.mean(0, keepdims=True)
        return Attribution(
            values, self.universe.names(request.level), request.method, request.level, request.metric, np.arange(len(values))
        )

    def _conservation(self, task: Sample, rows: Array) -> Conservation:
        assert task.totals is not None and task.metric is not None
        boundaries = ("embeddings", *(f"L{i}" for i in range(task.totals.shape[1] - 1)))
        return Conservation(boundaries, task.totals[rows].astype(float), task.metric[rows].astype(float))


def _written(name: str, sample: Sample) -> Task:
    """The examples as prompt pairs: a clean prompt says which one it is."""
    pairs = (PromptPair(f"{name}/{i}", f"{name}/{i} corrupt", "a", ("b",), group=group) for i, group in enumerate(sample.encoded().groups))
    return Task(name, tuple(pairs))


def ask(name: str, parameters: Mapping[str, Any], worlds: Mapping[str, World], series: Sequence[str] = ()) -> Estimate:
    """Drive a property as the lab does; a series has its models at 0, 1, 2 …; drift is from the first of them."""
    prop = PROPERTIES.get(name)
    checked = prop.parameters.model_validate(parameters)
    sources = tuple(ModelSource(one, one, at=float(i)) for i, one in enumerate(series))
    tasks = {task: TaskSource.make(task, "builtin", task) for task in task_names(checked)}
    model, over = (sources[-1], sources) if prop.over_series else (MODEL, ())
    steps = prop.estimate(Claim(name, checked, model, tasks, over, sources[0] if name == "drift" else None))

    def answer(request: Any) -> Any:
        return worlds[request.model.name].answer(request)

    return drive(steps, answer)
