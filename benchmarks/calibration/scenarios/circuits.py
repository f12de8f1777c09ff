"""Accuracy, and properties of circuits: how often components recur."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_circuits.core.units import is_mlp, layer_of
from pytest_circuits.core.verdict import Estimate

from ..populations import ROWS, UNIVERSE, Circuits, circuit_scores, jaccard
from ..simulate import Rng, Scenario
from ..world import Array, Sample, World, plain

NAMES = UNIVERSE.component_names
BOOT = {"resamples": 400}


def _world(rng: Rng, n: int, **tasks: Circuits) -> World:
    return World(UNIVERSE, {name: one.sample(rng, n, name) for name, one in tasks.items()})


def _population(seed: int, *frequencies: dict[int, float], k: int = 4) -> Circuits:
    rng = np.random.default_rng(seed)
    return Circuits({name: circuit_scores(rng, one) for name, one in zip(("eap", "atp"), frequencies, strict=False)}, k)


def _accuracy() -> list[Scenario]:
    share = 0.8

    def alone(rng: Rng, n: int) -> World:
        answers = rng.random(n) < share
        return World(UNIVERSE, {"t": Sample(np.ones((n, UNIVERSE.components)), lambda done: plain(answers))})

    def templates(rng: Rng, n: int) -> World:
        """Templates of 1 to 7 examples whose accuracies differ, mean 0.8."""
        sizes: list[int] = []
        while sum(sizes) < n:
            sizes.append(int(rng.integers(1, 8)))
        chance = np.repeat(rng.beta(1.6, 0.4, len(sizes)), sizes)
        groups = tuple(f"g{g}" for g, size in enumerate(sizes) for _ in range(size))
        answers = rng.random(len(groups)) < chance
        return World(UNIVERSE, {"t": Sample(np.ones((len(groups), UNIVERSE.components)), lambda done: plain(answers), groups)})

    one = {"task": "t"}
    return [
        Scenario("accuracy", "independent prompts, 0.8 right", one, alone, lambda study, found: share, 0.15, (32, 128, 512)),
        Scenario("accuracy", "templates of 1–7 prompts, of unequal accuracy", one, templates, lambda study, found: share, 0.15, (64, 256)),
    ]


def _found(study: Any, found: Estimate, population: Circuits) -> float:
    """Mean coverage of the population's circuits by the shared set that the study found."""
    members, inside = population.members["eap"], np.isin(NAMES, found.details["shared_set"]["units"])
    return float(((members & inside).sum(1) / members.sum(1)).mean())


def _reuse() -> list[Scenario]:
    clear = _population(1, {1: 0.97, 6: 0.95, 12: 0.92})
    close = _population(2, {1: 0.99, 6: 0.96, 12: 0.94, 18: 0.5})
    p = {"task": "t", "size": 4}
    return [
        Scenario("reuse", "3 of 4 components recur in 92–97%, P = 80%", {**p, "p": 0.8}, lambda rng, n: _world(rng, n, t=clear),
                 lambda study, found: _found(study, found, clear), 0.15),
        Scenario("reuse", "frequencies around P = 95%", {**p, "p": 0.95}, lambda rng, n: _world(rng, n, t=close),
                 lambda study, found: _found(study, found, close), 0.15),
    ]  # fmt: skip


def _profiles() -> list[Scenario]:
    mixed = _population(3, {1: 0.7, 4: 0.5, 9: 0.6, 17: 0.4})
    members = mixed.members["eap"]
    mlp = np.array([is_mlp(name) for name in NAMES])
    early = np.array([layer_of(name) == 0 for name in NAMES])

    def share(mask: Array) -> float:
        return float((members[:, mask].sum(1) / members.sum(1)).mean())

    p = {"task": "t", "size": 4}
    return [
        Scenario("composition", "MLPs among varying circuits", p, lambda rng, n: _world(rng, n, t=mixed),
                 lambda study, found: share(mlp), 0.1),
        Scenario("layer_profile", "first layer of varying circuits", {**p, "layers": [0, 0]}, lambda rng, n: _world(rng, n, t=mixed),
                 lambda study, found: share(early), 0.1),
    ]  # fmt: skip


def _sets() -> list[Scenario]:
    p = {"task": "t", "size": 4, "p": 0.8, **BOOT}
    both = {"tasks": ["t", "u"], "size": 4, "p": 0.8, **BOOT}
    clear, other = _population(4, {1: 0.97, 6: 0.95, 12: 0.92}), _population(5, {1: 0.96, 6: 0.93, 9: 0.95})
    near, nearly = _population(6, {1: 0.97, 6: 0.84, 12: 0.77}), _population(7, {1: 0.96, 6: 0.85, 9: 0.76})
    edge = _population(8, {1: 0.97, 6: 0.81, 12: 0.81, 14: 0.79})
    found = {"1": clear.shared(0.8), "2": other.shared(0.8), "3": near.shared(0.8), "4": nearly.shared(0.8), "5": edge.shared(0.8)}
    known = [NAMES[1], NAMES[6], NAMES[12]]
    mask = np.isin(NAMES, known)
    sizes = (64, 256)

    # 2 of 16 heads in both: 0, 1 or 2 in common by chance
    over = jaccard(found["3"], found["4"]) - (2 * 2 * 14 / 120 / 3 + 1 / 120)

    def recall(inside: Array) -> float:
        return float((inside & mask).sum() / mask.sum())

    def match(measure: str) -> dict[str, Any]:
        return {**p, "known": known, "measure": measure}

    def scenario(
        name: str, what: str, parameters: dict[str, Any], truth: float, gap: float = 0.3, known: bool = False, **populations: Circuits
    ) -> Scenario:
        return Scenario(name, what, parameters, lambda rng, n: _world(rng, n, **populations), lambda study, _: truth, gap, sizes, 3, known)

    clearly, closely, at = "frequencies 12–17 points above P", "frequencies 3–5 points from P", "frequencies 1 point from P"
    return [
        scenario("shared_size", clearly, p, float(found["1"].mean()), 0.1, t=clear),
        scenario("shared_size", closely, p, float(found["3"].mean()), 0.1, t=near),
        scenario("shared_size", at, p, float(found["5"].mean()), 0.1, t=edge),
        scenario("jaccard", clearly, both, jaccard(found["1"], found["2"]), t=clear, u=other),
        scenario("jaccard", closely, both, jaccard(found["3"], found["4"]), known=True, t=near, u=nearly),
        scenario("jaccard", f"over chance, {closely}", {**both, "over_chance": True}, over, known=True, t=near, u=nearly),
        scenario("circuit_match", f"recall, {clearly}", match("recall"), recall(found["1"]), t=clear),
        scenario("circuit_match", f"recall, {closely}", match("recall"), recall(found["3"]), t=near),
        scenario("circuit_match", f"contains, {at}", match("contains"), float((found["5"] & mask).sum() == 3), 0.5, t=edge),
        scenario("circuit_match", f"excludes, {at}", {**match("excludes"), "known": [NAMES[14]]}, 1.0, 0.5, t=edge),
    ]  # fmt: skip


def _stability() -> list[Scenario]:
    p = {"task": "t", "size": 4, "p": 0.8, **BOOT}
    methods = _population(9, {1: 0.96, 6: 0.93, 12: 0.84}, {1: 0.95, 6: 0.9, 12: 0.76})
    truth = jaccard(methods.shared(0.8), methods.shared(0.8, "atp"))
    halves = _population(10, {1: 0.97, 6: 0.84, 12: 0.8})
    expected: dict[int, float] = {}

    def half(study: World, found: Estimate) -> float:
        """What halves of this many discovery examples agree in on average, over 4000 pairs of halves."""
        n = study.tasks["t"].n // 4
        if n not in expected:
            rng, members = np.random.default_rng(n), halves.members["eap"]
            sets = members[rng.integers(0, ROWS, (2, 4000, n))].sum(2) >= np.ceil(0.8 * n)
            union = (sets[0] | sets[1]).sum(1)
            expected[n] = float(((sets[0] & sets[1]).sum(1) / np.maximum(union, 1)).mean())
        return expected[n]

    return [
        Scenario("stability", "two methods", {**p, "under": "method", "other": "atp"}, lambda rng, n: _world(rng, n, t=methods),
                 lambda study, found: truth, 0.3, (64, 256), 3),
        Scenario("stability", "halves, of what halves of this size give", {**p, "under": "resampling"},
                 lambda rng, n: _world(rng, n, t=halves), half, 0.3, (64, 256), 6),
    ]  # fmt: skip


def scenarios() -> list[Scenario]:
    """All of this family."""
    return [*_accuracy(), *_reuse(), *_profiles(), *_sets(), *_stability()]
