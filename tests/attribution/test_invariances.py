"""What must not matter does not: batch size, companions, order, symmetric weights; what must be linear is."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_circuits import PromptPair, Task, open_model
from pytest_circuits.attribution.atp import Atp
from pytest_circuits.attribution.eap import Eap
from pytest_circuits.attribution.method import Job
from pytest_circuits.attribution.relp import Relp
from pytest_circuits.model.hooks import measuring
from pytest_circuits.model.sites import sites_of
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts

METHODS = ("eap", "atp", "eap_ig", "ig_activations", "relp", "gradient", "weight_gradient", "exact")
MODELS = {name: tiny.model(name) for name in ("llama", "gpt2", "gpt_neox")}
opened = cache(lambda name: open_model(MODELS[name]))
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
some_model = st.sampled_from(sorted(MODELS))
a_method = st.sampled_from(METHODS)


def close(one, other):
    np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@few
@given(some_model, a_method, st.integers(1, 9), st.integers(0, 10**6), st.data())
def test_batch_size_companions_and_order_change_nothing(name, method, batch_size, seed, data):
    """Scores of chosen examples, in any order and in any company, are those in the whole task."""
    task, subject = tiny.task(n=6, seed=seed, foils=2), opened(name)
    chosen = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    whole = subject.attribute(task, method)
    close(subject.attribute(task, method, batch_size=batch_size, examples=chosen).scores, whole.scores[chosen])
    alone = Task("alone", (task.pairs[chosen[0]],), task.scoring)
    close(subject.attribute(alone, method).scores[0], whole.scores[chosen[0]])


@few
@given(some_model, st.sampled_from(["zero", "counterfactual", "mean", "resample"]), st.integers(1, 9), st.integers(0, 10**6), st.data())
def test_ablation_does_not_depend_on_the_batch_either(name, kind, batch_size, seed, data):
    """Nor does a sweep; the reference of a mean stays the same."""
    task, subject = tiny.task(n=6, seed=seed), opened(name)
    chosen = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=6))
    names = data.draw(st.lists(st.sampled_from(Parts(MODELS[name]).names), unique=True))
    reference = range(6)
    whole = subject.ablate(task, remove=names, kind=kind, reference=reference)
    part = subject.ablate(task, remove=names, kind=kind, reference=reference, examples=chosen, batch_size=batch_size)
    close(part.metric, whole.metric[chosen])
    close(part.baseline.metric, whole.baseline.metric[chosen])
    swept = subject.sweep(task, kind=kind, reference=reference, examples=chosen, batch_size=batch_size)
    close(swept.metric, subject.sweep(task, kind=kind, reference=reference).metric[chosen])


def test_padding_tokens_never_reach_the_model():
    """Prompts of five lengths in one call: every batch the model sees is made of whole prompts."""
    model, task = copy.deepcopy(MODELS["llama"]), tiny.task(n=10, lengths=(3, 4, 5, 6, 7))
    real = {p.clean for p in task} | {p.corrupt for p in task}
    seen, keys = [], set()

    def look(_module, _args, kwargs):
        seen.extend(tuple(row) for row in kwargs["input_ids"].tolist())
        keys.update(kwargs)

    model.register_forward_pre_hook(look, with_kwargs=True)
    subject = open_model(model)
    for method in ("eap", "relp", "exact"):
        subject.attribute(task, method, batch_size=4)
    subject.ablate(task, remove=["L0H0"], kind="mean")
    assert seen and set(seen) <= real and "attention_mask" not in keys


@pytest.mark.extensive
@few
@given(some_model, st.integers(0, 10**6))
def test_attribution_is_linear_in_the_metric(name, seed):
    """Signed scores for the mean of two foils are the mean of the scores for each."""
    task, subject = tiny.task(n=2, seed=seed, foils=2), opened(name)
    with_foils = [Task("t", tuple(replace(p, foils=f(p)) for p in task)) for f in (lambda p: p.foils[:1], lambda p: p.foils[1:])]
    for method in ("atp", "relp", "gradient", "ig_activations", "exact"):
        one, other = (subject.attribute(t, method).scores for t in with_foils)
        close(subject.attribute(task, method).scores, (one + other) / 2)


def encoded_job(subject, encoded) -> Job:
    sites, universe = sites_of(subject.anatomy)
    return Job(subject._runner, encoded, None, "logit_diff", "component", None, sites, universe)


@few
@given(some_model, st.integers(0, 10**6))
def test_equal_prompts_score_exactly_zero(name, seed):
    """corrupt = clean (which a task cannot have: it is put in behind the encoder's back)."""
    subject = opened(name)
    encoded = subject.encode(tiny.task(n=3, seed=seed, tokens=2))
    job = encoded_job(subject, replace(encoded, corrupt=encoded.clean))
    for method in (Eap(), Atp(), Relp()):
        with measuring(subject.model):
            assert (method.run(job) == 0).all()


@few
@given(some_model, st.integers(0, 10**6))
def test_positions_after_the_answer_position_change_nothing(name, seed):
    """Tokens behind the answer's position, different in clean and corrupt: no score moves."""
    subject = opened(name)
    encoded = subject.encode(tiny.task(n=3, seed=seed))
    longer = replace(encoded, clean=tuple((*c, 3, 4) for c in encoded.clean), corrupt=tuple((*c, 5, 6) for c in encoded.corrupt))
    for method in (Eap(), Atp(), Relp()):
        with measuring(subject.model):
            short, long = (method.run(encoded_job(subject, e)) for e in (encoded, longer))
        close(short, long)


@few
@given(some_model, st.integers(0, 39), st.integers(0, 2), st.integers(0, 10**6))
def test_a_neuron_that_writes_nothing_scores_zero(name, neuron, layer, seed):
    """Its column of the down projection is zero; ablating it changes nothing, bit for bit."""
    model = copy.deepcopy(MODELS[name])
    Parts(model).cut(f"L{layer}N{neuron}")
    subject, task, column = open_model(model), tiny.task(n=2, seed=seed), layer * Parts(model).dff + neuron
    for method in ("atp", "relp", "gradient", "ig_activations"):
        scores = subject.attribute(task, method, level="neuron").scores
        assert (scores[:, column] == 0).all() and (scores != 0).any()
    found = subject.ablate(task, remove=[f"L{layer}N{neuron}"])
    assert np.array_equal(found.metric, found.baseline.metric)


def reorder(weight: torch.Tensor, order, axis: int) -> None:
    with torch.no_grad():
        weight.copy_(weight.index_select(axis, torch.as_tensor(order)))


def permute_neurons(model, layer: int, order) -> None:
    mlp, axis = Parts(model).mlp[layer], 1 if model.config.model_type == "gpt2" else 0
    into = {"gpt2": ["c_fc"], "gpt_neox": ["dense_h_to_4h"], "phi3": ["gate_up_proj"]}
    for module in (getattr(mlp, name) for name in into.get(model.config.model_type, ["gate_proj", "up_proj"])):
        rows = [*order, *(len(order) + i for i in order)] if model.config.model_type == "phi3" else order
        reorder(module.weight, rows, axis)
        if module.bias is not None:
            reorder(module.bias, rows, 0)
    reorder(Parts(model).down[layer].weight, order, 1 - axis)


def permute_heads(model, layer: int, order) -> None:
    """Query heads in a new order; with grouped queries `order` must keep groups together, and key-value heads follow."""
    parts, axis = Parts(model), 1 if model.config.model_type == "gpt2" else 0
    group = parts.H // parts.kv
    z = [c for h in order for c in range(h * parts.hd, (h + 1) * parts.hd)]
    reorder(parts.o[layer].weight, z, 1 - axis)
    if parts.fused:
        rows = list(range((parts.H + 2 * parts.kv) * parts.hd))
        for which, new_order in (("q", order), ("k", [h // group for h in order[::group]]), ("v", [h // group for h in order[::group]])):
            for new, old in enumerate(new_order):
                for a, b in zip(parts.columns(which, new), parts.columns(which, old), strict=True):
                    rows[a] = b
        reorder(parts.qkv[layer].weight, rows, axis)
        if parts.qkv[layer].bias is not None:
            reorder(parts.qkv[layer].bias, rows, 0)
        return
    key_values = [c for h in order[::group] for c in range(h // group * parts.hd, (h // group + 1) * parts.hd)]
    for which, rows in (("q", z), ("k", key_values), ("v", key_values)):
        module = parts.projection(layer, which)
        reorder(module.weight, rows, 0)
        if module.bias is not None:
            reorder(module.bias, rows, 0)
        if model.config.model_type == "olmo2" and which != "v":  # its norms of queries and keys go over all heads
            reorder(getattr(parts.attn[layer], f"{which}_norm").weight, rows, 0)


@pytest.mark.extensive
@pytest.mark.parametrize("name", NAMES)
def test_permuting_heads_with_their_projections_permutes_scores(name):
    """Across groups and inside a group; q/k norms and biases included."""
    model, task, layer = tiny.model(name), tiny.task(n=2), 1
    twin, parts = copy.deepcopy(model), Parts(model)
    order = [1, 0, 3, 2] if parts.kv == 1 else [3, 2, 1, 0] if parts.kv == 2 else [2, 0, 3, 1]
    permute_heads(twin, layer, order)
    start = layer * (parts.H + 1)
    columns = list(range(len(parts.names)))
    columns[start : start + parts.H] = [start + h for h in order]
    one, other = open_model(model), open_model(twin)
    for method in METHODS:
        close(other.attribute(task, method).scores, one.attribute(task, method).scores[:, columns])


@pytest.mark.parametrize("name", NAMES)
def test_permuting_neurons_permutes_scores(name):
    """And leaves components alone."""
    model, task, layer = tiny.model(name), tiny.task(n=2), 2
    twin, dff = copy.deepcopy(model), Parts(model).dff
    order = torch.randperm(dff, generator=torch.Generator().manual_seed(0)).tolist()
    permute_neurons(twin, layer, order)
    columns = [*range(layer * dff), *(layer * dff + i for i in order)]
    one, other = open_model(model), open_model(twin)
    for method in ("atp", "relp", "gradient"):
        close(other.attribute(task, method, level="neuron").scores, one.attribute(task, method, level="neuron").scores[:, columns])
        close(other.attribute(task, method).scores, one.attribute(task, method).scores)


@pytest.mark.parametrize("name", ["llama", "llama-wide", "mistral", "qwen2", "qwen3"])
def test_scaling_up_and_down_against_each_other_changes_nothing(name):
    """A row of the up projection times c, the column of the down projection divided by c."""
    model, task = tiny.model(name), tiny.task(n=2)
    twin = copy.deepcopy(model)
    factors = torch.logspace(-1, 1, Parts(model).dff, dtype=torch.float64)
    with torch.no_grad():
        mlp = Parts(twin).mlp[1]
        mlp.up_proj.weight.mul_(factors[:, None])
        if mlp.up_proj.bias is not None:
            mlp.up_proj.bias.mul_(factors)
        mlp.down_proj.weight.div_(factors)
    for method in ("gradient", "atp", "relp", "ig_activations"):
        close(
            open_model(twin).attribute(task, method, level="neuron").scores,
            open_model(model).attribute(task, method, level="neuron").scores,
        )


def test_a_component_that_writes_nothing_scores_zero_everywhere():
    """Its projection is zero: every method gives exactly 0, and a circuit never contains it."""
    for name, model in MODELS.items():
        twin = copy.deepcopy(model)
        for unit in ("L1H2", "L2MLP"):
            Parts(twin).cut(unit)
        task = tiny.task(n=3)
        subject = open_model(twin)
        for method in ("eap", "atp", "relp", "gradient", "eap_ig", "exact"):
            found = subject.attribute(task, method)
            columns = [found.units.index(u) for u in ("L1H2", "L2MLP")]
            assert np.abs(found.scores[:, columns]).max() < 1e-12 and (found.scores != 0).any(), (name, method)


def test_corrupt_answers_follow_corrupt_prompts():
    """With several answer tokens a corrupt answer given by hand changes the scores, its length permitting."""
    task = tiny.task(n=2, tokens=3)
    other = Task("t", tuple(replace(p, corrupt_answer=tuple((t + 1) % tiny.VOCAB for t in p.answer)) for p in task))
    subject = open_model(MODELS["llama"])
    assert not np.allclose(
        subject.attribute(task, "atp", metric="log_prob").scores, subject.attribute(other, "atp", metric="log_prob").scores
    )
    assert isinstance(next(iter(other)), PromptPair)
