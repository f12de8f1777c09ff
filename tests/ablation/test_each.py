"""A set of its own for every example, against the same sets one example at a time."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits import open_model
from pytest_circuits.errors import OptionError, TaskError, UnitError
from pytest_circuits.tasks.base import PromptPair, Task
from tests.fakes import tiny

SETS = [("L0H1",), (), ("L0MLP", "L2H3"), ("L1H0", "L1H1", "L2MLP"), ("L2H0",), ("L0H1",)]


@pytest.fixture(scope="module")
def subject():
    return open_model(tiny.model("llama"))


@pytest.mark.parametrize("mode", ["remove", "keep"])
@pytest.mark.parametrize(("kind", "options"), [("zero", {}), ("counterfactual", {}), ("scale", {"factor": 0.5})])
def test_each_example_has_its_own_set_removed(subject, mode, kind, options):
    task = tiny.task(6)
    found = subject.ablate_many(task, SETS, mode, kind, each=True, **options)
    assert found.correct.shape == found.metric.shape == found.log_prob.shape == (1, 6)
    for i, units in enumerate(SETS):
        alone = subject.ablate_many(task, [units], mode, kind, examples=[i], **options)
        assert found.correct[0, i] == alone.correct[0, 0]
        np.testing.assert_allclose([found.metric[0, i], found.log_prob[0, i]], [alone.metric[0, 0], alone.log_prob[0, 0]], atol=1e-6)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_batches_and_chosen_examples_change_nothing(subject, batch_size):
    task = tiny.task(6)
    whole = subject.ablate_many(task, SETS, each=True).metric[0]
    some = subject.ablate_many(task, [SETS[i] for i in (4, 1, 3)], each=True, examples=[4, 1, 3], batch_size=batch_size).metric[0]
    np.testing.assert_allclose(some, whole[[4, 1, 3]], atol=1e-6)


def test_it_costs_what_one_set_costs(subject):
    task = tiny.task(6)

    def calls(sets, **options):
        before = subject.forwards
        subject.ablate_many(task, sets, **options)
        return subject.forwards - before

    assert calls(SETS, each=True) == calls(SETS[:1]) == 2  # prompts of two lengths


def test_neurons_too_and_what_is_refused(subject):
    task = tiny.task(2)
    found = subject.ablate_many(task, [("L0N3",), ("L1N0", "L2N5")], level="neuron", each=True)
    alone = subject.ablate_many(task, [("L1N0", "L2N5")], level="neuron", examples=[1])
    np.testing.assert_allclose(found.metric[0, 1], alone.metric[0, 0], atol=1e-6)
    with pytest.raises(OptionError, match="each example needs exactly one set: 2 examples, 1 sets"):
        subject.ablate_many(task, [("L0H0",)], each=True)
    with pytest.raises(OptionError, match="without positions"):
        subject.ablate_many(task, [("L0H0@-1",), ()], each=True)
    with pytest.raises(UnitError, match="L9H0"):
        subject.ablate_many(task, [("L9H0",), ()], each=True)


def test_one_pair_is_answered_as_in_a_task(subject):
    task = tiny.task(4)
    outcome = subject.ablate(task, remove=["L0H1", "L2MLP"])
    for i, pair in enumerate(task):
        found = subject.answer(pair, remove=["L0H1", "L2MLP"])
        assert (found.correct, found.intact.correct) == (outcome.correct[i], outcome.baseline.correct[i])
        np.testing.assert_allclose([found.metric, found.intact.metric], [outcome.metric[i], outcome.baseline.metric[i]], atol=1e-6)
        assert found.changed == (outcome.baseline.correct[i] and not outcome.correct[i])
    intact = subject.answer(task.pairs[0])
    assert intact.metric == pytest.approx(intact.intact.metric) and not intact.changed
    scored = subject.answer(task.pairs[0], keep=["L0H1"], like=Task("t", task.pairs, "argmax"))
    assert scored.metric == pytest.approx(subject.ablate(task, keep=["L0H1"]).metric[0], abs=1e-6)
    with pytest.raises(OptionError, match="give one of remove"):
        subject.answer(task.pairs[0], remove=[], keep=[])
    with pytest.raises(OptionError, match="mean ablation takes values from other prompts"):
        subject.answer(task.pairs[0], remove=["L0H1"], kind="mean")


def test_a_task_can_go_without_pairs_that_do_not_fit(subject):
    good = tiny.task(3).pairs
    bad = PromptPair((1, 2, 3), (1, 2), (4,), ((5,),))
    encoded = subject.encode(Task("t", (bad, good[0], bad, good[1]), unfit="drop"))
    assert (encoded.kept, encoded.n, encoded.pairs) == ((1, 3), 2, (good[0], good[1]))
    whole = subject.encode(Task("t", good, unfit="drop"))
    assert whole.kept == (0, 1, 2) and subject.encode(Task("t", good)).kept == ()
    with pytest.raises(TaskError, match="2 of 2 pairs of task 't' cannot be used"):
        subject.encode(Task("t", (bad, bad), unfit="drop"))
    with pytest.raises(TaskError, match="1 of 2 pairs"):
        subject.encode(Task("t", (bad, good[0])))
