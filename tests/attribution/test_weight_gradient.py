"""Weight-gradient magnitude against torch's own parameter gradients."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import OptionError
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, metric, prompts


def oracle(model, pairs, normalise: bool) -> np.ndarray:
    """Frobenius norm of the gradient of the mean loss of these examples, for each component."""
    twin = copy.deepcopy(model).requires_grad_(True)
    parts = Parts(twin)
    loss = 0.0
    for pair in pairs:
        logits = twin(input_ids=as_ids(prompts(pair)[0]), use_cache=False).logits[0]
        loss = loss - metric("log_prob", logits, pair) / len(pair.answer) / len(pairs)
    loss.backward()
    found = []
    conv = model.config.model_type == "gpt2"
    for layer in range(parts.L):
        gradient = parts.projection(layer, "v").weight.grad
        gradient = gradient.T if conv else gradient
        for h in range(parts.H):
            found.append(gradient[parts.columns("v", h * parts.kv // parts.H)])
        found.append(parts.down[layer].weight.grad)
    return np.array([float(g.norm() / (g.numel() ** 0.5 if normalise else 1)) for g in found])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("normalisation", "normalise"), [("sqrt_parameters", True), ("none", False)])
def test_scores_are_the_norms_of_torchs_parameter_gradients(name, normalisation, normalise):
    """Example by example; heads that share a value head share its score."""
    model, task = tiny.model(name), tiny.task(n=3, tokens=2)
    found = open_model(model).attribute(task, "weight_gradient", normalisation=normalisation)
    for row, pair in enumerate(task):
        np.testing.assert_allclose(found.scores[row], oracle(model, [pair], normalise), rtol=1e-5)
    assert found.blocks.tolist() == [0, 2, 1]  # numbered by length


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
@pytest.mark.parametrize("batch_size", [None, 1, 2, 4, 7])
def test_examples_of_a_gradient_batch_share_one_mean_gradient(name, batch_size):
    """Batches of 3, whatever the compute batch; the last one of a length is smaller; `blocks` says who belongs together."""
    model, task = tiny.model(name), tiny.task(n=9)
    found = open_model(model).attribute(task, "weight_gradient", gradient_batch=3, batch_size=batch_size)
    together = {}
    for row, block in enumerate(found.blocks):
        together.setdefault(int(block), []).append(row)
    assert sorted(map(sorted, together.values())) == [[0, 2, 4], [1, 3, 5], [6, 8], [7]]
    for rows in together.values():
        expected = oracle(model, [task.pairs[i] for i in rows], True)
        for row in rows:
            np.testing.assert_allclose(found.scores[row], expected, rtol=1e-5)


@pytest.mark.parametrize("tokens", [1, 3])
def test_gradients_of_many_tokens_are_formed_and_of_few_are_not_with_the_same_norms(tokens):
    """Of one example the Gram matrices of its tokens are smaller than an MLP's weights, of forty they are larger."""
    model, task = tiny.model("gpt2"), tiny.task(n=40, lengths=(6,), tokens=tokens)
    many = open_model(model).attribute(task, "weight_gradient", gradient_batch=40)
    np.testing.assert_allclose(many.scores, np.tile(oracle(model, list(task), True), (40, 1)), rtol=1e-5)
    few = open_model(model).attribute(task, "weight_gradient")
    np.testing.assert_allclose(few.scores[7], oracle(model, [task.pairs[7]], True), rtol=1e-5)


def test_grouped_query_heads_share_scores():
    """Four query heads on two value heads."""
    scores = open_model(tiny.model("llama")).attribute(tiny.task(n=2), "weight_gradient").scores
    assert (scores[:, 0] == scores[:, 1]).all() and (scores[:, 2] == scores[:, 3]).all() and (scores[:, 0] != scores[:, 2]).all()


def test_nothing_is_left_in_the_parameters():
    """Neither a gradient nor a flag, and gradients that were there before stay."""
    model = tiny.model("gpt2")
    for p in model.parameters():
        p.grad = torch.full_like(p, 7.0)
    open_model(model).attribute(tiny.task(n=2), "weight_gradient")
    assert all(p.requires_grad and bool((p.grad == 7).all()) for p in model.parameters())


@pytest.mark.parametrize("options", [{"normalisation": "l2"}, {"gradient_batch": 0}, {"gradient_batch": 1.5}])
def test_bad_options_are_refused(options):
    """With their name."""
    with pytest.raises(OptionError, match=next(iter(options))):
        open_model(tiny.model("gpt2")).attribute(tiny.task(n=2), "weight_gradient", **options)
