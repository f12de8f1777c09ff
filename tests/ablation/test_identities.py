"""Identities of circuits at every level: everything, nothing, complements, and what does not change faithfulness."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from pytest_circuits import open_model
from tests.fakes import tiny
from tests.fakes.plain_hooks import Parts

LEVELS = ("component", "neuron", "edge")
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would run the model for minutes
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)
a_model = st.sampled_from(["llama", "gpt2", "gpt_neox", "gemma2", "olmo2"])
a_kind = st.sampled_from(["zero", "counterfactual", "mean", "resample"])


@cache
def opened(name: str):
    return open_model(tiny.model(name))


def universe(subject, level: str) -> list[str]:
    return list(subject.anatomy.universe.names(level))


def drawn(data, units) -> list[str]:
    """A set of any size, from none to all."""
    share = data.draw(st.sampled_from([0, 0.02, 0.3, 0.7, 1]))
    seed = data.draw(st.integers(0, 10**6))
    keep = np.random.default_rng(seed).random(len(units)) < share
    return [u for u, inside in zip(units, keep, strict=True) if inside]


def same(one, other) -> None:
    """Bit for bit."""
    assert one.metric.tolist() == other.metric.tolist()
    assert one.log_prob.tolist() == other.log_prob.tolist() and one.correct.tolist() == other.correct.tolist()


@few
@given(a_model, st.sampled_from(LEVELS), a_kind, st.integers(0, 10**6))
def test_everything_and_nothing(name, level, kind, seed):
    """keep(all) = remove(∅) = intact; remove(all) = keep(∅)."""
    subject, task = opened(name), tiny.task(n=4, seed=seed, tokens=2)
    units = universe(subject, level)
    run = lambda mode, names: subject.ablate(task, **{mode: names}, kind=kind, level=level)  # noqa: E731
    whole = run("keep", units)
    same(whole, whole.baseline)
    same(run("remove", []), whole.baseline)
    nothing = run("remove", units)
    same(nothing, run("keep", []))
    assert nothing.metric.tolist() != whole.metric.tolist()


@few
@given(a_model, st.sampled_from(LEVELS), a_kind, st.data())
def test_completeness_is_the_faithfulness_of_the_complement(name, level, kind, data):
    """remove(C) and keep(everything but C) are one run."""
    subject, task = opened(name), tiny.task(n=4)
    units = universe(subject, level)
    circuit = drawn(data, units)
    inside = set(circuit)
    complement = [u for u in units if u not in inside]
    same(subject.ablate(task, remove=circuit, kind=kind, level=level), subject.ablate(task, keep=complement, kind=kind, level=level))


@few
@given(st.sampled_from(["llama", "qwen2", "gpt_neox"]), st.sampled_from(LEVELS), st.floats(0.2, 5), st.data())
def test_an_affine_change_of_the_metric_leaves_faithfulness_alone(name, level, factor, data):
    """m → a·m + b, by an unembedding that is scaled and shifted."""
    subject, task = opened(name), tiny.task(n=4)
    model = copy.deepcopy(subject.model)
    head = model.get_output_embeddings()
    shift = torch.linspace(-2, 2, tiny.VOCAB, dtype=torch.float64)
    head.register_forward_hook(lambda _m, _a, y: factor * y + shift)
    circuit = drawn(data, universe(subject, level))

    def faithfulness(s) -> tuple[float, float]:
        many = s.ablate_many(task, [circuit, []], "keep", level=level).metric.astype(float).mean(1)
        intact = float(s.ablate(task, remove=[]).metric.astype(float).mean())
        return intact - many[1], (many[0] - many[1]) / (intact - many[1])

    gap, before = faithfulness(subject)
    assume(abs(gap) > 0.3)
    changed, after = faithfulness(open_model(model))
    assert after == pytest.approx(before, rel=1e-4, abs=1e-4)
    assert changed == pytest.approx(factor * gap, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_replacing_a_layers_neurons_is_replacing_its_mlp(name):
    """All neurons of a layer at their corrupt values: the MLP's corrupt output."""
    subject, task = opened(name), tiny.task(n=3)
    neurons = [f"L1N{i}" for i in range(Parts(subject.model).dff)]
    one, other = (subject.ablate(task, remove=s, kind="counterfactual") for s in (neurons, ["L1MLP"]))
    np.testing.assert_allclose(one.metric, other.metric, rtol=1e-5, atol=1e-6)


@few
@given(st.sampled_from(["llama", "gpt2", "gpt_neox"]), st.integers(0, 10**6))
def test_only_the_edges_into_the_logits_count_when_all_of_them_are_replaced(name, seed):
    """Whatever happens before, the logits then read what they read without any node."""
    subject, task = opened(name), tiny.task(n=3, seed=seed)
    found = subject.ablate(task, remove=[e for e in universe(subject, "edge") if e.endswith("->logits")], kind="counterfactual")
    nodes = subject.ablate(task, remove=Parts(subject.model).names, kind="counterfactual")
    np.testing.assert_allclose(found.metric, nodes.metric, rtol=1e-5, atol=1e-5)
