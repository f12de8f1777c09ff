"""Mean, counterfactual and resample ablation against plain hooks written here, and the sweep against single ablations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import OptionError
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, edits, metric, prompts, record, same

every_architecture = pytest.mark.parametrize("name", NAMES)
SETS = (["L0H1"], ["L2MLP"], ["L1H0", "L1H3", "L1MLP", "L2H2"])


def head_slice(parts: Parts, h: int) -> slice:
    return slice(h * parts.hd, (h + 1) * parts.hd)


def replaced(model, ids, names, values) -> torch.Tensor:
    """Logits with components set to `values` {(kind, layer): tensor broadcasting to that activation}."""
    parts, places = Parts(model), {}
    for name in names:
        layer = int(name[1])
        if name.endswith("MLP"):
            places["mlp", layer] = lambda y, v=values["mlp", layer]: v.expand_as(y)
            continue
        h, before = int(name.split("H")[1]), places.get(("z", layer))

        def edit(x, layer=layer, h=h, before=before):
            x = x.clone() if before is None else before(x)
            where = head_slice(parts, h)
            x[..., where] = values["z", layer].expand_as(x)[..., where]
            return x

        places["z", layer] = edit
    with torch.no_grad(), edits(model, places):
        return model(input_ids=as_ids(ids), use_cache=False).logits[0]


def expected(model, task, names, values_of, which="logit_diff"):
    """Oracle outcomes; `values_of(pair)` gives the replacement of that example."""
    rows = [(replaced(model, prompts(p)[0], names, values_of(p)), p) for p in task]
    return np.array([float(metric(which, x, p)) for x, p in rows])


@every_architecture
def test_counterfactual_ablation_puts_in_the_corrupt_prompts_values(name):
    """Position by position, several answer tokens included: the corrupt prompt is followed by the corrupt answer."""
    model, task = tiny.model(name), tiny.task(n=3, tokens=2, foils=2)
    subject = open_model(model)
    for names in SETS:
        found = subject.ablate(task, remove=names, kind="counterfactual", metric="log_prob")
        oracle = expected(model, task, names, lambda p: record(model, prompts(p)[1]), "log_prob")
        np.testing.assert_allclose(found.metric, oracle, rtol=1e-5, atol=1e-5)


@every_architecture
@pytest.mark.parametrize("side", ["clean", "corrupt"])
def test_pooled_mean_ablation_weights_every_position_alike(name, side):
    """One mean over all positions of all reference prompts, of whatever lengths."""
    model, task = tiny.model(name), tiny.task(n=5)
    reference = [0, 1, 4]
    seen = [record(model, prompts(task.pairs[i])[side == "corrupt"]) for i in reference]
    means = {key: torch.cat([r[key][0] for r in seen]).mean(0) for key in seen[0]}
    for names in SETS:
        found = open_model(model).ablate(task, remove=names, kind="mean", prompts=side, reference=reference)
        np.testing.assert_allclose(found.metric, expected(model, task, names, lambda p: means), rtol=1e-5, atol=1e-5)


@every_architecture
def test_mean_ablation_position_by_position(name):
    """One mean for each position and length."""
    model, task = tiny.model(name), tiny.task(n=6)
    by_length = {}
    for length in (5, 7):
        seen = [record(model, p.clean) for p in task if len(p.clean) == length]
        by_length[length] = {key: torch.cat([r[key] for r in seen]).mean(0) for key in seen[0]}
    for names in SETS[1:]:
        found = open_model(model).ablate(task, remove=names, kind="mean", positions="each", batch_size=2)
        np.testing.assert_allclose(found.metric, expected(model, task, names, lambda p: by_length[len(p.clean)]), rtol=1e-5, atol=1e-5)


def test_mean_ablation_of_neurons():
    """Neurons are replaced with their mean, the others stay."""
    model, task = tiny.model("gpt_neox"), tiny.task(n=4)
    mean = torch.cat([record(model, p.clean)["n", 1][0] for p in task]).mean(0)
    chosen = torch.tensor([3, 17, 30])

    def edit(x):
        x = x.clone()
        x[..., chosen] = mean[chosen]
        return x

    with edits(model, {("n", 1): edit}):
        oracle = [float(metric("logit_diff", model(input_ids=as_ids(p.clean)).logits[0].detach(), p)) for p in task]
    found = open_model(model).ablate(task, remove=["L1N3", "L1N17", "L1N30"], kind="mean")
    np.testing.assert_allclose(found.metric, oracle, rtol=1e-5, atol=1e-5)


def test_mean_over_the_examples_that_are_ablated_by_default():
    """Without `reference` the mean is over the ablated examples, and not over the whole task."""
    model, task = tiny.model("llama"), tiny.task(n=6)
    subject = open_model(model)
    some = subject.ablate(task, remove=["L1MLP"], kind="mean", examples=[1, 3])
    same_reference = subject.ablate(task, remove=["L1MLP"], kind="mean", examples=[1, 3], reference=[1, 3])
    whole = subject.ablate(task, remove=["L1MLP"], kind="mean", examples=[1, 3], reference=range(6))
    assert np.array_equal(some.metric, same_reference.metric)
    assert not np.allclose(some.metric, whole.metric)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_resample_ablation_takes_one_other_prompt_of_the_same_length(name):
    """Each outcome is that of exactly one donor, never of the example itself; the seed decides, companions do not."""
    model, task = tiny.model(name), tiny.task(n=8)
    subject = open_model(model)
    names, found = SETS[2], {s: subject.ablate(task, remove=SETS[2], kind="resample", seed=s).metric for s in range(5)}
    activations, chosen = [record(model, p.clean) for p in task], set()
    for i, pair in enumerate(task):
        donors = [j for j, p in enumerate(task) if len(p.clean) == len(pair.clean)]
        by_donor = {j: float(metric("logit_diff", replaced(model, pair.clean, names, activations[j]), pair)) for j in donors}
        for values in found.values():
            near = [j for j, value in by_donor.items() if abs(value - values[i]) < 1e-4]
            assert len(near) == 1 and near[0] != i
            chosen.add((i, near[0]))
    assert len(chosen) > 16  # of 24 pairs
    alone = subject.ablate(task, remove=names, kind="resample", seed=3, examples=[6, 2], batch_size=1)
    np.testing.assert_allclose(alone.metric, found[3][[6, 2]], rtol=1e-6, atol=1e-6)


def test_resample_refuses_an_example_without_a_donor():
    """The only prompt of its length has none."""
    with pytest.raises(OptionError, match=r"example 1 .*no donor"):
        open_model(tiny.model("gpt2")).ablate(tiny.task(n=3, lengths=(5, 7)), remove=["L0H0"], kind="resample")


def test_mean_by_position_refuses_a_length_without_reference():
    """And names the lengths that there are."""
    with pytest.raises(OptionError, match=r"7 positions.*of 5 tokens"):
        open_model(tiny.model("gpt2")).ablate(tiny.task(n=4), remove=["L0H0"], kind="mean", positions="each", reference=[0, 2])


@pytest.mark.parametrize(
    ("kind", "options", "word"),
    [
        ("mean", {"prompts": "both"}, "prompts"),
        ("mean", {"positions": "all"}, "positions"),
        ("zero", {"seed": 1}, "seed"),
        ("nil", {}, "nil"),
    ],
)
def test_unknown_kinds_and_options_are_refused(kind, options, word):
    """With the word that is wrong."""
    with pytest.raises(OptionError, match=word):
        open_model(tiny.model("gpt2")).ablate(tiny.task(n=2), remove=["L0H0"], kind=kind, **options)


@every_architecture
@pytest.mark.parametrize("kind", ["zero", "counterfactual"])
def test_a_sweep_is_one_ablation_a_component(name, kind):
    """Prefix reuse changes nothing; columns are the components in their order."""
    model, task = tiny.model(name), tiny.task(n=4)
    subject = open_model(model)
    swept = subject.sweep(task, kind=kind, batch_size=3)
    assert list(swept.units) == Parts(model).names
    single = subject.ablate_many(task, [[n] for n in swept.units], kind=kind)
    np.testing.assert_allclose(swept.metric, single.metric.T, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(swept.log_prob, single.log_prob.T, rtol=1e-6, atol=1e-6)
    assert np.array_equal(swept.correct, single.correct.T)
    intact = subject.ablate(task, remove=[])
    same(swept.baseline, {"metric": intact.metric, "log_prob": intact.log_prob, "correct": intact.correct}, 1e-6)


@every_architecture
def test_prefix_reuse_is_exact_and_skipped_layers_are_not_run(name):
    """With hooks of the user's on the layers all layers run and the hooks see every call. Bit-identical at batch size 1, where every
    matrix product has the same shape in both."""
    model, task = tiny.model(name, dtype=torch.float32), tiny.task(n=2)
    subject = open_model(model)
    quick = subject.sweep(task, batch_size=1)
    calls = []
    handles = [layer.register_forward_hook(lambda *_: calls.append(1)) for layer in Parts(model).layers]
    before = subject.forwards
    slow = subject.sweep(task, batch_size=1)
    assert len(calls) == 3 * (subject.forwards - before)
    assert np.array_equal(quick.metric, slow.metric) and np.array_equal(quick.correct, slow.correct)
    assert [len(layer._forward_hooks) for layer in Parts(model).layers] == [1, 1, 1]
    for handle in handles:
        handle.remove()


def test_a_sweep_respects_what_the_users_hooks_do():
    """A hook that steers the residual stream inside a layer counts in every number, prefix reuse or not."""
    model, task = tiny.model("llama"), tiny.task(n=3)
    subject, plain = open_model(model), open_model(model).sweep(task)
    handle = Parts(model).mlp[0].register_forward_hook(lambda _m, _a, y: y + 0.5)
    steered = subject.sweep(task)
    one = subject.ablate(task, remove=["L2H1"])
    handle.remove()
    np.testing.assert_allclose(steered.metric[:, steered.units.index("L2H1")], one.metric, rtol=1e-6, atol=1e-6)
    assert not np.allclose(steered.metric, plain.metric)
