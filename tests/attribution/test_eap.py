"""EAP against finite differences in which exactly one reader sees a moved residual stream."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import MeasurementError
from tests.fakes import tiny
from tests.fakes.edge_oracle import edge_oracle, edges_of, total
from tests.fakes.plain_hooks import WITH_EXPERTS, Parts

every_architecture = pytest.mark.parametrize("name", WITH_EXPERTS)


@every_architecture
def test_every_edge_is_the_derivative_through_one_reader(name):
    """q of every query head, k and v of every key-value head, every MLP and the logits."""
    model, task = tiny.model(name), tiny.task(n=2, tokens=2)
    for pair, mine in zip(task, edges_of(open_model(model), task), strict=True):
        oracle = edge_oracle(model, pair)
        assert len(mine) == len(oracle) == 2 * (Parts(model).H + 2 * Parts(model).kv) + (2 if Parts(model).parallel else 3) + 1
        for one, other in zip(mine, oracle, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@every_architecture
@pytest.mark.parametrize("which", ["logit_diff", "log_prob"])
def test_eap_is_the_sum_of_absolute_edges(name, which):
    """Absolute value an edge, then the sum over readers."""
    model, task = tiny.model(name, seed=3), tiny.task(n=2, seed=3)
    found = open_model(model).attribute(task, "eap", metric=which)
    for row, pair in enumerate(task):
        np.testing.assert_allclose(found.scores[row], total(edge_oracle(model, pair, which), 15, True), rtol=1e-5, atol=1e-6)


@every_architecture
def test_the_signed_row_sum_of_the_edges_is_atp(name):
    """And with absolute values it is larger."""
    model, task = tiny.model(name, seed=5), tiny.task(n=4, seed=5, foils=2)
    subject = open_model(model)
    atp, eap = subject.attribute(task, "atp").scores, subject.attribute(task, "eap").scores
    for row, edges in enumerate(edges_of(subject, task)):
        np.testing.assert_allclose(total(edges, 15, False), atp[row], rtol=1e-5, atol=1e-5)
    assert (eap + 1e-5 >= np.abs(atp)).all() and (eap[:, :10] > np.abs(atp[:, :10])).any()


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox", "gemma2"])
def test_eap_survives_a_users_hook_that_cuts_a_sublayer_off(name):
    """An MLP whose output a hook of the user's makes constant reads nothing and says nothing: its edges are zero."""
    model, task = tiny.model(name), tiny.task(n=2)
    subject = open_model(model)
    handle = Parts(model).down[1].register_forward_hook(lambda _m, _a, y: torch.ones_like(y))
    try:
        found = subject.attribute(task, "eap")
        for row, pair in enumerate(task):
            np.testing.assert_allclose(found.scores[row], total(edge_oracle(model, pair), 15, True), rtol=1e-5, atol=1e-6)
        assert (found.scores[:, found.units.index("L1MLP")] == 0).all()
        for method in ("atp", "relp", "weight_gradient", "eap_ig"):
            assert np.isfinite(subject.attribute(task, method).scores).all()
    finally:
        handle.remove()


EDITS = {
    "query": lambda p: p.projection(1, "q").register_forward_hook(lambda _m, _a, y: 2 * y),
    "norm input": lambda p: p.norm1[1].register_forward_pre_hook(lambda _m, a: (a[0] * a[0],)),
    "norm output": lambda p: p.norm1[1].register_forward_hook(lambda _m, _a, y: 2 * y),
    "MLP input": lambda p: p.mlp[1].register_forward_pre_hook(lambda _m, a: (2 * a[0],)),
    "MLP output": lambda p: p.mlp[1].register_forward_hook(lambda _m, _a, y: 2 * y),
    "layer input": lambda p: p.layers[1].register_forward_pre_hook(lambda _m, a: (2 * a[0], *a[1:])),
    "layer output": lambda p: p.layers[1].register_forward_hook(lambda _m, _a, y: 2 * y),
}


@pytest.mark.parametrize("place", EDITS)
@pytest.mark.parametrize("name", ["llama", "gpt_neox"])
@pytest.mark.parametrize("method", ["eap", "eap_ig"])
def test_a_users_hook_that_changes_what_flows_between_units_is_refused_by_eap(name, place, method):
    """Its derivative is not in the formula of an edge: an error that says so, in place of a wrong score."""
    model, task = tiny.model(name), tiny.task(n=2)
    subject = open_model(model)
    handle = EDITS[place](Parts(model))
    with pytest.raises(MeasurementError, match=r"hook.*use atp"):
        subject.attribute(task, method)
    assert np.isfinite(subject.attribute(task, "atp").scores).all()
    handle.remove()
    assert np.isfinite(subject.attribute(task, method).scores).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_users_hooks_that_only_look_or_edit_at_a_unit_are_fine(dtype):
    """Hooks that change nothing, and hooks at the input of the output projection, which is where heads are."""
    model, task = tiny.model("llama", dtype=dtype), tiny.task(n=3)
    subject, plain = open_model(model), open_model(model).attribute(task, "eap").scores
    looks = [m.register_forward_hook(lambda *_: None) for layer in Parts(model).layers for m in layer.modules()]
    assert np.array_equal(subject.attribute(task, "eap").scores, plain)
    for handle in looks:
        handle.remove()
    Parts(model).o[1].register_forward_pre_hook(lambda _m, a: (2 * a[0],))
    found = subject.attribute(task, "eap").scores
    assert np.isfinite(found).all() and not np.allclose(found, plain, rtol=0.01)
