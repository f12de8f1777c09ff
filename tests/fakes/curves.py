"""A model that is a function of the set of units that are live: metric(live) for each example. Answers requests without torch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pytest_circuits.core.results import Attribution, Description, Encoded, Outcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import examples_of
from pytest_circuits.measurement.requests import Ablate, Attribute, Describe, Encode
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.protocol import Claim

MODEL, TASK = ModelSource("m", "m"), TaskSource.make("t", "builtin", "t")


@dataclass
class Units:
    """One universe: `scores` [n, units], and `metric(live)` [n] for live bool [units]."""

    names: tuple[str, ...]
    scores: np.ndarray
    metric: Callable[[np.ndarray], np.ndarray]


@dataclass
class World:
    """`places` by level, at neuron level by site. `asked` holds one list of requests for each yield."""

    places: dict[str, Units]
    groups: tuple[str, ...]
    right: np.ndarray | None = None
    universe: Universe = field(default_factory=lambda: Universe(2, 3, 8))
    asked: list[list[object]] = field(default_factory=list)

    @property
    def requests(self):
        return [request for many in self.asked for request in many]

    def answer(self, request):
        if isinstance(request, Describe):
            return Description("f", "world", 1, self.universe, "float32")
        n = len(self.groups)
        encoded = Encoded(n, self.groups, "d")
        if isinstance(request, Encode):
            return encoded
        chosen = examples_of(request.part, encoded)
        chosen = np.arange(n) if chosen is None else chosen
        where = self.places.get(json.loads(request.options).get("site", request.level))
        if where is None:  # the intact model is asked for at component level
            assert request.sets == ((),) and request.mode == "remove"
            where = next(iter(self.places.values()))
        if isinstance(request, Attribute):
            assert request.reduce == "mean"
            return Attribution(where.scores[chosen].mean(0, keepdims=True).astype(np.float32), where.names, request.method, request.level,
                               request.metric)  # fmt: skip
        assert isinstance(request, Ablate)
        index = {name: i for i, name in enumerate(where.names)}
        metric = []
        for one in request.sets:
            named = np.zeros(len(index), bool)
            named[[index[name] for name in one]] = True
            metric.append(where.metric(named if request.mode == "keep" else ~named)[chosen])
        right = np.ones(n, bool) if self.right is None else self.right
        correct = np.broadcast_to(right[chosen], (len(metric), len(chosen)))
        return Outcome(correct, np.array(metric), np.array(metric))

    def measure(self, name, **parameters):
        prop = PROPERTIES.get(name)
        checked = prop.parameters.model_validate({"task": "t", **parameters})
        steps = prop.estimate(Claim(prop.name, checked, MODEL, {"t": TASK}))
        return drive(steps, lambda request: self.answer_all([request])[0], self.answer_all)

    def answer_all(self, requests):
        self.asked.append(list(requests))
        return [self.answer(request) for request in requests]

    def evaluation(self):
        from pytest_circuits.stats.split import split_by_group

        return split_by_group(self.groups, 0.5, 0)[1]


def neurons(units: int) -> tuple[str, ...]:
    return tuple(f"L{i // (-(-units // 2))}N{i % (-(-units // 2))}" for i in range(units))


def additive(weights: np.ndarray, floor: np.ndarray | float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """floor + the weights [n, units] of the live units."""
    return lambda live: floor + weights @ live.astype(float)


def groups_of(n: int, each: int = 1) -> tuple[str, ...]:
    return tuple(f"g{i // each}" for i in range(n))


def neuron_world(metric, scores, site: str = "mlp_activation", **more) -> World:
    """Neurons of one site; every example a group of its own."""
    n, units = scores.shape
    return World({site: Units(neurons(units), scores, metric)}, groups_of(n), universe=Universe(2, 3, -(-units // 2)), **more)
