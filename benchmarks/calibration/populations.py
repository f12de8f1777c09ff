"""Populations: large tables of examples from which studies draw, so that every truth is a mean over the table.

Examples are drawn independently of each other, with replacement. Units are numbered in universe order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from pytest_circuits.core.units import Universe, is_mlp

from .simulate import Rng
from .world import Array, Behaviour, Intervention, Sample, World, plain

ROWS = 20_000
UNIVERSE = Universe(4, 4, 10)  # 20 components, 40 neurons


def circuit_scores(rng: Rng, frequencies: Mapping[int, float], universe: Universe = UNIVERSE, rows: int = ROWS) -> Array:
    """Scores [rows, N] in which some units are among the strongest on a share of the examples, and all others by chance."""
    scores = rng.uniform(0.01, 1, (rows, universe.components))
    for unit, share in frequencies.items():
        # exactly this share of the rows
        inside = rng.permutation(rows) < round(share * rows)
        scores[:, unit] = np.where(inside, 2 + scores[:, unit], 0.001)
    return scores.astype(np.float32)


def top(scores: Array, k: int) -> Array:
    """Members [rows, N] of the circuits of the k strongest."""
    members = np.zeros(scores.shape, bool)
    np.put_along_axis(members, np.argsort(-scores, axis=1, kind="stable")[:, :k], True, axis=1)
    return members


@dataclass
class Circuits:
    """A population of circuits: scores by method."""

    scores: Mapping[str, Array]
    k: int

    @cached_property
    def members(self) -> dict[str, Array]:
        """Circuits of size k."""
        return {name: top(table, self.k) for name, table in self.scores.items()}

    def shared(self, p: float, method: str = "eap") -> Array:
        """S_P of the population, as a mask."""
        found: Array = self.members[method].mean(0) >= p
        return found

    def sample(self, rng: Rng, n: int, name: str = "t") -> Sample:
        """n examples; the model is right on all of them."""
        rows = rng.integers(0, len(next(iter(self.scores.values()))), n)
        answers = np.ones(n, bool)
        prompts = tuple(f"{name} {i}" for i in range(n))
        return Sample({m: table[rows] for m, table in self.scores.items()}, lambda done: plain(answers), prompts=prompts)


def jaccard(a: Array, b: Array) -> float:
    """|A ∩ B| / |A ∪ B| of two masks."""
    return float((a & b).sum() / (a | b).sum())


@dataclass
class Answers:
    """A population of answers: right where the weights [N] that are live reach the example's threshold [rows], if it is `able` [rows]."""

    weights: Array
    thresholds: Array
    able: Array

    @classmethod
    def make(cls, rng: Rng, weights: Sequence[float], low: float, high: float, able: float = 0.97) -> Answers:
        """Thresholds spread evenly over [low, high]."""
        thresholds = rng.permutation(np.linspace(low, high, ROWS))
        return cls(np.asarray(weights, float), thresholds, rng.permutation(ROWS) < able * ROWS)

    def accuracy(self, live: float) -> float:
        """Of the population, with this much live."""
        return float(((self.thresholds <= live + 1e-9) & self.able).mean())

    def without(self, units: Sequence[int]) -> float:
        """Accuracy of the population without these units."""
        return self.accuracy(float(self.weights.sum() - self.weights[list(units)].sum()))

    def keeping(self, units: Sequence[int]) -> float:
        """Accuracy of the population with these units alone."""
        return self.accuracy(float(self.weights[list(units)].sum()))

    def sample(self, rng: Rng, n: int, scores: Array, name: str = "t") -> Sample:
        """n examples with n of these scores."""
        rows, circuits = rng.integers(0, ROWS, n), rng.integers(0, len(scores), n)
        thresholds, able = self.thresholds[rows], self.able[rows]

        def behave(done: Intervention) -> Behaviour:
            return plain((self.weights @ done.live + 1e-9 >= thresholds) & able)

        return Sample(scores[circuits], behave, prompts=tuple(f"{name} {i}" for i in range(n)))


def controls(units: Sequence[int], universe: Universe = UNIVERSE) -> list[tuple[int, ...]]:
    """All sets with as many heads and as many MLPs, outside of these units."""
    names = universe.component_names
    heads, mlps = ([i for i in range(len(names)) if is_mlp(names[i]) == kind] for kind in (False, True))
    taken = set(units)
    sides = []
    for kind in (heads, mlps):
        free = [i for i in kind if i not in taken]
        sides.append(list(combinations(free, len(taken & set(kind)))))
    return [a + b for a in sides[0] for b in sides[1]]


@dataclass
class Losses:
    """A population of losses and gradients: gradient [rows, N]; rise [rows, N] of the loss when a unit alone is ablated.

    `joint` [rows] is added where all of `together` are ablated; `wrong` [rows, N] says where an answer gets wrong.
    """

    gradient: Array
    rise: Array
    together: tuple[int, ...] = ()
    joint: Array | None = None
    wrong: Array | None = None
    universe: Universe = UNIVERSE

    def sample(self, rng: Rng, n: int) -> Sample:
        """n examples; the intact model is right on all."""
        rows = rng.integers(0, len(self.rise), n)
        gradient, rise = self.gradient[rows].astype(np.float32), self.rise[rows]
        joint = np.zeros(n) if self.joint is None else self.joint[rows]
        wrong = np.zeros(rise.shape, bool) if self.wrong is None else self.wrong[rows]

        def behave(done: Intervention) -> Behaviour:
            gone = ~done.live
            loss = rise @ gone + joint * (len(self.together) > 0 and gone[list(self.together)].all())
            return Behaviour(~wrong[:, gone].any(1), 1 - loss, -1 - loss)

        return Sample(dict.fromkeys(("weight_gradient", "eap"), gradient), behave)

    def world(self, rng: Rng, n: int) -> World:
        """A study."""
        return World(self.universe, {"t": self.sample(rng, n)})


@dataclass
class Additive:
    """A population of metrics that add up: floor [rows] + the contributions of live units, `parts` [rows, units] by site.

    Scores are the same on every example, `scores` [units] by site, so that the ranking is known. The answer's probability is the logistic
    function of the metric.
    """

    parts: Mapping[str, Array]
    scores: Mapping[str, Array]
    floor: Array
    level: str = "neuron"
    universe: Universe = UNIVERSE

    def metric(self, site: str, live: Array, rows: Array | slice = slice(None)) -> Array:
        """[rows]."""
        found: Array = self.floor[rows] + self.parts[site][rows] @ live
        return found

    def world(self, rng: Rng, n: int) -> World:
        """A study."""
        rows = rng.integers(0, len(self.floor), n)
        parts, floor = {site: table[rows] for site, table in self.parts.items()}, self.floor[rows]

        def behave(done: Intervention) -> Behaviour:
            left = np.where(done.live, 1.0, done.factor if done.factor is not None else 0.0)
            site = done.site if done.level == "neuron" else "component"
            intact = bool(done.live.all()) or site not in parts
            first = next(iter(parts))
            metric = floor + (parts[first].sum(1) if intact else parts[site] @ left)
            log_prob = -np.logaddexp(0, -metric)
            return Behaviour(np.ones(n, bool), 1 - np.exp(log_prob) if done.metric == "foil_prob" else metric, log_prob)

        tables: dict[str, Any] = {site: np.tile(row, (n, 1)).astype(np.float32) for site, row in self.scores.items()}
        component = tables.pop("component", np.ones((n, self.universe.components), np.float32))
        return World(self.universe, {"t": Sample(component, behave, neurons=tables or None)})

    def ratio(self, site: str, k: int) -> float:
        """Faithfulness of the k strongest in the population."""
        order = np.argsort(-np.abs(self.scores[site]), kind="stable")[:k]
        return float(self.parts[site][:, order].sum(1).mean() / self.parts[site].sum(1).mean())
