"""Scores at edge level, by name: finite differences, sums, linearity, what must be zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pytest_circuits import Task, open_model
from pytest_circuits.attribution.eap import Eap
from pytest_circuits.attribution.method import Job
from pytest_circuits.errors import OptionError
from pytest_circuits.model.hooks import measuring
from pytest_circuits.model.sites import sites_of
from tests.fakes import tiny
from tests.fakes.edge_oracle import edge_oracle
from tests.fakes.plain_edges import edge_names
from tests.fakes.plain_hooks import WITH_EXPERTS, Parts

every_architecture = pytest.mark.parametrize("name", WITH_EXPERTS)
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would run the model for minutes
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)
MODELS = {name: open_model(tiny.model(name)) for name in ("llama", "gpt2", "gpt_neox", "olmo2")}


def by_source(found) -> dict[str, list[int]]:
    """Columns of each component's outgoing edges, read off the names."""
    columns: dict[str, list[int]] = {}
    for i, name in enumerate(found.units):
        columns.setdefault(name.split("->")[0], []).append(i)
    return columns


@every_architecture
def test_scores_carry_the_names_of_their_edges(name):
    """Each is the derivative towards the corrupt value of one source as one reader sees it (log-probability, two answer tokens)."""
    model, task = tiny.model(name, seed=2), tiny.task(n=1, seed=2, tokens=2)
    found = open_model(model).attribute(task, "eap", level="edge", metric="log_prob")
    assert list(found.units) == edge_names(Parts(model)) and found.scores.dtype == np.float32 and found.level == "edge"
    for row, pair in enumerate(task):
        np.testing.assert_allclose(found.scores[row], np.concatenate(edge_oracle(model, pair, "log_prob")), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("method", "name"), [*(("eap", n) for n in WITH_EXPERTS), ("eap_ig", "llama"), ("eap_ig", "gemma2")])
def test_components_are_the_absolute_sums_of_their_edges(method, name):
    """And, for eap, attribution patching their signed sums."""
    subject, task = open_model(tiny.model(name, seed=4)), tiny.task(n=3, seed=4, foils=2)
    edges, components = subject.attribute(task, method, level="edge"), subject.attribute(task, method)
    columns = by_source(edges)
    assert sorted(columns) == sorted(components.units)
    absolute = np.stack([np.abs(edges.scores[:, columns[u]]).sum(1) for u in components.units], 1)
    np.testing.assert_allclose(absolute, components.scores, rtol=1e-5, atol=1e-5)
    signed = np.stack([edges.scores[:, columns[u]].sum(1) for u in components.units], 1)
    if method == "eap":
        np.testing.assert_allclose(signed, subject.attribute(task, "atp").scores, rtol=1e-4, atol=1e-5)
    assert not np.allclose(np.abs(signed), absolute)


@few
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10**6))
def test_edges_are_linear_in_the_metric(name, seed):
    """Scores for the mean of two foils are the mean of the scores for each."""
    subject, task = MODELS[name], tiny.task(n=2, seed=seed, foils=2)
    one, other = (Task("t", tuple(replace(p, foils=(p.foils[i],)) for p in task)) for i in (0, 1))
    whole, first, second = (subject.attribute(t, "eap", level="edge").scores for t in (task, one, other))
    np.testing.assert_allclose(whole, (first + second) / 2, rtol=2e-5, atol=2e-6)


def run(subject, encoded) -> np.ndarray:
    sites, universe = sites_of(subject.anatomy, "edge")
    with measuring(subject.model):
        return Eap().run(Job(subject._runner, encoded, None, "logit_diff", "edge", None, sites, universe)).numpy()


@few
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10**6))
def test_equal_prompts_and_later_positions_score_nothing(name, seed):
    """corrupt = clean gives exactly 0; tokens behind the answer's position, different in both, change no edge."""
    subject = MODELS[name]
    encoded = subject.encode(tiny.task(n=2, seed=seed))
    assert (run(subject, replace(encoded, corrupt=encoded.clean)) == 0).all()
    longer = replace(encoded, clean=tuple((*c, 3, 4) for c in encoded.clean), corrupt=tuple((*c, 5, 6) for c in encoded.corrupt))
    np.testing.assert_allclose(run(subject, longer), run(subject, encoded), rtol=2e-5, atol=2e-6)


@few
@given(st.sampled_from(sorted(MODELS)), st.integers(1, 5), st.data())
def test_edges_do_not_depend_on_batches(name, batch_size, data):
    """Nor on companions."""
    subject, task = MODELS[name], tiny.task(n=5)
    chosen = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    whole = subject.attribute(task, "eap", level="edge").scores
    part = subject.attribute(task, "eap", level="edge", batch_size=batch_size, examples=chosen).scores
    np.testing.assert_allclose(part, whole[chosen], rtol=2e-5, atol=2e-6)


def test_the_mean_over_examples_is_signed():
    """One row."""
    subject, task = MODELS["llama"], tiny.task(n=4)
    mean = subject.attribute(task, "eap", level="edge", reduce="mean")
    np.testing.assert_allclose(mean.scores[0], subject.attribute(task, "eap", level="edge").scores.mean(0), rtol=1e-4, atol=1e-6)


def test_edge_circuits_can_be_ablated_by_their_names():
    """From scores to a shared set to an outcome."""
    subject, task = MODELS["gpt2"], tiny.task(n=4)
    found = subject.attribute(task, "eap", level="edge", top=60)
    shared = found.circuits(60).shared(0.25)
    kept = subject.ablate(task, keep=shared, kind="counterfactual")
    assert np.isfinite(kept.metric).all() and not np.allclose(kept.metric, kept.baseline.metric)


@pytest.mark.parametrize("method", ["atp", "relp", "gradient", "ig_activations", "weight_gradient", "exact"])
def test_methods_without_edges_say_so(method):
    """With the levels that they have."""
    with pytest.raises(OptionError, match="level 'edge'"):
        MODELS["llama"].attribute(tiny.task(n=2), method, level="edge")


def affine(seed: int = 0):
    """GPT-2 as an affine function of its activations: constant attention patterns, a linear activation, norms whose scale is fixed.

    The scale of a LayerNorm with a huge epsilon and a weight of its square root is 1 but for one part in 10¹⁰.
    """
    made = tiny.model("gpt2", seed=seed, activation_function="linear")
    with torch.no_grad():
        for block in made.transformer.h:
            block.attn.c_attn.weight[:, :48] = 0
            block.attn.c_attn.bias[:48] = 0
        for parameter_name, parameter in made.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(0.5)
            if "ln_" in parameter_name and parameter_name.endswith("weight"):
                parameter.copy_(parameter * 1e6)
        for module in made.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.eps = 1e12
    return made


@few
@given(st.integers(0, 10**6))
def test_on_an_affine_model_edge_attribution_is_exact_patching(seed):
    """Each edge's score is the effect of patching it, by whichever method; single effects of one reader's edges add up."""
    subject, task = open_model(affine(seed % 3)), tiny.task(n=2, seed=seed)
    for method in ("eap", "eap_ig"):
        found = subject.attribute(task, method, level="edge")
        picked = list(range(seed % 7, len(found.units), 7))
        many = subject.ablate_many(task, [[found.units[i]] for i in picked], kind="counterfactual", level="edge")
        intact = subject.ablate(task, remove=[]).metric
        scale = np.abs(found.scores).max()
        assert scale > 1e-3
        np.testing.assert_allclose((many.metric - intact).T, found.scores[:, picked], atol=1e-4 * scale)
    for reader in ("L1H2.q", "L2KV1.v", "L2MLP", "logits"):
        mine = [i for i, name in enumerate(found.units) if name.endswith(f">{reader}")]
        joint = subject.ablate(task, remove=[found.units[i] for i in mine], kind="counterfactual")
        np.testing.assert_allclose(joint.metric - intact, found.scores[:, mine].sum(1), atol=2e-4 * scale)


def test_on_an_affine_model_nodes_are_exact_too():
    """Attribution patching of every component equals activation patching, and heads of one layer add up."""
    subject, task = open_model(affine()), tiny.task(n=3)
    exact, atp = subject.attribute(task, "exact").scores, subject.attribute(task, "atp").scores
    np.testing.assert_allclose(atp, exact, rtol=1e-4, atol=1e-5)
    heads = [f"L1H{h}" for h in range(4)]
    joint = subject.ablate(task, remove=heads, kind="counterfactual")
    np.testing.assert_allclose(joint.metric - joint.baseline.metric, exact[:, 5:9].sum(1), rtol=1e-4, atol=1e-5)
    ordinary = open_model(tiny.model("gpt2"))
    assert not np.allclose(ordinary.attribute(task, "exact").scores, ordinary.attribute(task, "atp").scores, rtol=1e-2)
