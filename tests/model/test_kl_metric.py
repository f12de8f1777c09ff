"""KL to the intact model: outcomes, sweeps, the methods that can use it, and the refusal of those that cannot."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits import open_model
from pytest_circuits.attribution import METHODS
from pytest_circuits.core.results import Encoded
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.errors import OptionError
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import Rows
from pytest_circuits.measurement.requests import ExampleRequest
from pytest_circuits.properties.consistency.reuse import Reuse
from pytest_circuits.properties.gradients.gradient_ablation_agreement import GRADIENT_ABLATION_AGREEMENT, GradientAblationAgreement
from pytest_circuits.properties.neurons.neuron_faithfulness import NEURON_FAITHFULNESS, NeuronFaithfulness
from pytest_circuits.properties.protocol import Claim
from tests.fakes import tiny
from tests.fakes.plain_hooks import Parts, as_ids, logits_of, operated, prompts

MODELS = {name: tiny.model(name) for name in ("llama", "gpt2", "gpt_neox")}
CLEAN_GRADIENT = ("atp", "eap", "gradient", "relp", "weight_gradient")
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would run the model for minutes
few = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)


def divergence(intact: torch.Tensor, other: torch.Tensor, pair) -> float:
    """Σ over the answer's positions of Σ p log(p/q); logits [T, V] of one example."""
    start, total = len(pair.clean) - 1, 0.0
    for t in range(len(pair.answer)):
        p, q = (x[start + t].softmax(-1) for x in (intact, other))
        total += float((p * (p / q).log()).sum())
    return total


def oracle(model, task, names) -> list[float]:
    twin = operated(model, names)
    return [divergence(logits_of(model, prompts(p)[0])[0], logits_of(twin, prompts(p)[0])[0], p) for p in task]


@few
@given(st.sampled_from(sorted(MODELS)), st.integers(0, 10**6), st.data())
def test_outcomes_are_the_divergence_of_the_operated_model(name, seed, data):
    """Two answer tokens, no foils needed; the intact model is at exactly 0; any batch size."""
    model = MODELS[name]
    task = tiny.task(n=3, seed=seed, tokens=2, foils=0)
    names = data.draw(st.lists(st.sampled_from(Parts(model).names), min_size=1, max_size=5, unique=True))
    subject = open_model(model)
    found = subject.ablate(task, remove=names, metric="kl", batch_size=data.draw(st.integers(1, 3)))
    np.testing.assert_allclose(found.metric, oracle(model, task, names), rtol=1e-4, atol=1e-6)
    assert found.baseline.metric.tolist() == [0, 0, 0]
    many = subject.ablate_many(task, [names, [], names[:1]], metric="kl")
    np.testing.assert_allclose(many.metric[0], found.metric, rtol=1e-5, atol=1e-6)
    assert many.metric[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_sweep_and_exact_measure_it_too(name):
    """One ablation a component; exact is the same number, for the intact model is at 0."""
    subject, task = open_model(MODELS[name]), tiny.task(n=3, tokens=2)
    swept = subject.sweep(task, metric="kl")
    single = subject.ablate_many(task, [[u] for u in swept.units], metric="kl")
    np.testing.assert_allclose(swept.metric, single.metric.T, rtol=1e-5, atol=1e-6)
    assert (swept.metric > 0).all() and (swept.baseline.metric == 0).all()
    np.testing.assert_allclose(subject.attribute(task, "exact", metric="kl", kind="zero").scores, swept.metric, rtol=1e-5, atol=1e-6)


def test_edges_and_positions_are_measured_by_it():
    """All outgoing edges of a node, and all positions of it, are the node."""
    subject, task = open_model(MODELS["llama"]), tiny.task(n=2, lengths=(5,))
    whole = subject.ablate(task, remove=["L1H2"], metric="kl").metric
    cut = subject.ablate(task, remove=subject.anatomy.universe.edges.outgoing("L1H2"), metric="kl").metric
    spelt = subject.ablate(task, remove=[f"L1H2@{p}" for p in range(-5, 0)], metric="kl").metric
    np.testing.assert_allclose(cut, whole, rtol=1e-4)
    np.testing.assert_allclose(spelt, whole, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_integrated_gradients_have_a_gradient_to_follow(name):
    """Over the units of one sublayer the scores add up to the divergence when that sublayer is patched."""
    subject, task = open_model(MODELS[name]), tiny.task(n=2, tokens=2)
    found = subject.attribute(task, "ig_activations", metric="kl", steps=64)
    patched = subject.ablate_many(task, [[f"L1H{h}" for h in range(4)], ["L1MLP"]], kind="counterfactual", metric="kl").metric
    np.testing.assert_allclose(found.scores[:, 5:9].sum(1), patched[0], rtol=0.05, atol=0.02)
    np.testing.assert_allclose(found.scores[:, 9], patched[1], rtol=0.05, atol=0.02)
    batched = subject.attribute(task, "ig_activations", metric="kl", steps=64, batch_size=1).scores
    np.testing.assert_allclose(batched, found.scores, rtol=1e-4, atol=1e-6)


def test_eap_ig_differentiates_the_divergence_along_the_path():
    """One step at the midpoint: each component's score is the sum of |finite differences| that the signed sum of its edges shows."""
    model = MODELS["gpt2"]
    subject, task = open_model(model), tiny.task(n=1)
    pair = task.pairs[0]
    clean, corrupt, _ = prompts(pair)
    found = subject.attribute(task, "eap_ig", level="edge", metric="kl", steps=1)
    embed, intact = model.get_input_embeddings(), logits_of(model, clean)[0]
    middle = ((embed(as_ids(clean)) + embed(as_ids(corrupt))) / 2).detach()
    last = Parts(model).down[2]
    kept = []
    for ids in (clean, corrupt):
        handle = last.register_forward_hook(lambda _m, _a, y: kept.append(y.detach()))
        logits_of(model, ids)
        handle.remove()
    change, values = kept[1] - kept[0], []
    for sign in (1, -1):
        handle = last.register_forward_hook(lambda _m, _a, y, s=sign: y + s * 1e-5 * change)
        with torch.no_grad():
            values.append(divergence(intact, model(inputs_embeds=middle).logits[0], pair))
        handle.remove()
    mine = found.scores[0, found.units.index("L2MLP->logits")]
    assert mine == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4) and mine != 0


@pytest.mark.parametrize("method", CLEAN_GRADIENT)
def test_methods_at_the_clean_input_refuse_it(method):
    """There the divergence is at its minimum: every score would be zero. The message names the methods that can."""
    with pytest.raises(OptionError, match=r"the gradient is 0.*eap_ig, exact, ig_activations"):
        open_model(MODELS["llama"]).attribute(tiny.task(n=2), method, metric="kl")


def test_what_is_refused_is_what_the_registry_says():
    """So that specs are refused without torch."""
    said = {name for name in METHODS.builtin if METHODS.fact(name, "clean_gradient", False)}
    assert said == set(CLEAN_GRADIENT) == {name for name in METHODS.builtin if METHODS.get(name).clean_gradient}
    assert {name: tuple(METHODS.get(name).levels) for name in METHODS.builtin} == {n: METHODS.fact(n, "levels") for n in METHODS.builtin}


@pytest.mark.parametrize(
    ("parameters", "given", "good"),
    [
        (Reuse, {"task": "t", "p": 0.9, "metric": "kl"}, {"attribution": "eap_ig"}),
        (NeuronFaithfulness, {"task": "t", "neurons": 5, "metric": "kl"}, {"attribution": "ig_activations"}),
        (GradientAblationAgreement, {"task": "t", "metric": "kl"}, {"gradient": "exact"}),
    ],
)
def test_claims_accept_it_where_it_works(parameters, given, good):
    """With the default method it is refused when the spec is read; with another it is accepted."""
    with pytest.raises(ValidationError, match="the gradient is 0"):
        parameters(**given)
    assert parameters(**given, **good).metric == "kl"


def test_claims_on_components_refuse_a_unit_a_position():
    """Their circuits are of whole components; single positions that are picked are allowed."""
    with pytest.raises(ValidationError, match="positions: each"):
        Reuse(task="t", p=0.9, attribution="atp", attribution_options={"positions": "each"})
    assert Reuse(task="t", p=0.9, attribution="atp", attribution_options={"positions": "last"}).attribution == "atp"


def settled(prop, parameters, task, subject):
    """The estimate of a claim, its requests answered by the subject itself."""
    steps = prop.estimate(Claim(prop.name, parameters, ModelSource("m", "x"), {"t": TaskSource("t", "builtin", "t")}))

    def answer(request):
        encoded = Encoded(len(task), subject.encode(task).groups, "")
        return request.execute(subject, task, request.rows(encoded) if isinstance(request, ExampleRequest) else Rows(), None)

    return drive(steps, answer)


def test_a_distance_counts_downwards_in_claims():
    """Faithfulness in KL is 1 − KL(keep C)/KL(∅); the cost of an ablation is the divergence that it makes."""
    subject, task = open_model(MODELS["llama"]), tiny.task(n=12, tokens=1)
    common = {"task": "t", "metric": "kl", "min_accuracy": 0.0, "split": "in_sample"}
    found = settled(NEURON_FAITHFULNESS, NeuronFaithfulness(**common, neurons=40, attribution="ig_activations"), task, subject)
    strongest = np.abs(subject.attribute(task, "ig_activations", "neuron", "kl", reduce="mean").scores[0])
    kept = [f"L{i // 40}N{i % 40}" for i in np.argsort(-strongest, kind="stable")[:40]]
    means = subject.ablate_many(task, [kept, []], "keep", level="neuron", metric="kl").metric.mean(1)
    assert found.value == pytest.approx(1 - means[0] / means[1], rel=1e-4)
    agreement = settled(
        GRADIENT_ABLATION_AGREEMENT,
        GradientAblationAgreement(**common, gradient="exact", effect="metric", ablation="zero", resamples=200),
        task,
        subject,
    )
    strength = np.abs(subject.attribute(task, "exact", metric="kl").scores).mean(0)
    cost = subject.sweep(task, "zero", metric="kl").metric.mean(0)
    assert agreement.value == pytest.approx(scipy.stats.spearmanr(strength, cost).statistic)
