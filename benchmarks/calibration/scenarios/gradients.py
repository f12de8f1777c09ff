"""Gradients against ablation: rank correlation, heroes and bloats, joint drops."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_circuits.core.verdict import Estimate

from ..populations import ROWS, UNIVERSE, Losses
from ..simulate import Scenario
from ..world import Array

N = UNIVERSE.components
BOOT = {"resamples": 400}
NAMES = UNIVERSE.component_names


def _ranks(values: Array) -> Array:
    """Ranks of values without ties."""
    return np.argsort(np.argsort(values)).astype(float)


def _population(seed: int, agree: float, noise: float) -> Losses:
    """Means of G and C whose logarithms correlate; each example's values scatter about them, log-normally and with signs for C."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=N)
    g = np.exp(0.8 * base)
    c = 0.3 * np.exp(0.8 * (agree * base + (1 - agree**2) ** 0.5 * rng.normal(size=N)))
    gradient = g * np.exp(noise * rng.normal(size=(ROWS, N)))
    shared = rng.normal(size=(ROWS, 1))
    rise = c * (1 + noise * (0.5 * shared + rng.normal(size=(ROWS, N)))) * np.exp(noise * rng.normal(size=(ROWS, N)) - noise**2 / 2)
    return Losses(gradient, rise)


def _rho(population: Losses) -> float:
    g, c = _ranks(population.gradient.mean(0)), _ranks(population.rise.mean(0))
    return float(np.corrcoef(g, c)[0, 1])


def _agreement() -> list[Scenario]:
    found = []
    for seed, what, agree, noise in (
        (21, "log-normal σ 1", 0.5, 1.0),
        (22, "log-normal σ 1", 0.0, 1.0),
        (21, "log-normal σ 1.5", 0.5, 1.5),
        (21, "log-normal σ 2", 0.5, 2.0),
    ):
        population = _population(seed, agree, noise)
        truth = _rho(population)
        found.append(Scenario("gradient_ablation_agreement", f"{what}, true ρ = {truth:.2f}", {"task": "t", **BOOT}, population.world,
                              lambda study, _, truth=truth: truth, 0.4, (32, 128), 3, True))  # fmt: skip
    return found


def _edge(role: str, bound: float) -> Losses:
    """Ten components have the gradients of the role: six with C exactly at its bound, which are not of it, and four that clearly are."""
    rng = np.random.default_rng(24)
    ten, clear, other = np.arange(N) < 10, *((4 * bound, 0.1 * bound) if role == "heroes" else (0.1 * bound, 4 * bound))
    c = np.where(np.arange(N) < 6, bound, np.where(ten, clear, other))
    gradient = np.where(ten == (role == "heroes"), 1.0, 5.0) * np.exp(0.7 * rng.normal(size=(ROWS, N)))
    spread = np.exp(0.8 * rng.normal(size=(ROWS, N)))
    rise = c * spread / spread.mean(0)
    return Losses(gradient, rise)


def _roles() -> list[Scenario]:
    scenarios = []
    for name, role, key, bound in (("hidden_heroes", "heroes", "delta", 0.1), ("gradient_bloats", "bloats", "epsilon", 0.05)):
        population = _edge(role, bound)
        scenarios.append(Scenario(name, "six components exactly at the bound", {"task": "t", key: bound}, population.world,
                                  lambda study, _: 4.0, 3, (32, 128, 512)))  # fmt: skip
        mixed = _population(25, 0.2, 1.0)
        gap = _ranks(mixed.gradient.mean(0)) - _ranks(mixed.rise.mean(0))
        count = float(((gap <= -6) if role == "heroes" else (gap >= 6)).sum())
        scenarios.append(Scenario(name, "published rule", {"task": "t", "rule": "rank_gap", **BOOT}, mixed.world,
                                  lambda study, _, count=count: count, 3, (32, 128), 3))  # fmt: skip
    return scenarios


def _joint() -> list[Scenario]:
    rng = np.random.default_rng(26)
    units, places = [NAMES[i] for i in (1, 6, 11)], (1, 6, 11)
    rise = np.exp(rng.normal(size=(ROWS, N))) * np.linspace(0.05, 0.4, N)
    backup = np.exp(1.2 * rng.normal(size=ROWS)) * 0.5
    wrong = rng.random((ROWS, N)) < np.linspace(0.02, 0.3, N)
    population = Losses(np.ones((ROWS, N)), rise, places, backup, wrong)
    single, joint = wrong[:, places].mean(0), float(wrong[:, places].any(1).mean())
    super_ = {"task": "t", "set": {"units": units}}
    outside = np.delete(np.arange(N), [*places, *range(4, N, 5)])  # heads outside of the set
    mean_control = 3 * float(rise[:, outside].mean())
    loss = float(rise[:, places].sum(1).mean() + backup.mean())

    def truth(value: float) -> Any:
        def of(study: Any, found: Estimate) -> float:
            return value

        return of

    return [
        Scenario("superadditivity", "loss against the sum, skewed", super_, population.world,
                 truth(float(backup.mean())), 0.5, (32, 128, 512), known=True),
        Scenario("superadditivity", "accuracy against the sum", {**super_, "effect": "accuracy"}, population.world,
                 truth(joint - float(single.sum())), 0.2),
        Scenario("superadditivity", "accuracy against independence", {**super_, "effect": "accuracy", "against": "independence", **BOOT},
                 population.world, truth(joint - 1 + float(np.prod(1 - single))), 0.2, (32, 128), 3),
        Scenario("joint_ablation", "loss, skewed", {**super_, "effect": "loss"}, population.world,
                 truth(loss), 0.5, (32, 128, 512), known=True),
        Scenario("joint_ablation", "loss, against controls", {**super_, "effect": "loss", "control": "c3"}, population.world,
                 truth(loss - mean_control), 0.5, (32, 128), 2, True),
    ]  # fmt: skip


def scenarios() -> list[Scenario]:
    """All of this family."""
    return [*_agreement(), *_roles(), *_joint()]
