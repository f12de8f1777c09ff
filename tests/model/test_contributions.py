"""Norms of contributions against plain forwards: what the sublayer's output loses when a head's slice is set to zero."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import MeasurementError, OptionError
from tests.fakes import tiny
from tests.fakes.plain_hooks import WITH_EXPERTS, Parts, prompts, record


def by_hand(model, task, chosen):
    """One prompt at a time; a head's contribution is o(z) − o(z with its slice zeroed), by the module itself."""
    parts, norms = Parts(model), {}
    for i in chosen:
        seen = record(model, prompts(task.pairs[i])[0], ("z", "mlp"))
        for layer in range(parts.L):
            z, project = seen["z", layer], parts.o[layer]
            for h in range(parts.H):
                without = z.clone()
                without[..., h * parts.hd : (h + 1) * parts.hd] = 0
                with torch.no_grad():
                    norms.setdefault(f"L{layer}H{h}", []).extend((project(z) - project(without))[0].norm(dim=-1).tolist())
            norms.setdefault(f"L{layer}MLP", []).extend(seen["mlp", layer][0].norm(dim=-1).tolist())
    return {name: np.mean(values) for name, values in norms.items()}


@pytest.mark.parametrize("name", WITH_EXPERTS)
def test_norms_are_those_of_what_each_component_writes(name):
    """Every architecture, prompts of two lengths and two answer tokens: each position of each prompt counts once."""
    model, task = tiny.model(name), tiny.task(n=5, tokens=2)
    found = open_model(model).norms(task)
    expected = by_hand(model, task, range(5))
    assert found.units == tuple(expected) and found.values.dtype == np.float32
    np.testing.assert_allclose(found.values, list(expected.values()), rtol=1e-6)


def test_only_the_chosen_examples_count_and_their_batches_do_not():
    """One, some in another order, any batch size."""
    model, task = tiny.model("gpt2"), tiny.task(n=6)
    subject = open_model(model)
    np.testing.assert_allclose(subject.norms(task, examples=[4]).values, list(by_hand(model, task, [4]).values()), rtol=1e-6)
    some = [subject.norms(task, examples=order, batch_size=size).values for order in ([5, 1, 2], [1, 2, 5]) for size in (1, 2, None)]
    for other in some[1:]:
        np.testing.assert_allclose(other, some[0], rtol=1e-7)


def test_a_forward_a_batch_and_no_trace():
    """Two lengths make two batches; the model, its flags and its logits are as before."""
    model, task = tiny.model("llama").train(), tiny.task(n=6)
    subject = open_model(model)
    before, hooks = subject.forwards, sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    subject.norms(task)
    assert (subject.forwards - before, subject.backwards) == (2, 0)
    assert model.training and all(p.requires_grad for p in model.parameters())
    assert sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()) == hooks
    assert all(torch.equal(weights[k], v) for k, v in model.state_dict().items())


def test_half_precision_is_summed_in_single():
    """bfloat16 weights: the means agree with those of the same weights in float32 to bfloat16's precision, also over many positions."""
    whole = tiny.model("llama", dtype=torch.float32)
    half = tiny.model("llama", dtype=torch.bfloat16)
    task = tiny.task(n=60)
    np.testing.assert_allclose(open_model(half).norms(task).values, open_model(whole).norms(task).values, rtol=0.03)


def test_what_is_not_finite_or_missing_is_an_error():
    """NaN weights and an empty choice of examples."""
    model, task = tiny.model("llama"), tiny.task(n=2)
    with pytest.raises(OptionError, match="no examples are selected"):
        open_model(model).norms(task, examples=[])
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")
    with pytest.raises(MeasurementError, match=r"contributions of \d+ of 15 components have no finite norm, for instance L1MLP"):
        open_model(model, check=False).norms(task)
