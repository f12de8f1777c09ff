"""Measurements on tasks that were extended: what was measured before stays, only new examples are measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_circuits.core.results import Attribution, Conservation, Encoded, Outcome, SweepOutcome
from pytest_circuits.core.sources import TaskSource
from pytest_circuits.measurement.example_selection import examples_of
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.planner import Planner
from pytest_circuits.measurement.requests import Ablate, Attribute, Conserve, Describe, Encode, MeasureNorms, Part, Sweep
from pytest_circuits.measurement.store import Store
from pytest_circuits.stats.split import split_by_group, split_first
from tests.fakes.executor import UNIVERSE, FakeSubject, Opener

SOURCE = TaskSource.make("ioi", "builtin", "ioi", {"n": 40, "seed": 3})
GROWN = replace(SOURCE, grown=(80, 100))
DISCOVERY, EVALUATION, EVERY = Part("discovery", 0.5), Part("evaluation", 0.5), Part()


class RowSubject(FakeSubject):
    """Each example's results depend on its prompt alone."""

    def encode(self, task):
        self._called("encode")
        groups = tuple(pair.group for pair in task)
        return Encoded(len(task), groups, task.fingerprint[:8])

    def _rows(self, kind, task, examples, width):
        self._called(kind, len(task) if examples is None else len(examples))
        chosen = range(len(task)) if examples is None else examples
        return np.stack([np.random.default_rng(list(task.pairs[int(i)].clean.encode())).normal(size=width) for i in chosen])

    def attribute(self, task, method="eap", level="component", metric="logit_diff", batch_size=None, examples=None, reduce=None, **options):
        values = self._rows("attribute", task, examples, UNIVERSE.components).astype(np.float32)
        blocks = np.arange(len(values)) // 2
        values = values.mean(0, keepdims=True) if reduce else values
        return Attribution(values, UNIVERSE.component_names, method, level, metric, blocks)

    def ablate_many(self, task, sets, mode="remove", kind="zero", level="component", metric="logit_diff", batch_size=None, examples=None,
                    reference=None, **options):  # fmt: skip
        values = self._rows("ablate", task, examples, len(sets)).T.astype(np.float32)
        if reference is not None:
            values = values + np.float32(np.asarray(reference).sum())
        return Outcome(values > 0, values, -values)

    def sweep(self, task, kind="zero", metric="logit_diff", batch_size=None, examples=None, reference=None, **options):
        values = self._rows("sweep", task, examples, UNIVERSE.components).astype(np.float32)
        one = Outcome(values[:, 0] > 0, values[:, 0], values[:, 0])
        return SweepOutcome(values > 0, values, values, one, UNIVERSE.component_names)

    def conserve(self, task, rules="relp", metric="logit_diff", examples=None, batch_size=None):
        totals = self._rows("conserve", task, examples, 3)
        return Conservation(("embeddings", "L0", "L1"), totals, totals[:, 0], totals + 1)


@pytest.fixture
def new_executor(tmp_path):
    def make(folder="cache", **options):
        executor = Executor(Store(tmp_path / folder), opener=Opener(RowSubject), **options)
        executor.opener = executor.models._opener
        return executor

    return make


def requests(model, task):
    common = {"model": model, "task": task}
    return [
        Attribute(**common, method="eap"),
        Attribute(**common, method="eap", part=EVALUATION),
        Ablate(**common, sets=(("L0H0",), ("L1H1", "L0MLP")), part=EVALUATION, reference=DISCOVERY, kind="mean"),
        Ablate(**common, sets=((),), part=EVALUATION),
        Sweep(**common, part=EVALUATION, reference=DISCOVERY),
        Conserve(**common, part=EVALUATION),
    ]


def arrays(result):
    if isinstance(result, Outcome):
        more = arrays(result.baseline) if result.baseline is not None else []
        return [result.correct, result.metric, result.log_prob, *more]
    return [result.values] if isinstance(result, Attribution) else [result.totals, result.metric, result.biases]


def test_results_are_those_of_measuring_all_examples_at_once(new_executor, model):
    executor, subject = new_executor(), RowSubject()
    task, encoded = executor.task(GROWN), executor.result(Encode(model, GROWN))
    assert (encoded.n, encoded.first) == (100, 40)
    rows = {part: examples_of(part, encoded) for part in (DISCOVERY, EVALUATION)}
    assert rows[DISCOVERY].max() < 40 <= rows[EVALUATION].max()
    for request in requests(model, GROWN):
        found = executor.result(request)
        examples = rows.get(request.part)
        if isinstance(request, Attribute):
            whole = subject.attribute(task, examples=examples)
        elif isinstance(request, Ablate):
            reference = None if request.reference is None else rows[request.reference]
            whole = subject.ablate_many(task, request.sets, examples=examples, reference=reference)
        else:
            whole = subject.sweep(task, examples=examples) if isinstance(request, Sweep) else subject.conserve(task, examples=examples)
        for a, b in zip(arrays(found), arrays(whole), strict=True):
            assert np.array_equal(a, b), request


def test_only_new_examples_are_measured_whatever_was_measured_before(new_executor, model):
    counts = []
    for before in ((), (SOURCE,), (SOURCE, replace(SOURCE, grown=(80,)))):
        executor = new_executor(f"cache{len(before)}")
        for task in (*before, GROWN):
            for request in requests(model, task):
                executor.result(request)
        counts.append(sorted(call[:2] for call in executor.opener.calls if call[0] not in ("encode", "describe")))
    assert counts[0] == counts[1] == counts[2]
    rows = examples_of(EVALUATION, executor.result(Encode(model, GROWN)))
    steps = [len(rows[(rows >= low) & (rows < high)]) for low, high in ((0, 40), (40, 80), (80, 100))]
    assert steps == [20, 39 + 1, 19]  # one further example belongs to a discovery group
    expected = [40, 40, 20, 20, 19]  # all of each step, and the evaluation examples where they are not all of it
    assert sorted(n for kind, n in counts[0] if kind == "attribute") == sorted(expected)


def test_a_result_does_not_depend_on_what_is_stored_nor_on_the_order(new_executor, model):
    cold, warm = new_executor("a"), new_executor("b")
    for request in reversed(requests(model, GROWN)):
        warm.result(replace(request, task=SOURCE))
        warm.result(request)
    for request in requests(model, GROWN):
        first = cold.result(request)
        again = new_executor("b", offline=True).result(request)
        assert all(np.array_equal(a, b) for a, b in zip(arrays(first), arrays(again), strict=True))


def test_discovery_is_the_very_measurement_that_it_was(new_executor, model):
    executor = new_executor()
    mean = Attribute(model, SOURCE, "eap", part=DISCOVERY, reduce="mean")
    first = executor.result(mean)
    before = len(executor.opener.calls)
    assert np.array_equal(executor.result(replace(mean, task=GROWN)).values, first.values)
    assert len(executor.opener.calls) == before
    assert MeasureNorms(model, GROWN, DISCOVERY).pieces_after(40) == [MeasureNorms(model, SOURCE, DISCOVERY)]


def test_means_over_growing_examples_are_not_put_together(model):
    for request in (
        Attribute(model, GROWN, "eap", part=EVALUATION, reduce="mean"),
        MeasureNorms(model, GROWN),
        Ablate(model, GROWN, (("L0H0",),), part=EVALUATION, kind="mean"),
        Ablate(model, GROWN, (("L0H0",),), part=EVALUATION, kind="mean", reference=EVALUATION),
        Sweep(model, GROWN, kind="mean", part=EVALUATION, reference=Part("discovery", None)),
        Attribute(model, SOURCE, "eap"),
    ):
        assert request.pieces_after(40) == [request]
    for request in (Describe(model), Encode(model, GROWN)):
        assert request.pieces(None) == [request]
    for kind in ("zero", "scale", "counterfactual", "resample"):
        assert len(Ablate(model, GROWN, (("L0H0",),), part=EVALUATION, kind=kind).pieces_after(40)) == 3


def test_pieces_are_one_for_each_step(model):
    found = Attribute(model, GROWN, "eap", part=EVALUATION).pieces_after(40)
    assert [(one.task.grown, one.part.since) for one in found] == [((), 0), ((80,), 40), ((80, 100), 80)]


def test_blocks_of_different_measurements_are_different(new_executor, model):
    found = new_executor().result(Attribute(model, GROWN, "eap"))
    assert found.blocks.tolist() == [*range(20), *range(20)] or len(set(found.blocks.tolist())) == 20 + 20 + 10
    assert sorted(found.blocks.tolist()) == found.blocks.tolist()


def test_strongest_units_are_joined_with_their_numbers(model):
    def part(start):
        indices = np.array([[start, start + 1]], np.int32)
        return Attribution(np.ones((1, 2), np.float32), UNIVERSE.component_names, "eap", "component", "logit_diff", indices=indices)

    assert Attribute(model, SOURCE, "eap").join([part(0), part(2)]).indices.tolist() == [[0, 1], [2, 3]]


def test_a_step_without_new_evaluation_examples_is_no_measurement(new_executor, model):
    """All further examples of the first step belong to groups of the discovery side."""

    class Few(RowSubject):
        def encode(self, task):
            closed = [i for i in range(40) if i not in set(examples_of(EVALUATION, Encoded(40, tuple(f"g{i}" for i in range(40)), "d")))]
            groups = [f"g{i}" for i in range(40)] + [f"g{closed[0]}"] * 40 + [f"new{i}" for i in range(20)]
            return Encoded(len(task), tuple(groups[: len(task)]), task.fingerprint)

    executor = new_executor()
    executor.opener.subject = Few
    found = executor.result(Ablate(model, GROWN, ((),), part=EVALUATION))
    assert found.correct.shape == (1, 20 + 20)
    assert executor.result(Ablate(model, replace(SOURCE, grown=(80,)), ((),), part=EVALUATION)).correct.shape == (1, 20)


def test_a_plan_counts_the_same_measurements(new_executor, model):
    executor = new_executor()
    planner = Planner(executor)

    def steps(task):
        yield [Encode(model, task)]
        yield requests(model, task)

    first, more, again = (planner.add(steps(task)) for task in (SOURCE, GROWN, GROWN))
    assert (first.requests["Attribute"], more.requests["Attribute"]) == (2, 4)
    assert (first.requests["Ablate"], more.requests["Ablate"], more.requests["Encode"]) == (2, 4, 1)
    assert not again.requests
    assert executor.opener.calls == []
    straight = Planner(executor).add(steps(GROWN))
    assert straight.forwards == first.forwards + more.forwards


@pytest.mark.parametrize("seed", range(5))
def test_further_examples_of_discovery_groups_are_on_neither_side(seed):
    rng = np.random.default_rng(seed)
    groups = [f"g{i}" for i in rng.integers(30, size=200)]
    discovery, evaluation = split_first(groups, 60, 0.5, seed)
    before = split_by_group(groups[:60], 0.5, seed)
    assert discovery.tolist() == before[0].tolist()
    assert evaluation[: len(before[1])].tolist() == before[1].tolist()
    closed = {groups[i] for i in discovery}
    assert [int(i) for i in evaluation] == [i for i in range(200) if groups[i] not in closed]
    assert [a.tolist() for a in split_first(groups, None, 0.5, seed)] == [a.tolist() for a in split_by_group(groups, 0.5, seed)]
