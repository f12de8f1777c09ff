"""The property conservation: hand-computed sums, an interval that covers the maximum, and real models through the executor."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from pytest_circuits.core.results import Conservation, Description, Encoded, Outcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import CERTIFIED, REFUTED, Bound, decide
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.planner import Planner
from pytest_circuits.measurement.requests import Conserve, Describe, Encode, Part
from pytest_circuits.measurement.store import Store
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.neurons.conservation import ConservationParameters, _largest_error, estimate
from pytest_circuits.properties.protocol import Claim
from tests.fakes import tiny

MODEL, TASK = ModelSource("m", loader="memory:1"), TaskSource.make("t", "fixture", "t")
N = 40


def canned(totals, metric, biases=None, correct=None, **parameters):
    """The estimate where every measurement is given; in sample, each example a group of its own."""
    n, boundaries = np.shape(totals)
    metric = np.broadcast_to(np.asarray(metric, float), n).copy()
    names = ("embeddings", *(f"L{i}" for i in range(boundaries - 1)))
    right = np.ones(n, bool) if correct is None else correct
    asked = []

    def answer(request):
        asked.append(request)
        if isinstance(request, Encode):
            return Encoded(n, tuple(f"g{i}" for i in range(n)), "d")
        if isinstance(request, Describe):
            return Description("f", "fake", 1, Universe(boundaries - 1, 2, 3), "float32")
        if isinstance(request, Conserve):
            return Conservation(names, np.asarray(totals, float), metric, None if biases is None else np.asarray(biases, float))
        return Outcome(right[None], metric[None].astype(np.float32), np.zeros((1, n), np.float32))

    steps = estimate(Claim("conservation", ConservationParameters(task="t", split="in_sample", **parameters), MODEL, {"t": TASK}))
    result = drive(steps, answer)
    json.dumps(result.details)
    return result, asked


def test_the_value_is_the_largest_mean_gap_over_the_mean_size_of_the_metric():
    """Ratio of means, not mean of ratios; gaps of opposite signs do not cancel."""
    metric = np.where(np.arange(N) % 2, 1.0, -3.0)
    gaps = np.stack([np.where(np.arange(N) % 2, 0.1, -0.1), np.where(np.arange(N) < 20, 0.8, 0.0), np.zeros(N)], 1)
    found, asked = canned(metric[:, None] + gaps, metric)
    assert found.value == pytest.approx(0.4 / 2)
    assert found.details["errors"] == pytest.approx([0.05, 0.2, 0.0])
    assert (found.details["worst_boundary"], found.n) == ("L0", N)
    assert found.interval[0] < 0.2 < found.interval[1]
    assert Conserve(MODEL, TASK, "relp", "logit_diff", Part("evaluation", None, 0)) in asked
    assert "the largest gap is after layer 0: 0.2 of the mean |logit_diff| of 2" in found.details["notes"][1]


def test_bias_terms_belong_to_the_sum_and_are_reported_apart():
    """With them nothing is missing; without them half is."""
    metric = 1 + np.arange(N) / N
    found, _ = canned(metric[:, None] * [0.5, 1.0], metric, metric[:, None] * [0.5, 0.0])
    assert found.value == pytest.approx(0, abs=1e-15)
    assert found.details["biases"]["shares"] == pytest.approx([0.5, 0])
    assert found.details["biases"]["errors_without_their_terms"] == pytest.approx([0.5, 0])


def test_the_interval_covers_the_largest_error_of_a_population():
    """At least nominally, also where several boundaries tie: there the naive interval of the largest sits too high."""
    rng, covered, studies = np.random.default_rng(0), 0, 300
    groups = [f"g{i}" for i in range(30)]
    for _ in range(studies):
        size = rng.normal(3, 1, 30).clip(0.1)
        gaps = np.abs(rng.normal(0, 1, (30, 6)))
        _, (low, high) = _largest_error(gaps, size, groups, 0.9)
        covered += low <= np.sqrt(2 / np.pi) / 3.0 <= high
    assert covered >= 0.9 * studies


def test_the_ends_are_fieller_ends_by_hand():
    """One boundary: the same ends; three equal ones: the lower end at a third of α, the upper one unchanged."""
    from pytest_circuits.stats.ratio import fieller

    rng = np.random.default_rng(1)
    size, gap, groups = rng.uniform(1, 2, 20), rng.uniform(0, 1, 20), [f"g{i}" for i in range(20)]
    value, ends = fieller(gap, size, groups, 0.95)
    assert _largest_error(gap[:, None], size, groups, 0.95) == ([value], ends)
    low = fieller(gap, size, groups, 1 - 0.05 / 3)[1][0]
    assert _largest_error(np.stack([gap] * 3, 1), size, groups, 0.95)[1] == (low, ends[1])


def test_degenerate_measurements_are_invalid_with_the_numbers():
    """No metric, one that is not clearly away from zero, and a model that cannot do the task."""
    with pytest.raises(Invalid, match=r"exactly 0 on all 40 evaluation examples"):
        canned(np.ones((N, 2)), 0.0)
    rare = np.where(np.arange(N) == 0, 100.0, 1e-9)
    with pytest.raises(Invalid, match="contains 0"):
        canned(rare[:, None] * [1, 1], rare)
    with pytest.raises(Invalid, match="no behaviour to explain"):
        canned(np.ones((N, 2)), 1.0, correct=np.zeros(N, bool))
    assert canned(np.ones((N, 2)), 1.0, correct=np.zeros(N, bool), min_accuracy=0.0)[0].value == 0


@pytest.mark.parametrize("metric", ["prob", "log_prob", "kl"])
def test_other_metrics_are_refused_when_the_spec_is_read(metric):
    """With the reason."""
    with pytest.raises(ValidationError, match=f"doubles when the logits double, which {metric} does not"):
        ConservationParameters(task="t", metric=metric)


def test_it_is_registered_with_its_range():
    """Errors are not negative, so `at_least: 0` is vacuous."""
    found = PROPERTIES.get("conservation")
    assert (found.name, found.lowest, found.highest) == ("conservation", 0.0, None)
    assert Bound(at_least=0.0).vacuous(found.lowest, found.highest)


@cache
def subject(name):
    return tiny.model(name, dtype=torch.float32), tiny.task(n=24)


def measured(name, tmp_path, **parameters):
    model, task = subject(name)
    executor = Executor(Store(tmp_path / "cache"))
    executor.models.provide(MODEL, lambda: (model, None))
    executor.provide_task(TASK, task)
    claim = Claim("conservation", ConservationParameters(task="t", min_accuracy=0.0, **parameters), MODEL, {"t": TASK})
    return executor, claim


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2"])
def test_real_models_conserve_under_the_rules_and_not_without(name, tmp_path):
    """Untrained as they are; the second time from the store."""
    executor, claim = measured(name, tmp_path)
    found, cost = executor.run(estimate(claim))
    assert decide(found, Bound(at_most=1e-4)).kind == CERTIFIED and cost.measured > 0
    again, warm = executor.run(estimate(claim))
    assert warm.measured == 0 and again == found
    executor, claim = measured(name, tmp_path, rules="none")
    assert decide(executor.run(estimate(claim))[0], Bound(at_most=1e-4)).kind == REFUTED


def test_a_plan_counts_a_forward_and_a_backward_a_batch(tmp_path):
    """Without measuring: the intact model and the conservation of 12 examples."""
    executor, claim = measured("llama", tmp_path)
    executor.result(Describe(MODEL))
    plan = Planner(executor).add(estimate(claim))
    assert plan.requests == {"Encode": 1, "Ablate": 1, "Conserve": 1} and plan.notes == ()
    assert (plan.forwards, plan.backwards) == (2, 1)
