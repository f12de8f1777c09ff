"""Models in bfloat16 and float16: scores in float32, finite, and near those of the same weights in float32."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES

METHODS = ("eap", "atp", "eap_ig", "ig_activations", "relp", "gradient", "weight_gradient", "exact")


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [*((n, torch.bfloat16, 0.15) for n in NAMES), *((n, torch.float16, 0.04) for n in ("llama", "gpt2", "gpt_neox"))],
)
def test_scores_are_float32_and_near_those_of_the_float32_model(name, dtype, tolerance):
    """The reference has the rounded weights; the distance is relative to the norm of all scores."""
    half, task = tiny.model(name, dtype=dtype), tiny.task(n=3, tokens=2)
    full = copy.deepcopy(half).float()
    one, other = open_model(half), open_model(full)
    for method in METHODS:
        found, expected = one.attribute(task, method), other.attribute(task, method)
        assert found.scores.dtype == np.float32 and np.isfinite(found.scores).all()
        distance = np.linalg.norm(found.scores - expected.scores) / np.linalg.norm(expected.scores)
        assert 0 < distance < tolerance, (method, distance)
    neurons = [s.attribute(task, "relp", level="neuron").scores for s in (one, other)]
    assert neurons[0].dtype == np.float32 and np.linalg.norm(neurons[0] - neurons[1]) / np.linalg.norm(neurons[1]) < tolerance
    assert next(half.parameters()).dtype == dtype


@pytest.mark.parametrize("name", ["llama", "gpt2"])
@pytest.mark.parametrize("kind", ["zero", "mean", "counterfactual", "resample"])
def test_ablation_in_bfloat16(name, kind):
    """Outcomes are float32; a removed nothing is still the intact model, bit for bit."""
    half, task = tiny.model(name, dtype=torch.bfloat16), tiny.task(n=4)
    subject, full = open_model(half), open_model(copy.deepcopy(half).float())
    found, expected = (s.ablate(task, remove=["L0H1", "L1MLP"], kind=kind) for s in (subject, full))
    assert found.metric.dtype == np.float32
    assert np.abs(found.metric - expected.metric).max() < 0.1 * np.abs(expected.log_prob).max()
    nothing = subject.ablate(task, remove=[], kind=kind)
    assert np.array_equal(nothing.metric, nothing.baseline.metric)


def test_log_probabilities_are_taken_in_float32():
    """In bfloat16 a log-softmax over the vocabulary would have two digits."""
    half = tiny.model("llama", dtype=torch.bfloat16)
    task = tiny.task(n=2)
    with torch.no_grad():
        logits = [half(input_ids=torch.tensor([p.clean])).logits[0, -1].float() for p in task]
    oracle = [float(x.log_softmax(-1)[p.answer[0]]) for x, p in zip(logits, task, strict=True)]
    found = open_model(half).ablate(task, remove=[], batch_size=1)
    np.testing.assert_allclose(found.log_prob, oracle, rtol=1e-6)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_batch_in_bfloat16_is_made_of_the_same_prompts(name):
    """Scores of a batch agree with one prompt at a time to the model's precision."""
    subject, task = open_model(tiny.model(name, dtype=torch.bfloat16)), tiny.task(n=6)
    for method in ("eap", "atp", "relp"):
        one, many = subject.attribute(task, method, batch_size=1).scores, subject.attribute(task, method).scores
        assert np.linalg.norm(one - many) < 0.02 * np.linalg.norm(many)
