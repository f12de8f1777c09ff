"""Scaling against weight surgery: a unit's part of its projection is multiplied in a copy of the model."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import OptionError
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, edits, metric, outcomes, prompts, same

FACTORS = (-4.0, -1, 0.5, 2)


def multiplied(model, names, factor):
    """A copy of the model in which units write `factor` times what they wrote."""
    twin = copy.deepcopy(model)
    parts = Parts(twin)

    def rows(module, start, stop):
        if model.config.model_type == "gpt2":
            module.weight[start:stop] *= factor
        else:
            module.weight[:, start:stop] *= factor

    with torch.no_grad():
        for name in names:
            layer = int(name[1])
            if name.endswith("MLP"):
                for parameter in parts.down[layer].parameters():
                    parameter *= factor
            elif "H" in name:
                h = int(name.split("H")[1])
                rows(parts.o[layer], h * parts.hd, (h + 1) * parts.hd)
            else:
                i = int(name.split("N")[1])
                rows(parts.down[layer], i, i + 1)
    return twin


@pytest.mark.parametrize("name", NAMES)
def test_scaled_components_and_neurons_equal_surgery(name):
    """Single units and sets over several layers: what is multiplied is what the unit computes in the changed run."""
    model, task = tiny.model(name), tiny.task(n=3, tokens=2, foils=2)
    parts, subject = Parts(model), open_model(model)
    neurons = random.Random(0).sample([f"L{layer}N{i}" for layer in range(parts.L) for i in range(parts.dff)], 40)
    sets = [["L0H1"], ["L2MLP"], ["L0H0", "L0MLP", "L1H3", "L1MLP", "L2H2"]]
    for factor in FACTORS[::3]:
        found = subject.ablate_many(task, sets, kind="scale", factor=factor)
        for i, units in enumerate(sets):
            one = type(found)(found.correct[i], found.metric[i], found.log_prob[i])
            same(one, outcomes(multiplied(model, units, factor), task), 1e-5)
        same(subject.ablate(task, remove=neurons, kind="scale", factor=factor), outcomes(multiplied(model, neurons, factor), task), 1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_a_factor_of_zero_is_zero_ablation(name):
    """Sets, their complements, neurons and sweeps, bit for bit."""
    model, task = tiny.model(name), tiny.task(n=4)
    subject = open_model(model)
    for sets, level in (([["L0H1"], ["L1MLP", "L2H2"]], "component"), ([["L0N3", "L1N9"]], "neuron")):
        for mode in ("remove", "keep"):
            zero = subject.ablate_many(task, sets, mode, level=level)
            scaled = subject.ablate_many(task, sets, mode, "scale", level, factor=0)
            assert np.array_equal(zero.metric, scaled.metric) and np.array_equal(zero.log_prob, scaled.log_prob)
    assert np.array_equal(subject.sweep(task).metric, subject.sweep(task, "scale", factor=0.0).metric)


@pytest.mark.parametrize("factor", FACTORS)
def test_a_sweep_is_single_sets(factor):
    """Layers that were left out and rows side by side change nothing."""
    subject, task = open_model(tiny.model("qwen2")), tiny.task(n=4)
    names = subject.anatomy.universe.component_names
    swept, single = (
        subject.sweep(task, "scale", factor=factor),
        subject.ablate_many(task, [[n] for n in names], kind="scale", factor=factor),
    )
    np.testing.assert_allclose(swept.metric.T, single.metric, rtol=1e-6)


def test_a_position_is_scaled_on_its_own():
    """The last prompt token of one neuron, by a plain hook."""
    model, task = tiny.model("llama"), tiny.task(n=4)

    def edit(x):
        x = x.clone()
        x[:, -1, 7] *= -3
        return x

    with edits(model, {("n", 1): edit}):
        oracle = [float(metric("logit_diff", model(input_ids=as_ids(prompts(p)[0])).logits[0].detach(), p)) for p in task]
    np.testing.assert_allclose(
        open_model(model).ablate(task, remove=["L1N7@-1"], kind="scale", factor=-3).metric, oracle, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option factor"),
        ({"factor": 1}, "a factor of 1 changes nothing"),
        ({"factor": float("nan")}, "finite number, got nan"),
        ({"factor": True}, "finite number, got True"),
        ({"factor": "2"}, "finite number, got '2'"),
        ({"factor": 2, "level": "edge"}, "scale ablation does not work at level 'edge'; allowed: component, neuron"),
    ],
)
def test_what_means_nothing_is_refused(options, message):
    """With what to do instead."""
    remove = ["L0H0->L1.MLP"] if "level" in options else ["L0H0"]
    with pytest.raises(OptionError, match=message):
        open_model(tiny.model("llama")).ablate(tiny.task(n=2), remove=remove, kind="scale", **options)
