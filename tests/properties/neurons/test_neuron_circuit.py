"""Faithfulness and completeness of neuron circuits: closed forms, identities, refusals, and a plain Hugging Face model as the oracle."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits import open_model
from pytest_circuits.core.results import Encoded
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import Rows
from pytest_circuits.measurement.requests import Ablate, Attribute, ExampleRequest
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.protocol import Claim
from pytest_circuits.stats.ratio import fieller
from pytest_circuits.stats.split import split_by_group
from tests.fakes import tiny
from tests.fakes.curves import Units, World, additive, groups_of, neuron_world, neurons

N, UNITS = 40, 12


def weights(seed: int, n: int = N, units: int = UNITS) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.gamma(2, 1, units) * rng.normal(1, 0.3, (n, units))


def tangled(seed: int):
    """A metric in which units gate each other, well above what it is with all of them ablated."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(0.3, 1, (N, UNITS)), rng.normal(0, 1, (UNITS, UNITS))
    second = second + second.T

    def metric(live: np.ndarray) -> np.ndarray:
        x = live.astype(float)
        return first @ x + 0.2 * (x @ second @ x) + 25 * live.mean() ** 2

    return metric


def test_where_neurons_add_up_both_are_shares_of_the_sum():
    """The circuit's share, and one minus it; with Fieller's intervals of the same sums."""
    w = weights(0)
    world = neuron_world(additive(w, 3.0), -w)
    kept, removed = (world.measure(f"neuron_{x}", neurons=4) for x in ("faithfulness", "completeness"))
    discovery, evaluation = split_by_group(world.groups, 0.5, 0)
    strongest = np.argsort(-np.abs(w[discovery].mean(0)))[:4]
    inside, whole = w[evaluation][:, strongest].sum(1), w[evaluation].sum(1)
    assert kept.value == pytest.approx(inside.sum() / whole.sum()) and removed.value == pytest.approx(1 - kept.value)
    names = [str(i) for i in range(len(evaluation))]
    assert kept.interval == pytest.approx(fieller(inside, whole, names)[1])
    assert removed.interval == pytest.approx(fieller(whole - inside, whole, names)[1])
    assert kept.details["completeness"] == removed.value and removed.details["faithfulness"] == kept.value
    assert removed.details["faithfulness_interval"] == list(kept.interval)
    assert kept.n == len(evaluation) and kept.details["strongest"] == [neurons(UNITS)[i] for i in strongest]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, UNITS - 1), st.integers(0, 10**6))
def test_completeness_is_the_faithfulness_of_the_complement(seed, k, order):
    """Identity 12, for metrics in which nothing adds up."""
    strength = np.random.default_rng(order).permutation(UNITS) + 1.0
    scores = np.broadcast_to(strength, (N, UNITS))
    removed = neuron_world(tangled(seed), scores).measure("neuron_completeness", neurons=k)
    kept = neuron_world(tangled(seed), 20 - scores).measure("neuron_faithfulness", neurons=UNITS - k)
    assert removed.value == pytest.approx(kept.value, rel=1e-12)
    assert removed.interval == pytest.approx(kept.interval, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.1, 50), st.floats(-100, 100))
def test_an_affine_change_of_the_metric_changes_nothing(seed, a, b):
    """Identity 13."""
    scores, metric = np.random.default_rng(seed).normal(size=(N, UNITS)), tangled(seed)
    for name in ("neuron_faithfulness", "neuron_completeness"):
        one = neuron_world(metric, scores).measure(name, neurons=5)
        other = neuron_world(lambda live: a * metric(live) + b, a * scores).measure(name, neurons=5)
        assert [other.value, *other.interval] == pytest.approx([one.value, *one.interval], rel=1e-6, abs=1e-7)


def test_a_distance_to_the_intact_model_counts_downwards():
    w = weights(1)
    loss = neuron_world(lambda live: w.sum(1) - w @ live.astype(float), w)
    gain = neuron_world(additive(w), -w)
    common = {"neurons": 3, "attribution": "ig_activations"}
    assert loss.measure("neuron_completeness", metric="kl", **common).value == pytest.approx(
        gain.measure("neuron_completeness", **common).value
    )


def test_who_asks_for_what():
    """Sets are found on discovery examples, and means taken there; effects are measured on the others. ∅ is asked for alone, so that
    all sizes share it, and both properties ask for the same.
    """
    w = weights(2)
    one, other = neuron_world(additive(w), -w), neuron_world(additive(w), -w)
    one.measure("neuron_faithfulness", neurons=3, ablation="mean", ablation_options={"prompts": "corrupt"}, site="mlp_activation")
    other.measure("neuron_completeness", neurons=3, ablation="mean", ablation_options={"prompts": "corrupt"}, site="mlp_activation")
    assert one.requests == other.requests
    (ranked,) = [r for r in one.requests if isinstance(r, Attribute)]
    assert ranked.part.which == "discovery" and ranked.reduce == "mean"
    ablated = [r for r in one.requests if isinstance(r, Ablate) and r.level == "neuron"]
    assert {(r.part.which, r.reference.which, r.kind) for r in ablated} == {("evaluation", "discovery", "mean")}
    assert all(json.loads(r.options) == {"prompts": "corrupt", "site": "mlp_activation"} for r in ablated)
    assert ((),) in [r.sets for r in ablated] and ablated[0].mode == "keep" and len(one.asked[-1]) == 3


DEGENERATE = {
    "no score at all": (additive(weights(3)), np.zeros((N, UNITS)), {"neurons": 3}, "all relp scores of the 12 neurons"),
    "fewer scores than neurons": (
        additive(weights(3)), np.eye(1, UNITS).repeat(N, 0), {"neurons": 3}, "only 1 of 12 neurons have a relp score",
    ),
    "all neurons": (additive(weights(3)), -weights(3), {"neurons": UNITS}, "nothing is left to ablate"),
    "all of them as a share": (additive(weights(3)), -weights(3), {"neurons": "100%"}, "nothing is left to ablate"),
    "more than there are": (additive(weights(3)), -weights(3), {"neurons": 99}, "the claim needs 99 neurons, but the model has 12"),
    "ablation helps": (additive(-weights(3)), weights(3), {"neurons": 3}, "ablation does not lower it"),
    "ablation changes nothing": (lambda live: np.full(N, 3.0), -weights(3), {"neurons": 3}, "nothing for a circuit to keep"),
    "ablation changes next to nothing": (
        lambda live: live.mean() * np.random.default_rng(1).normal(0.05, 1, N), -weights(3), {"neurons": 3}, "contains 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ["neuron_faithfulness", "neuron_completeness"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_what_cannot_be_measured_is_invalid_with_the_reason(name, case):
    metric, scores, parameters, reason = DEGENERATE[case]
    with pytest.raises(Invalid, match=reason) as refusal:
        neuron_world(metric, scores).measure(name, **parameters)
    assert refusal.value.details


@pytest.mark.parametrize("name", ["neuron_faithfulness", "neuron_completeness"])
def test_one_group_and_a_model_below_the_gate_are_invalid(name):
    w = weights(4)
    alone = World({"mlp_activation": Units(neurons(UNITS), -w, additive(w))}, groups_of(N, N))
    with pytest.raises(Invalid, match="group"):
        alone.measure(name, neurons=3)
    with pytest.raises(Invalid, match="no behaviour to explain"):
        neuron_world(additive(w), -w, right=np.arange(N) % 2 == 0).measure(name, neurons=3)


def settled(name, task, subject, **parameters):
    """The estimate of a claim, its requests answered by the subject itself; and the sides of the split."""
    prop = PROPERTIES.get(name)
    checked = prop.parameters(task="t", min_accuracy=0.0, **parameters)
    steps = prop.estimate(Claim(prop.name, checked, ModelSource("m", "x"), {"t": TaskSource("t", "builtin", "t")}))
    encoded = Encoded(len(task), subject.encode(task).groups, "")

    def answer(request):
        return request.execute(subject, task, request.rows(encoded) if isinstance(request, ExampleRequest) else Rows(), None)

    return drive(steps, answer), split_by_group(encoded.groups, 0.5, 0)


def plain_metrics(model, pairs, replace=None):
    """Logit differences of a bare llama whose down projections read replace(layer, x)."""
    handles = []
    if replace is not None:
        for i, block in enumerate(model.model.layers):
            handles.append(block.mlp.down_proj.register_forward_pre_hook(lambda _, args, i=i: (replace(i, args[0]),)))
    with torch.no_grad():
        out = [model(torch.tensor([p.clean])).logits[0, -1] for p in pairs]
    for handle in handles:
        handle.remove()
    return np.array([float(z[p.answer[0]] - z[p.foils[0][0]]) for z, p in zip(out, pairs, strict=True)])


def corrupt_means(model, pairs):
    """The mean down-projection input of each layer over all positions of the corrupt prompts."""
    seen: list[list[torch.Tensor]] = [[] for _ in model.model.layers]
    handles = [
        block.mlp.down_proj.register_forward_pre_hook(lambda _, args, i=i: seen[i].append(args[0][0]))
        for i, block in enumerate(model.model.layers)
    ]
    with torch.no_grad():
        for p in pairs:
            model(torch.tensor([p.corrupt]))
    for handle in handles:
        handle.remove()
    return [torch.cat(x).mean(0) for x in seen]


@pytest.mark.parametrize("prompts", ["corrupt", "clean"])
def test_mean_ablation_agrees_with_hooks_on_the_bare_model(prompts):
    """The unpaired recipe: zero-baseline scores, neurons set to their mean over the discovery examples' prompts."""
    model = tiny.model("llama", seed=2)
    drawn = tiny.task(n=24, seed=3, lengths=(5,))
    # Answer and foil are put in the order in which ablating everything lowers the metric: a random model has no behaviour of its own.
    means = corrupt_means(model, drawn)
    gain = plain_metrics(model, drawn) - plain_metrics(model, drawn, lambda i, x: means[i].expand_as(x))
    pairs = [type(p)(p.clean, p.corrupt, p.answer, p.foils) if g > 0 else type(p)(p.clean, p.corrupt, p.foils[0], (p.answer,))
             for p, g in zip(drawn, gain, strict=True)]  # fmt: skip
    task = type(drawn)("random", tuple(pairs), "choices")
    subject = open_model(model)
    options = {"neurons": 30, "attribution": "gradient", "ablation": "mean", "ablation_options": {"prompts": prompts}}
    found, (discovery, evaluation) = settled("neuron_faithfulness", task, subject, **options)
    complete, _ = settled("neuron_completeness", task, subject, **options)

    side = [pairs[int(i)] for i in discovery]
    turned = [type(p)(p.corrupt, p.clean, p.answer, p.foils) for p in side] if prompts == "clean" else side
    means = corrupt_means(model, turned)
    scores = subject.attribute(task, "gradient", "neuron", examples=[int(i) for i in discovery]).scores.mean(0)
    chosen = torch.zeros(scores.size, dtype=torch.bool)
    chosen[np.argsort(-np.abs(scores), kind="stable")[:30].tolist()] = True
    chosen = chosen.view(3, -1)
    measured = [pairs[int(i)] for i in evaluation]
    intact = plain_metrics(model, measured).mean()
    nothing = plain_metrics(model, measured, lambda i, x: means[i].expand_as(x)).mean()
    kept = plain_metrics(model, measured, lambda i, x: torch.where(chosen[i], x, means[i])).mean()
    removed = plain_metrics(model, measured, lambda i, x: torch.where(chosen[i], means[i], x)).mean()
    assert found.value == pytest.approx((kept - nothing) / (intact - nothing), rel=1e-5)
    assert complete.value == pytest.approx((removed - nothing) / (intact - nothing), rel=1e-5, abs=1e-6)


def test_a_neuron_at_one_position_is_a_unit_of_its_own():
    """positions: each ranks and keeps neurons at positions; keeping all positions of a neuron is keeping the neuron."""
    model = tiny.model("llama", seed=1)
    task = tiny.task(n=16, seed=5, lengths=(5,))
    subject = open_model(model)
    flipped = [p if g > 0 else type(p)(p.clean, p.corrupt, p.foils[0], (p.answer,)) for p, g in zip(
        task, plain_metrics(model, task) - plain_metrics(model, task, lambda i, x: 0 * x), strict=True)]  # fmt: skip
    task = type(task)("random", tuple(flipped), "choices")
    each = {"attribution_options": {"positions": "each"}, "neurons": 40}
    found, (_, evaluation) = settled("neuron_faithfulness", task, subject, **each)
    assert found.details["universe"] == 3 * 40 * 5 and all("@" in name for name in found.details["strongest"])
    assert "each position a unit" in found.details["universe_is"] and "neurons at positions" in found.details["notes"][0]
    rows = [int(i) for i in evaluation]
    outcome = subject.ablate_many(task, [["L1N7", "L2N3"], [f"{u}@{p}" for u in ("L1N7", "L2N3") for p in range(-5, 0)]], "keep",
                                  level="neuron", examples=rows)  # fmt: skip
    np.testing.assert_allclose(outcome.metric[0], outcome.metric[1], rtol=1e-5, atol=1e-6)
