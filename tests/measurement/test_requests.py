"""A request type is one class and one registration: it is then measured, cached, planned, costed, described and read back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pytest_circuits.core.sources import TaskSource
from pytest_circuits.core.verdict import Estimate
from pytest_circuits.errors import Offline
from pytest_circuits.measurement.cost_model import Batching, Passes
from pytest_circuits.measurement.entry import dump, load
from pytest_circuits.measurement.planner import Planner
from pytest_circuits.measurement.requests import ALL, REQUESTS, Describe, ExampleRequest, Part, ask
from tests.fakes.executor import TASK, FakeSubject, N, Opener


@dataclass(frozen=True)
class Entropies:
    """The entropy of the next token, float64 [n_examples]."""

    values: np.ndarray


@dataclass(frozen=True)
class MeasureEntropy(ExampleRequest[Entropies]):
    """Entropies in a base."""

    task: TaskSource
    base: float = 2.0
    part: Part = ALL

    @classmethod
    def result_types(cls):
        return (Entropies,)

    def describe_measurement(self, examples):
        return f"the entropy of answers to {examples}"

    def execute(self, subject, task, rows, batch_size):
        return subject.entropy(task, self.base, rows.examples)

    def cost(self, universe, n, reference, batch_size):
        return Passes(Batching.of(n, batch_size).batches)

    def synthetic(self, universe, n):
        return Entropies(np.ones(n))

    def join(self, results):
        return Entropies(np.concatenate([part.values for part in results]))


class EntropySubject(FakeSubject):
    def entropy(self, task, base, examples):
        rows = np.arange(len(task)) if examples is None else examples
        self._called("entropy", base, len(rows))
        self.forwards += 1
        return Entropies(np.asarray(rows) / base)


@pytest.fixture(autouse=True)
def registered():
    REQUESTS.add("MeasureEntropy", MeasureEntropy)
    yield
    REQUESTS.remove("MeasureEntropy")


def mean_entropy(request):
    """A property of one request."""
    entropies = yield from ask(request)
    return Estimate(float(entropies.values.mean()), (0, 9), len(entropies.values))


def test_a_new_request_type_is_measured_once_and_read_back(new_executor, model):
    request = MeasureEntropy(model, TASK, part=Part("evaluation", 0.5))
    executor = new_executor(Opener(EntropySubject))
    estimate, cost = executor.run(mean_entropy(request))
    assert (cost.forwards, cost.measured, estimate.n, executor.opener.count("entropy")) == (1, 2, N // 2, 1)  # and the encoding
    offline = new_executor(Opener(EntropySubject), offline=True)
    again, cost = offline.run(mean_entropy(request))
    assert (again, cost.hits, cost.cached, offline.opener.opened) == (estimate, 1, True, [])
    with pytest.raises(Offline, match=r"the entropy of answers to task 'swap' \(evaluation examples\) on model 'm'"):
        offline.result(replace(request, base=10.0))


def test_a_new_request_type_is_planned_and_costed(new_executor, model):
    request = MeasureEntropy(model, TASK)
    forecast = Planner(new_executor(batch_size=10)).add(mean_entropy(request))
    assert (forecast.requests, forecast.forwards, forecast.backwards) == (Counter(MeasureEntropy=1), 3, 0)
    executor = new_executor(Opener(EntropySubject), batch_size=10)
    executor.result(request)
    assert (Planner(executor).add(mean_entropy(request)).cached, Planner(executor).add(mean_entropy(request)).forwards) == (1, 0)


def test_a_new_request_type_measures_only_the_examples_that_a_task_gains(new_executor, model):
    source = TaskSource.make("ioi", "builtin", "ioi", {"n": 40})
    executor = new_executor(Opener(EntropySubject), load_task=None)
    executor.result(MeasureEntropy(model, source))
    result = executor.result(MeasureEntropy(model, replace(source, grown=(60,))))
    assert ([call[2] for call in executor.opener.calls if call[0] == "entropy"], len(result.values)) == ([40, 20], 60)


def test_its_results_are_stored_by_their_own_type():
    result = Entropies(np.arange(3.0))
    stored = load(dump(result, key="k", kind="MeasureEntropy", request="r"), "k")
    assert (type(stored), stored.values.tolist()) == (Entropies, [0.0, 1.0, 2.0])


def test_its_code_is_part_of_its_key(model):
    """For the types of this package `MEASUREMENT_VERSION` stands for their code."""
    assert MeasureEntropy(model, TASK).third_party_digest() is not None
    assert Describe(model).third_party_digest() is None


def test_a_type_that_is_not_registered_is_refused(new_executor, model):
    REQUESTS.remove("MeasureEntropy")
    try:
        with pytest.raises(TypeError, match=r"which is not a request; allowed: Ablate, .*Sweep$"):
            new_executor().result(MeasureEntropy(model, TASK))
    finally:
        REQUESTS.add("MeasureEntropy", MeasureEntropy)
