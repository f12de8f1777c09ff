"""Faithfulness of circuits by size, steering, conservation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from pytest_circuits.core.verdict import Estimate

from ..populations import ROWS, UNIVERSE, Additive
from ..simulate import Rng, Scenario
from ..world import Array, Sample, World, plain

GRID = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
BOOT = {"resamples": 400}


def _parts(rng: Rng, units: int, decay: float, noise: float = 1.0) -> tuple[Array, Array]:
    """Contributions [rows, units] that vary between examples together and alone; and the strengths by which they are ranked."""
    strength = np.exp(-decay * np.arange(units))
    together = np.exp(0.3 * rng.normal(size=(ROWS, 1)))
    return strength * together * (1 + noise * rng.normal(size=(ROWS, units))), strength


def _neurons() -> Additive:
    rng = np.random.default_rng(31)
    units = UNIVERSE.size("neuron")
    activations, first = _parts(rng, units, 0.12)
    outputs, second = _parts(rng, units, 0.05)
    outputs *= (activations.sum(1) / outputs.sum(1))[:, None].clip(0.2, 5)
    return Additive({"mlp_activation": activations, "mlp_output": outputs}, {"mlp_activation": first, "mlp_output": second}, np.zeros(ROWS))


def _components() -> Additive:
    rng = np.random.default_rng(32)
    parts, strength = _parts(rng, UNIVERSE.components, 0.25)
    # what lowers the metric when it is ablated has a negative score: it helps
    return Additive({"component": parts}, {"component": -strength}, np.zeros(ROWS), "component")


def _reach(population: Additive, site: str, level: float) -> int:
    units = len(population.scores[site])
    return next(k for k in range(1, units + 1) if k == units or population.ratio(site, k) >= level)


def _area(curve: list[float]) -> float:
    return float(np.trapezoid(curve, GRID))


def _circuits() -> list[Scenario]:
    neurons, components = _neurons(), _components()
    kept = neurons.ratio("mlp_activation", 6)
    p = {"task": "t", "neurons": 6}
    reach = _reach(neurons, "mlp_activation", 0.8)
    outputs = _outputs_truth(neurons, 0.8)
    curve = [components.ratio("component", int(round(q * 1000) * UNIVERSE.components // 1000)) for q in GRID]
    of = {"task": "t", "ablation": "zero", "random_rankings": 0}
    return [
        Scenario("neuron_faithfulness", "6 of 40 neurons", p, neurons.world, lambda study, found: kept, 0.1, (32, 128, 512)),
        Scenario("neuron_completeness", "6 of 40 neurons", p, neurons.world, lambda study, found: 1 - kept, 0.1),
        Scenario("neurons_to_reach", "faithfulness 0.8", {"task": "t", "reach": 0.8}, neurons.world, lambda study, found: float(reach), 3),
        Scenario("sparsity_ratio", "faithfulness 0.8", {"task": "t", "reach": 0.8}, neurons.world,
                 lambda study, found: outputs / reach, 0.3, (32, 128), 2),
        Scenario("cpr", "20 components", {**of, "attribution": "relp"}, components.world, lambda study, found: _area(curve), 0.05),
        Scenario("cmd", "20 components", {**of, **BOOT}, components.world,
                 lambda study, found: _area([abs(1 - f) for f in curve]), 0.05, (32, 128), 2),
    ]  # fmt: skip


def _outputs_truth(population: Additive, level: float) -> int:
    """Outputs are measured against what there is to keep at the first site."""
    whole = population.parts["mlp_activation"].sum(1).mean()
    gains = np.cumsum(population.parts["mlp_output"].mean(0))  # strengths fall with the number
    reached = np.flatnonzero(gains >= level * whole)
    return int(reached[0]) + 1 if len(reached) else len(gains)


def _steering() -> list[Scenario]:
    population = _neurons()
    population.floor = population.floor - 7.0
    cluster, layer = np.arange(3), np.arange(UNIVERSE.neurons)  # the strongest three are of layer 0
    every = np.ones(UNIVERSE.size("neuron"))

    def probability(gone: Any) -> float:
        left = every.copy()
        left[list(gone)] = 0
        metric = population.metric("mlp_activation", left)
        return float((1 / (1 + np.exp(-metric))).mean())

    change = probability(cluster) - probability([])
    others = [probability(one) - probability([]) for one in combinations(layer[3:], 3)]
    p = {"task": "t", "neurons": 3, "factor": 0.0, "factors": [0.0], "attribution": "relp"}
    return [
        Scenario("steering", "three neurons removed", p, population.world, lambda study, found: change, 0.2),
        Scenario("steering", "against random clusters", {**p, "against": "control"}, population.world,
                 lambda study, found: change - float(np.mean(others)), 0.2),
    ]  # fmt: skip


def _conservation() -> Scenario:
    rng = np.random.default_rng(33)
    metric = 2 + rng.normal(size=ROWS)
    gaps = rng.normal(size=(ROWS, 5)) * np.array([0.1, 0.2, 0.3, 0.3, 0.3])
    truth = float((np.abs(gaps).mean(0) / np.abs(metric).mean()).max())

    def world(r: Rng, n: int) -> World:
        rows = r.integers(0, ROWS, n)
        scores = np.ones((n, UNIVERSE.components))
        return World(
            UNIVERSE,
            {"t": Sample(scores, lambda done: plain(np.ones(n, bool)), totals=(metric[:, None] + gaps)[rows], metric=metric[rows])},
        )

    def of(study: Any, found: Estimate) -> float:
        return truth

    return Scenario("conservation", "three boundaries that are equally bad", {"task": "t"}, world, of, 0.05)


def scenarios() -> list[Scenario]:
    """All of this family."""
    return [*_circuits(), *_steering(), _conservation()]
