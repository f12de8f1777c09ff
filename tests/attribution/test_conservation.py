"""Relevance adds up to the metric at every layer boundary, in closed form; and stops doing so when a rule is missing."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.attribution import relp
from pytest_circuits.errors import MeasurementError, ModelError, OptionError, TaskError
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, metric, prompts
from tests.fakes.replacement_models import gpt2_by_hand, llama_by_hand

every_architecture = pytest.mark.parametrize("name", NAMES)


def worst(found) -> float:
    return float((np.abs(found.gaps).mean(0) / np.abs(found.metric).mean()).max())


@every_architecture
def test_relevance_and_bias_terms_add_up_to_the_metric_at_every_boundary(name):
    """In double precision; prompts of two lengths, answers of two tokens, two foils."""
    model, task = tiny.model(name), tiny.task(n=4, tokens=2, foils=2)
    subject = open_model(model)
    found = subject.conserve(task)
    assert found.boundaries == ("embeddings", "L0", "L1", "L2")
    np.testing.assert_allclose(found.metric, subject.ablate(task, remove=[]).metric, rtol=1e-6)
    assert worst(found) < 1e-12
    biased = any("bias" in n for n, _ in model.named_parameters())
    assert (found.biases is not None) == biased
    if biased:
        assert (np.abs(found.biases[:, 0]) > 1e-3).all()


@every_architecture
def test_the_plain_gradient_does_not_add_up(name):
    """It is blind to the length of the last residual: without biases Σ x·∂f/∂x is 0 there."""
    model = tiny.model(name)
    with torch.no_grad():
        for n, parameter in model.named_parameters():
            if n.endswith("bias"):
                parameter.zero_()
    found = open_model(model).conserve(tiny.task(n=4), rules="none")
    assert np.abs(found.totals[:, -1]).max() < 1e-3 * np.abs(found.metric).mean()
    assert worst(found) > 0.9


@pytest.mark.parametrize(("name", "by_hand"), [("llama-wide", llama_by_hand), ("gpt2", gpt2_by_hand)])
def test_bias_terms_are_those_of_a_replacement_model_written_by_hand(name, by_hand):
    """There, biases are parameters with gradients of their own."""
    model, task = tiny.model(name), tiny.task(n=2, foils=2)
    found = open_model(model).conserve(task)
    for row, pair in enumerate(task):
        twin = copy.deepcopy(model).requires_grad_(True)
        named = [(n, p) for n, p in twin.named_parameters() if n.endswith("bias")]
        f = metric("logit_diff", by_hand(twin, prompts(pair)[0])[0], pair)
        slopes = torch.autograd.grad(f, [p for _, p in named], allow_unused=True)
        terms = [(n, 0.0 if g is None else float((p * g).sum().detach())) for (n, p), g in zip(named, slopes, strict=True)]

        def layer(n):
            return next((int(part) for part in n.split(".") if part.isdigit()), 99)

        for boundary in range(4):
            expected = sum(term for n, term in terms if layer(n) >= boundary)
            assert found.biases[row, boundary] == pytest.approx(expected, rel=1e-6)
            assert found.totals[row, boundary] == pytest.approx(float(f.detach()) - expected, rel=1e-6)


@pytest.mark.parametrize("rule", ["_norm_rule", "_pattern_rule", "_activation_rule"])
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_without_any_one_rule_relevance_is_lost(name, rule, monkeypatch):
    """So the identity tests all of them."""
    monkeypatch.setattr(relp, rule, lambda *_: None)
    assert worst(open_model(tiny.model(name)).conserve(tiny.task(n=4))) > 0.02


def test_without_the_half_rule_relevance_is_counted_twice():
    """The rule that has no function of its own."""
    subject = open_model(tiny.model("llama"))
    for block in subject.anatomy.blocks:
        object.__setattr__(block, "gated", False)
    assert worst(subject.conserve(tiny.task(n=4))) > 0.02


def test_neither_batches_nor_companions_matter_and_examples_are_those_asked_for():
    """Order included."""
    model, task = tiny.model("gpt_neox"), tiny.task(n=6)
    subject = open_model(model)
    whole = subject.conserve(task)
    for size in (1, 2):
        part = subject.conserve(task, examples=[4, 1, 2], batch_size=size)
        for field in ("totals", "biases", "metric"):
            np.testing.assert_allclose(getattr(part, field), getattr(whole, field)[[4, 1, 2]], rtol=1e-9)


def test_one_forward_and_one_backward_a_batch_and_no_trace():
    """Mode, flags, hooks, gradients and weights are as before."""
    model, task = tiny.model("gpt2").train(), tiny.task(n=6)
    subject = open_model(model)
    before = subject.forwards
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    subject.conserve(task)
    assert (subject.forwards - before, subject.backwards) == (2, 2)
    assert model.training and all(p.requires_grad and p.grad is None for p in model.parameters())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert all(torch.equal(weights[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize("metric_name", ["prob", "log_prob", "kl"])
def test_metrics_that_are_not_homogeneous_are_refused_with_the_reason(metric_name):
    """Their sums mean nothing."""
    with pytest.raises(OptionError, match=f"doubles when the logits double, which {metric_name} does not"):
        open_model(tiny.model("llama")).conserve(tiny.task(n=2), metric=metric_name)


def test_other_refusals():
    """Unknown rules, no foils, experts, weights that are not numbers, a bias that nobody can place."""
    subject = open_model(tiny.model("llama"))
    with pytest.raises(OptionError, match="unknown rules 'lrp'; allowed: none, relp"):
        subject.conserve(tiny.task(n=2), rules="lrp")
    with pytest.raises(TaskError, match="needs a foil"):
        subject.conserve(tiny.task(n=2, foils=0))
    with pytest.raises(OptionError, match="mixtures of experts"):
        open_model(tiny.model("qwen3_moe")).conserve(tiny.task(n=2))
    broken = tiny.model("llama")
    with torch.no_grad():
        broken.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(MeasurementError, match="not finite"):
        open_model(broken, check=False).conserve(tiny.task(n=2))
    strange = tiny.model("llama")
    strange.model.layers[2].mlp.register_parameter("inner_bias", torch.nn.Parameter(torch.ones(3, dtype=torch.float64)))
    with pytest.raises(ModelError, match=r"layer 2: mlp\.inner_bias is a bias that no module adds"):
        open_model(strange).conserve(tiny.task(n=2))


def test_experts_have_a_plain_gradient():
    """The contrast needs no rules, so no place for them."""
    assert worst(open_model(tiny.model("qwen3_moe")).conserve(tiny.task(n=2), rules="none")) > 0.1
