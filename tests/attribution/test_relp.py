"""RelP: the forward is untouched, conservation holds at every layer, and two replacement models written by hand agree."""

from __future__ import annotations

import copy
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.attribution.relp import relp_rules
from pytest_circuits.inspection.locate import anatomy_of
from pytest_circuits.model.hooks import Hooks, measuring
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, metric, prompts, record
from tests.fakes.replacement_models import gpt2_by_hand, llama_by_hand

every_architecture = pytest.mark.parametrize("name", NAMES)


def without_biases(model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    return model


@contextmanager
def rules(model):
    with measuring(model), torch.enable_grad(), Hooks() as taps:
        relp_rules(anatomy_of(model), taps)
        yield


def captured(model, ids, before=(), after=(), outputs_before=(), outputs_after=()):
    """A forward under the rules with one's own hooks; (logits, kept inputs and outputs in the order asked for).

    before, outputs_before: modules whose input or output is seen before the rules act; after: whose input after they acted.
    """
    kept, handles = {}, []

    def keep(key):
        def take(x):
            x = x if x.requires_grad else x.detach().requires_grad_()
            kept[key] = x
            return x

        return take

    def on_input(i, module, key):
        function = keep((key, i))
        handles.append(module.register_forward_pre_hook(lambda _m, a: (function(a[0]), *a[1:])))

    def on_output(i, module, key):
        function = keep((key, i))
        handles.append(module.register_forward_hook(lambda _m, _a, y: function(y)))

    for i, module in enumerate(before):
        on_input(i, module, "before")
    for i, module in enumerate(outputs_before):
        on_output(i, module, "outputs_before")
    with rules(model):
        for i, module in enumerate(after):
            on_input(i, module, "after")
        for i, module in enumerate(outputs_after):
            on_output(i, module, "outputs_after")
        logits = model(input_ids=as_ids(ids), use_cache=False).logits[0]
    for handle in handles:
        handle.remove()
    return logits, kept


def through(f, kept) -> dict:
    """Σ x·∂f/∂x of each captured tensor (0 where no gradient arrives)."""
    gradients = torch.autograd.grad(f, list(kept.values()), allow_unused=True)
    return {key: 0.0 if g is None else float((x * g).sum().detach()) for (key, x), g in zip(kept.items(), gradients, strict=True)}


@every_architecture
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_forward_is_unchanged_bit_for_bit(name, dtype):
    """In every precision; transformers' own norms."""
    model, pair = tiny.model(name, dtype=dtype), tiny.task(n=1).pairs[0]
    with torch.no_grad():
        plain = model(input_ids=as_ids(pair.clean), use_cache=False).logits[0]
    with rules(model):
        ruled = model(input_ids=as_ids(pair.clean), use_cache=False).logits[0]
    assert torch.equal(plain, ruled)


@every_architecture
@pytest.mark.parametrize("which", ["logit_diff"])
def test_relevance_is_conserved_at_every_layer(name, which):
    """Bias-free: Σ x·∂f/∂x over the residual stream is f before each layer and before the final norm. Plain gradients give ≈ 0 there."""
    model, pair = without_biases(tiny.model(name)), tiny.task(n=1, foils=2).pairs[0]
    parts = Parts(model)
    logits, kept = captured(model, pair.clean, before=[*parts.layers, parts.final_norm])
    f = metric(which, logits, pair)
    for key, total in through(f, kept).items():
        assert total == pytest.approx(float(f.detach()), rel=1e-9), key
    final = []
    handle = parts.final_norm.register_forward_pre_hook(lambda _m, a: final.append(a[0].detach().requires_grad_()) or (final[-1],))
    g = metric(which, model(input_ids=as_ids(pair.clean), use_cache=False).logits[0], pair)
    handle.remove()
    plain = float((final[0] * torch.autograd.grad(g, final[0])[0]).sum().detach())
    assert abs(plain) < 1e-3 * abs(float(g.detach()))


@every_architecture
def test_with_biases_the_bias_terms_make_up_the_rest(name):
    """Embeddings plus Σ b·∂f/∂b over every module that adds a bias is f."""
    model, pair = tiny.model(name), tiny.task(n=1).pairs[0]
    parts = Parts(model)
    biased = [m for m in model.modules() if getattr(m, "bias", None) is not None]
    norms = [m for m in biased if m in (*parts.norm1, *parts.norm2, parts.final_norm)]
    linear = [m for m in biased if m not in norms]
    logits, kept = captured(model, pair.clean, before=parts.layers[:1], outputs_before=linear, outputs_after=norms)
    f = metric("logit_diff", logits, pair)
    gradients = torch.autograd.grad(f, list(kept.values()), allow_unused=True)
    total = 0.0
    for ((place, i), x), g in zip(kept.items(), gradients, strict=True):
        if g is None:
            continue
        if place == "before":
            total += float((x * g).sum().detach())
        else:
            total += float((g.sum((0, 1)) * (norms if place == "outputs_after" else linear)[i].bias.detach()).sum())
    assert total == pytest.approx(float(f.detach()), rel=1e-9)


@every_architecture
def test_cuts_inside_a_layer(name):
    """Bias-free: Σ neuron·g = Σ mlp_out·g, gate and up each get half, and Σ v·g = Σ attn_out·g, with none to q and k."""
    model, pair = without_biases(tiny.model(name)), tiny.task(n=1).pairs[0]
    parts = Parts(model)
    gated = hasattr(parts.mlp[0], "up_proj")
    outs = [*parts.down, *parts.o]
    inner = [
        m for layer in range(parts.L) for m in ([parts.projection(layer, w) for w in "qkv"] if not parts.fused else [parts.qkv[layer]])
    ]
    factors = [m.up_proj for m in parts.mlp] if gated else []
    logits, kept = captured(model, pair.clean, after=parts.down, outputs_before=[*outs, *inner, *factors])
    f = metric("logit_diff", logits, pair)
    totals = through(f, kept)
    for layer in range(parts.L):
        neuron, out, attention = totals["after", layer], totals["outputs_before", layer], totals["outputs_before", parts.L + layer]
        assert neuron == pytest.approx(out, rel=1e-9, abs=1e-12) and abs(out) > 1e-6
        base = 2 * parts.L + layer * (1 if parts.fused else 3)
        if parts.fused:
            assert totals["outputs_before", base] == pytest.approx(attention, rel=1e-9, abs=1e-12)
        else:
            assert totals["outputs_before", base] == totals["outputs_before", base + 1] == 0.0
            assert totals["outputs_before", base + 2] == pytest.approx(attention, rel=1e-9, abs=1e-12)
        if gated:
            assert totals["outputs_before", 5 * parts.L + layer] == pytest.approx(neuron / 2, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "gpt_neox"])
def test_no_gradient_reaches_the_query_and_key_columns_of_fused_projections(name):
    """They are exactly zero, those of the values are not."""
    model, pair = tiny.model(name), tiny.task(n=1).pairs[0]
    parts = Parts(model)
    logits, kept = captured(model, pair.clean, outputs_before=parts.qkv)
    gradients = torch.autograd.grad(metric("logit_diff", logits, pair), list(kept.values()))
    for g in gradients:
        for h in range(parts.H):
            assert (g[..., parts.columns("q", h)] == 0).all() and (g[..., parts.columns("k", h)] == 0).all()
            assert (g[:, :, parts.columns("v", h)] != 0).any()


@pytest.mark.parametrize(("name", "by_hand"), [("llama", llama_by_hand), ("llama-wide", llama_by_hand), ("gpt2", gpt2_by_hand)])
@pytest.mark.parametrize("unpaired", [False, True])
def test_scores_equal_a_replacement_model_written_by_hand(name, by_hand, unpaired):
    """Components and neurons, with the corrupt prompt or zero as the baseline."""
    model, task = tiny.model(name), tiny.task(n=2, foils=2)
    subject = open_model(model)
    found = subject.attribute(task, "relp", unpaired=unpaired)
    found_neurons = subject.attribute(task, "relp", level="neuron", unpaired=unpaired)
    for row, pair in enumerate(task):
        clean, corrupt, _ = prompts(pair)
        logits, heads, neurons, mlps = by_hand(copy.deepcopy(model).requires_grad_(True), clean)
        np.testing.assert_allclose(logits.detach(), model(input_ids=as_ids(clean)).logits[0].detach(), atol=1e-6)
        gradients = torch.autograd.grad(metric("logit_diff", logits, pair), [*heads, *neurons, *mlps])
        a, c = record(model, clean), record(model, corrupt)
        parts = Parts(model)
        change = {key: (0 if unpaired else c[key][0]) - a[key][0] for key in a}
        L = parts.L
        for layer in range(L):
            per_head = (change["z", layer].view(len(clean), parts.H, -1) * gradients[layer]).sum((0, 2))
            per_neuron = (change["n", layer] * gradients[L + layer]).sum(0)
            mlp = (change["mlp", layer] * gradients[2 * L + layer]).sum()
            mine = found.scores[row].reshape(L, -1)[layer]
            np.testing.assert_allclose(mine, [*per_head, mlp], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found_neurons.scores[row].reshape(L, -1)[layer], per_neuron, rtol=1e-5, atol=1e-6)


def test_an_activation_at_exactly_zero_has_its_slope_there():
    """act(x)/x is 0/0 at zero; its limit is act′(0) = ½ for SiLU and GELU."""
    for name in ("llama", "gpt2"):
        model, task = tiny.model(name), tiny.task(n=1)
        first = Parts(model).mlp[0]
        source = first.gate_proj if name == "llama" else first.c_fc
        with torch.no_grad():
            source.weight.zero_()
            if source.bias is not None:
                source.bias.zero_()
        assert np.isfinite(open_model(model).attribute(task, "relp").scores).all()
        logits, kept = captured(model, task.pairs[0].clean, outputs_before=[source])
        activation = first.act_fn if name == "llama" else first.act
        assert float(torch.autograd.functional.jacobian(activation.forward, torch.zeros((), dtype=torch.float64))) == pytest.approx(0.5)
        (g,) = torch.autograd.grad(metric("logit_diff", logits, task.pairs[0]), list(kept.values()))
        assert torch.isfinite(g).all() and (g != 0).any()


def test_relp_differs_from_plain_attribution_patching():
    """Each rule matters: the scores are not atp's."""
    model, task = tiny.model("llama"), tiny.task(n=2)
    subject = open_model(model)
    assert not np.allclose(subject.attribute(task, "relp").scores, subject.attribute(task, "atp").scores, rtol=0.05)
