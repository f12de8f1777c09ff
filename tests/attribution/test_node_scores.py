"""Node scores against central finite differences in float64, written with plain hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from tests.fakes import tiny
from tests.fakes.node_oracle import paired, slopes
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, edits, metric, prompts, record

every_architecture = pytest.mark.parametrize("name", NAMES)


@pytest.mark.parametrize(
    ("name", "which"), [*((n, "logit_diff") for n in NAMES), *((n, m) for n in ("llama", "gpt2", "gpt_neox") for m in ("log_prob", "prob"))]
)
def test_atp_is_the_derivative_towards_the_corrupt_activation(name, which):
    """Every component, each metric, several answer tokens and foils."""
    model, task = tiny.model(name), tiny.task(n=2, tokens=2, foils=2)
    found = open_model(model).attribute(task, "atp", metric=which)
    for row, pair in enumerate(task):
        np.testing.assert_allclose(found.scores[row], slopes(model, pair, which, "component", paired(model, pair)), rtol=1e-5, atol=1e-6)


@every_architecture
@pytest.mark.parametrize(("level", "site"), [("neuron", "mlp_activation"), ("outputs", "mlp_output")])
def test_atp_of_neurons_is_the_derivative_too(name, level, site):
    """At both sites, every seventh neuron."""
    model, task = tiny.model(name), tiny.task(n=2)
    found = open_model(model).attribute(task, "atp", level="neuron", site=site)
    for row, pair in enumerate(task):
        only = range(row, found.scores.shape[1], 7)
        oracle = slopes(model, pair, "logit_diff", level, paired(model, pair), only)
        np.testing.assert_allclose(found.scores[row][list(only)], oracle, rtol=1e-5, atol=1e-6)


@every_architecture
def test_gradient_is_the_derivative_towards_zero(name):
    """−a·g for components and neurons."""
    model, task = tiny.model(name), tiny.task(n=2)
    subject = open_model(model)
    found, neurons = subject.attribute(task, "gradient"), subject.attribute(task, "gradient", level="neuron")
    for row, pair in enumerate(task):
        change = {key: -a for key, a in record(model, prompts(pair)[0]).items()}
        np.testing.assert_allclose(found.scores[row], slopes(model, pair, "logit_diff", "component", change), rtol=1e-5, atol=1e-6)
        only = range(0, neurons.scores.shape[1], 11)
        oracle = slopes(model, pair, "logit_diff", "neuron", change, only)
        np.testing.assert_allclose(neurons.scores[row][list(only)], oracle, rtol=1e-5, atol=1e-6)


@every_architecture
def test_neuron_scores_add_up_to_the_mlp(name):
    """Σ neuron·grad = Σ mlp_out·grad up to the output bias, which no difference of activations sees."""
    model, task = tiny.model(name), tiny.task(n=3)
    subject = open_model(model)
    layers = subject.anatomy.universe.layers
    mlps = subject.attribute(task, "atp").scores.reshape(3, layers, -1)[:, :, -1]
    for site in ("mlp_activation", "mlp_output"):
        neurons = subject.attribute(task, "atp", level="neuron", site=site).scores.reshape(3, layers, -1).sum(2)
        np.testing.assert_allclose(neurons, mlps, rtol=1e-4, atol=1e-5)


@every_architecture
@pytest.mark.parametrize("kind", ["counterfactual", "zero"])
def test_exact_is_the_difference_of_two_runs(name, kind):
    """Ablated minus intact, for each component."""
    model, task = tiny.model(name), tiny.task(n=3)
    subject = open_model(model)
    found = subject.attribute(task, "exact", kind=kind)
    for column in (0, 4, 7, 14):
        outcome = subject.ablate(task, remove=[found.units[column]], kind=kind)
        np.testing.assert_allclose(found.scores[:, column], outcome.metric - outcome.baseline.metric, rtol=1e-5, atol=2e-6)


@every_architecture
def test_half_a_step_of_atp_predicts_half_a_step_of_the_model(name):
    """As the change shrinks, atp and the exact effect meet: the error falls with the square of the step."""
    model, pair = tiny.model(name), tiny.task(n=1).pairs[0]
    change, score = paired(model, pair), open_model(model).attribute(tiny.task(n=1), "atp").scores[0, -1]
    layer, clean = Parts(model).L - 1, as_ids(pair.clean)
    base = float(metric("logit_diff", model(input_ids=clean).logits[0].detach(), pair))
    errors = []
    for step in (0.02, 0.01):
        with torch.no_grad(), edits(model, {("mlp", layer): lambda y, s=step: y + s * change["mlp", layer]}):
            errors.append(float(metric("logit_diff", model(input_ids=clean).logits[0], pair)) - base - step * float(score))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


def test_the_mean_over_examples_is_the_mean_of_the_rows():
    """`reduce="mean"` for each method that has it."""
    model, task = tiny.model("qwen2"), tiny.task(n=5)
    subject = open_model(model)
    for method in ("eap", "atp", "eap_ig", "relp", "gradient", "weight_gradient", "exact", "ig_activations"):
        rows, mean = subject.attribute(task, method), subject.attribute(task, method, reduce="mean")
        assert mean.scores.shape == (1, 15)
        np.testing.assert_allclose(mean.scores[0], rows.scores.mean(0), rtol=1e-4, atol=1e-5)
    rows, mean = (subject.attribute(task, "relp", level="neuron", reduce=reduce) for reduce in (None, "mean"))
    np.testing.assert_allclose(mean.scores[0], rows.scores.mean(0), rtol=1e-4, atol=1e-5)
