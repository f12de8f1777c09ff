"""Zero ablation against weight surgery: the removed unit's columns of the projection are zero in a copy of the model."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.ablation.stacked import edited_logits, replaced_masks
from pytest_circuits.model.batches import batches
from pytest_circuits.model.hooks import measuring
from pytest_circuits.model.sites import sites_of
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts, edits, logits_of, operated, outcomes, prompts, same

every_architecture = pytest.mark.parametrize("name", NAMES)
every_metric = pytest.mark.parametrize("metric", ["logit_diff", "log_prob", "prob"])


def double_logits(subject, task, sets, level="component"):
    """The engine's logits in the model's own precision; the public arrays are float32."""
    encoded = subject.encode(task)
    sites, universe = sites_of(subject.anatomy, level)
    runner = subject._runner
    masks = replaced_masks([universe.index(names, level) for names in sets], "remove", universe.size(level))
    zeros = [torch.zeros(1, 1, 1, 1, dtype=subject.model.dtype)] * len(sites)
    found = {}
    with measuring(subject.model):
        for batch in batches(encoded, 3, runner.device, runner.vocabulary):
            logits = edited_logits(runner, batch, sites, masks, zeros)
            stacked = logits.view(len(sets), len(batch), *logits.shape[1:])
            found.update({(s, int(row)): stacked[s, i] for s in range(len(sets)) for i, row in enumerate(batch.rows)})
    return found


def equal_surgery(model, task, sets, level="component"):
    """Every logit of every set, to 1e-10."""
    found, twins = double_logits(open_model(model), task, sets, level), [operated(model, names) for names in sets]
    assert len(found) == len(sets) * len(task)
    for (s, row), logits in found.items():
        clean, _, start = prompts(task.pairs[row])
        torch.testing.assert_close(logits, logits_of(twins[s], clean)[0, start:], atol=1e-10, rtol=1e-10)


def some_sets(parts: Parts, seed: int = 0) -> list[list[str]]:
    r = random.Random(seed)
    joint = [r.sample(parts.names, k) for k in (2, 5, len(parts.names) - 1)]
    return [[n] for n in parts.names] + joint + [parts.names]


@every_architecture
def test_every_component_and_joint_sets_equal_surgery_in_float32(name):
    """To 1e-4, for single heads and MLPs, joint sets and everything at once."""
    model, task = tiny.model(name, dtype=torch.float32), tiny.task(n=2, tokens=2, foils=2)
    sets = some_sets(Parts(model))
    found = open_model(model).ablate_many(task, sets)
    for i, names in enumerate(sets):
        one = type(found)(found.correct[i], found.metric[i], found.log_prob[i])
        same(one, outcomes(operated(model, names), task), 1e-4)


@every_architecture
def test_components_equal_surgery_in_float64_to_1e_10(name):
    """The logits themselves, in double precision."""
    model = tiny.model(name, seed=1)
    equal_surgery(model, tiny.task(n=2, seed=1), some_sets(Parts(model), 1))


@every_architecture
def test_neurons_equal_surgery(name):
    """Single neurons and joint sets over layers: their columns of the down projection are zero."""
    model, task = tiny.model(name, seed=2), tiny.task(n=2, seed=2)
    parts, r = Parts(model), random.Random(3)
    names = [f"L{layer}N{i}" for layer in range(parts.L) for i in range(parts.dff)]
    sets = [[names[0]], [names[-1]], r.sample(names, 7), r.sample(names, len(names) // 2), names]
    equal_surgery(model, task, sets, "neuron")
    same(open_model(model).ablate(task, remove=sets[2]), outcomes(operated(model, sets[2]), task), 1e-5)


@every_architecture
def test_neurons_of_the_mlp_output_are_its_coordinates(name):
    """At the site `mlp_output` a neuron is a row of the down projection together with its bias."""
    model, task = tiny.model(name, seed=2), tiny.task(n=2, seed=2)
    parts = Parts(model)
    mine = {("mlp", 1): lambda y: torch.where(torch.arange(parts.d) % 5 == 0, 0.0, y)}
    chosen = [f"L1N{i}" for i in range(0, parts.d, 5)]
    found = open_model(model).ablate(task, remove=chosen, site="mlp_output")
    with edits(model, mine):
        same(found, outcomes(model, task), 1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
@every_metric
def test_every_metric_equals_surgery(name, metric):
    """Also scored by argmax, with several answer tokens."""
    model = tiny.model(name, seed=4)
    parts = Parts(model)
    task = tiny.task(n=4, seed=4, tokens=2, foils=3, scoring="argmax")
    names = random.Random(5).sample(parts.names, 4)
    same(open_model(model).ablate(task, remove=names, metric=metric), outcomes(operated(model, names), task, metric), 1e-5)


@every_architecture
def test_nothing_ablated_is_the_intact_model_bit_for_bit(name):
    """remove(∅) and keep(all) equal the intact model, for each kind of ablation."""
    model, task = tiny.model(name, dtype=torch.float32), tiny.task(n=3)
    subject, everything = open_model(model), Parts(model).names
    intact = outcomes(model, task)
    for kind in ("zero", "mean", "counterfactual"):
        for found in (subject.ablate(task, remove=[], kind=kind), subject.ablate(task, keep=everything, kind=kind)):
            assert np.array_equal(found.metric, found.baseline.metric)
            assert np.array_equal(found.log_prob, found.baseline.log_prob)
            same(found, intact, 1e-5)


@every_architecture
def test_keeping_a_set_is_removing_its_complement(name):
    """Bit for bit; keep(∅) = remove(all), which is not the intact model."""
    model, task = tiny.model(name, dtype=torch.float32), tiny.task(n=3)
    subject, everything = open_model(model), Parts(model).names
    for kept in ([], everything[::2], everything[3:5]):
        complement = [n for n in everything if n not in kept]
        one, other = subject.ablate(task, keep=kept), subject.ablate(task, remove=complement)
        assert np.array_equal(one.metric, other.metric) and np.array_equal(one.correct, other.correct)
        assert not np.array_equal(one.metric, one.baseline.metric)


def test_keeping_neurons_leaves_attention_alive():
    """With neurons the universe is the MLPs: keep(∅) of neurons removes their contributions but not output biases."""
    model, task = tiny.model("gpt2"), tiny.task(n=3)
    parts = Parts(model)
    found = open_model(model).ablate(task, keep=[], level="neuron")
    same(found, outcomes(operated(model, [f"L{i}N{j}" for i in range(parts.L) for j in range(parts.dff)]), task), 1e-5)


@every_architecture
def test_all_heads_at_zero_leave_the_output_projections_bias(name):
    """The attention output becomes exactly the bias (zero where there is none)."""
    model, task = tiny.model(name), tiny.task(n=2)
    parts = Parts(model)
    heads = [n for n in parts.names if "H" in n]
    kept = []
    handles = [o.register_forward_hook(lambda m, _a, y: kept.append((m, y.detach().clone()))) for o in parts.o]
    open_model(model).ablate_many(task, [heads])
    for handle in handles:
        handle.remove()
    assert kept
    for module, y in kept:
        expected = torch.zeros_like(y) if module.bias is None else module.bias.expand_as(y)
        assert torch.equal(y, expected)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_eager_attention_equals_surgery_too(name):
    """The attention implementation makes no difference to what is removed."""
    model, task = tiny.model(name, dtype=torch.float32, attn_implementation="eager"), tiny.task(n=3)
    assert model.config._attn_implementation == "eager"
    names = ["L0H1", "L1H3", "L2MLP"]
    same(open_model(model).ablate(task, remove=names), outcomes(operated(model, names), task), 1e-4)


def test_stacked_sets_equal_single_calls():
    """Many sets in one call, more than fit in a batch, against one call each."""
    model, task = tiny.model("llama"), tiny.task(n=5)
    subject = open_model(model)
    sets = [[], *some_sets(Parts(model), 7), []]
    for batch_size in (1, 2, 64):
        many = subject.ablate_many(task, sets, batch_size=batch_size)
        for i in (0, 3, len(sets) - 3, len(sets) - 1):
            np.testing.assert_allclose(many.metric[i], subject.ablate(task, remove=sets[i]).metric, rtol=1e-6, atol=1e-6)
