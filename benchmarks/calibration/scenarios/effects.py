"""What removing or keeping shared sets does to accuracy, alone and against random sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Estimate

from ..populations import UNIVERSE, Answers, circuit_scores, controls
from ..simulate import Rng, Scenario
from ..world import World

T, U, BOTH = (1, 6, 14), (2, 6, 14), (6, 14)  # L0H1, L1H1, L2MLP; L0H2, L1H1, L2MLP
OTHERS = np.linspace(0, 0.08, UNIVERSE.components)
SHARED = {"size": 4, "p": 0.8}


def _weights(core: tuple[int, ...], each: float = 0.2) -> np.ndarray[Any, Any]:
    found = OTHERS.copy()
    found[list(core)] = each
    return found


class Pair:
    """Two tasks whose shared sets overlap; `found(estimate, task)` is the set that a study found."""

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        self.answers = {"t": Answers.make(rng, _weights(T), 0.4, 1.2), "u": Answers.make(rng, _weights(U, 0.15), 0.35, 1.1)}
        self.scores = {task: circuit_scores(rng, dict.fromkeys(core, 0.96)) for task, core in (("t", T), ("u", U))}

    def world(self, rng: Rng, n: int) -> World:
        """A study."""
        return World(UNIVERSE, {task: self.answers[task].sample(rng, n, self.scores[task], task) for task in self.answers})

    def drop(self, task: str, units: tuple[int, ...]) -> float:
        """What removing the units costs the population."""
        return self.answers[task].without(()) - self.answers[task].without(units)

    def control(self, task: str, units: tuple[int, ...], away: tuple[int, ...] | None = None) -> float:
        """The mean drop under all controls, outside of the units or of `away`."""
        return _mean_drop(self.answers[task], units, units if away is None else away)


@cache
def _sets(units: tuple[int, ...], away: tuple[int, ...], universe: Universe) -> np.ndarray[Any, Any]:
    """Live masks [controls, N] with each control removed."""
    outside = [one for one in controls(units, universe) if not set(one) & set(away)]
    gone = np.zeros((len(outside), universe.components), bool)
    for row, one in zip(gone, outside, strict=True):
        row[list(one)] = True
    return gone


def _mean_drop(answers: Answers, units: tuple[int, ...], away: tuple[int, ...], universe: Universe = UNIVERSE) -> float:
    return answers.accuracy(float(answers.weights.sum())) - _mean_accuracy(answers, ~_sets(units, away, universe))


def _mean_accuracy(answers: Answers, live: np.ndarray[Any, Any]) -> float:
    """Mean over many sets of the population's accuracy."""
    thresholds = np.sort(answers.thresholds[answers.able])
    reached = np.searchsorted(thresholds, live @ answers.weights + 1e-9, side="right")
    return float(reached.mean() / len(answers.thresholds))


def _units(found: Estimate, task: str | None = None) -> tuple[int, ...]:
    sets = found.details["shared_set"] if task is None else found.details["shared_sets"][task]
    return tuple(UNIVERSE.index(sets["units"]))


def _against_controls(pair: Pair) -> list[Scenario]:
    answers = pair.answers["t"]

    def necessity(study: Any, found: Estimate) -> float:
        units = _units(found)
        return pair.drop("t", units) - pair.control("t", units)

    def sufficiency(study: Any, found: Estimate) -> float:
        units = _units(found)
        return answers.keeping(units) - _mean_accuracy(answers, _sets(units, units, UNIVERSE))

    p = {"task": "t", **SHARED}
    joint = {"task": "t", "set": {"units": [UNIVERSE.component_names[u] for u in T]}}
    return [
        Scenario("necessity", "damage spread over components", p, pair.world, necessity, 0.2, (32, 128, 256), 2),
        Scenario("necessity", "the same, relative", {**p, "definition": "relative"}, pair.world,
                 lambda study, found: necessity(study, found) / answers.without(()), 0.2, (32, 128), 6),
        Scenario("sufficiency", "against controls", p, pair.world, sufficiency, 0.2, cost=2),
        Scenario("sufficiency", "no control", {**p, "control": "none"}, pair.world, lambda study, found: answers.keeping(_units(found))),
        Scenario("joint_ablation", "accuracy, no control", joint, pair.world, lambda study, found: pair.drop("t", T)),
        Scenario("joint_ablation", "accuracy, against controls", {**joint, "control": "c3"}, pair.world,
                 lambda study, found: pair.drop("t", T) - pair.control("t", T), cost=2),
    ]  # fmt: skip


def _rare() -> Scenario:
    """One of 47 possible controls does all the damage."""
    universe = Universe(6, 8)
    rng = np.random.default_rng(12)
    weights = np.full(universe.components, 0.01)
    weights[[1, 30]] = 0.6, 1.2
    answers = Answers.make(rng, weights, 0.2, 2.3)
    scores = circuit_scores(rng, {1: 0.97}, universe)
    truth = answers.without(()) - answers.without((1,)) - _mean_drop(answers, (1,), (1,), universe)
    return Scenario("necessity", "one control in 47 does most damage", {"task": "t", "size": 1, "p": 0.8},
                    lambda r, n: World(universe, {"t": answers.sample(r, n, scores)}),
                    lambda study, found: truth, 0.2, (32, 128), 3)  # fmt: skip


def _across(pair: Pair) -> list[Scenario]:
    def cross(study: Any, found: Estimate) -> float:
        return pair.drop("t", _units(found, "u"))

    def row(study: Any, found: Estimate) -> float:
        return cross(study, found) / pair.drop("u", _units(found, "u"))

    def specificity(study: Any, found: Estimate) -> float:
        return pair.drop("t", _units(found, "t")) - cross(study, found)

    def part(less: Callable[[str, tuple[int, ...], tuple[int, ...]], float]) -> Callable[[Any, Estimate], float]:
        def selectivity(study: Any, found: Estimate) -> float:
            units = tuple(UNIVERSE.index(found.details["part"]["units"]))
            either = tuple(sorted({*_units(found, "t"), *_units(found, "u")}))
            return (pair.drop("t", units) - less("t", units, either)) - (pair.drop("u", units) - less("u", units, either))

        return selectivity

    p = {"task": "t", "circuit": {"task": "u"}, **SHARED}
    core = {"tasks": ["t", "u"], "part": "core", **SHARED}
    return [
        Scenario("cross_task_ablation", "accuracy points", p, pair.world, cross),
        Scenario("cross_task_ablation", "relative", {**p, "definition": "relative"}, pair.world,
                 lambda study, found: cross(study, found) / pair.answers["t"].without(()), cost=2),
        Scenario("cross_task_ablation", "row-normalised", {**p, "normalised": "row"}, pair.world, row, 0.4),
        Scenario("specificity", "overlapping sets", {"task": "t", "tasks": ["u"], **SHARED}, pair.world, specificity, 0.15),
        Scenario("decomposition", "core", {**core, "control": "none"}, pair.world, part(lambda task, units, either: 0.0)),
        Scenario("decomposition", "core, against controls", {**core, "against": "control"}, pair.world, part(pair.control), cost=4),
    ]  # fmt: skip


def scenarios() -> list[Scenario]:
    """All of this family."""
    pair = Pair()
    return [*_against_controls(pair), _rare(), *_across(pair)]
