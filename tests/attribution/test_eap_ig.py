"""Integrated gradients against loops written here, and their errors as the number of steps grows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.attribution.eap_ig import EapIg
from pytest_circuits.errors import OptionError
from tests.fakes import tiny
from tests.fakes.edge_oracle import edge_oracle, edges_of, total
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, edits, metric, prompts, record

every_architecture = pytest.mark.parametrize("name", NAMES)


def embeddings(model, ids) -> torch.Tensor:
    return model.get_input_embeddings()(as_ids(ids)).detach()


@pytest.mark.parametrize(("name", "rule"), [*((n, "midpoint") for n in NAMES), ("llama", "endpoint"), ("gpt2", "endpoint")])
def test_eap_ig_averages_edges_over_interpolated_embeddings(name, rule):
    """Finite differences of each edge at each point of the path; the average is taken before the absolute value."""
    model, task, steps = tiny.model(name), tiny.task(n=1), 2
    pair = task.pairs[0]
    clean, corrupt, _ = prompts(pair)
    start, end = embeddings(model, corrupt), embeddings(model, clean)
    path = [0.25, 0.75] if rule == "midpoint" else [0.5, 1.0]
    runs = [edge_oracle(model, pair, embedded=start + alpha * (end - start)) for alpha in path]
    oracle = [np.mean(edges, axis=0) for edges in zip(*runs, strict=True)]
    subject = open_model(model)
    for mine, expected in zip(edges_of(subject, task, EapIg(steps=steps, rule=rule))[0], oracle, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)
    found = subject.attribute(task, "eap_ig", steps=steps, rule=rule)
    np.testing.assert_allclose(found.scores[0], total(oracle, 15, True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_the_error_of_eap_ig_falls_with_the_square_of_the_steps(name):
    """Midpoint rule: every doubling quarters it. Smooth part of the path only: a short one."""
    model, task = tiny.model(name, seed=1), tiny.task(n=1)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(0.1)
        model.get_input_embeddings().weight.add_(0.3)
    subject = open_model(model)
    runs = {s: np.concatenate(edges_of(subject, task, EapIg(steps=s))[0]) for s in (8, 16, 128)}
    errors = {s: np.linalg.norm(runs[s] - runs[128]) for s in (8, 16)}
    assert errors[8] / errors[16] == pytest.approx(4, rel=0.25)


def sublayer_patched(model, pair, kind: str, layer: int) -> float:
    clean, corrupt, _ = prompts(pair)
    other = record(model, corrupt)[kind, layer]
    with torch.no_grad(), edits(model, {(kind, layer): lambda _: other}):
        return float(metric("logit_diff", model(input_ids=as_ids(clean), use_cache=False).logits[0], pair))


def cut_sums(found, parts: Parts) -> np.ndarray:
    """Scores of the heads of each layer, then of its MLP; [examples, layers, 2]."""
    by_layer = found.scores.reshape(len(found.scores), parts.L, -1)
    return np.stack([by_layer[..., :-1].sum(2), by_layer[..., -1]], 2)


def whole_effects(model, task) -> np.ndarray:
    parts = Parts(model)
    base = [float(metric("logit_diff", model(input_ids=as_ids(p.clean)).logits[0].detach(), p)) for p in task]
    return np.array(
        [
            [[sublayer_patched(model, p, kind, layer) - b for kind in ("z", "mlp")] for layer in range(parts.L)]
            for p, b in zip(task, base, strict=True)
        ]
    )


@pytest.mark.extensive
@every_architecture
def test_ig_over_a_sublayer_sums_to_the_effect_of_patching_it(name):
    """Heads of a layer, MLPs and neurons; with prefix reuse and, under a user's hook, without."""
    model, task = tiny.model(name), tiny.task(n=2)
    subject, parts = open_model(model), Parts(model)
    truth = whole_effects(model, task)
    found = subject.attribute(task, "ig_activations", steps=80)
    np.testing.assert_allclose(cut_sums(found, parts), truth, rtol=0.02, atol=0.02)
    neurons = subject.attribute(task, "ig_activations", level="neuron", steps=80).scores.reshape(2, parts.L, -1).sum(2)
    np.testing.assert_allclose(neurons, cut_sums(found, parts)[..., 1], rtol=1e-4, atol=1e-4)
    handle = parts.layers[0].register_forward_hook(lambda *_: None)
    again = subject.attribute(task, "ig_activations", steps=80)
    handle.remove()
    np.testing.assert_allclose(again.scores, found.scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
@pytest.mark.parametrize(("rule", "order"), [("midpoint", 2), ("endpoint", 1)])
def test_the_completeness_error_of_ig_falls_at_the_rate_of_its_rule(name, rule, order):
    """O(1/s²) at midpoints, O(1/s) at endpoints."""
    model, task = tiny.model(name, seed=6), tiny.task(n=1)
    subject, parts, truth = open_model(model), Parts(model), whole_effects(model, task)
    errors = [np.linalg.norm(cut_sums(subject.attribute(task, "ig_activations", steps=s, rule=rule), parts) - truth) for s in (20, 40, 80)]
    assert errors[1] / errors[2] == pytest.approx(2**order, rel=0.3), errors


@pytest.mark.parametrize("name", ["llama", "gpt_neox-serial"])
def test_ig_is_the_average_gradient_along_the_path(name):
    """Written as a loop with torch.autograd over one MLP's output; `unpaired` goes to zero instead."""
    model, task, steps = tiny.model(name), tiny.task(n=1), 3
    pair = task.pairs[0]
    clean, corrupt, _ = prompts(pair)
    for unpaired in (False, True):
        a, c = record(model, clean)["n", 1], record(model, corrupt)["n", 1]
        c = torch.zeros_like(a) if unpaired else c
        slope = torch.zeros_like(a)
        for k in range(steps):
            point = (a + (k + 0.5) / steps * (c - a)).requires_grad_()
            with edits(model, {("n", 1): lambda _, point=point: point}):
                value = metric("logit_diff", model(input_ids=as_ids(clean), use_cache=False).logits[0], pair)
            slope += torch.autograd.grad(value, point)[0] / steps
        oracle = ((c - a) * slope).sum((0, 1)).numpy()
        found = open_model(model).attribute(task, "ig_activations", level="neuron", steps=steps, unpaired=unpaired)
        np.testing.assert_allclose(found.scores[0].reshape(3, -1)[1], oracle, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", ["eap_ig", "ig_activations"])
@pytest.mark.parametrize("options", [{"steps": 0}, {"steps": 2.5}, {"rule": "simpson"}, {"step": 3}])
def test_impossible_paths_are_refused(method, options):
    """No steps, half steps, unknown rules and misspelt options."""
    with pytest.raises(OptionError, match=next(iter(options))):
        open_model(tiny.model("gpt2")).attribute(tiny.task(n=1), method, **options)
