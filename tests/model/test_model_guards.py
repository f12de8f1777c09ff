"""Compiled and quantised models are refused with what to do; the fingerprint is computed once as long as nothing changes."""

from __future__ import annotations

import warnings

import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import ModelError
from pytest_circuits.model import loading
from pytest_circuits.model.loading import behaviour_digest, weights_digest
from tests.fakes import tiny


def compiled_as(how):
    """A model in which something was compiled, in one of the ways in which that is done."""
    model = tiny.model("llama", dtype=torch.float32)
    if how == "wrapped":
        return torch.compile(model, backend="eager")
    if how == "in place":
        model.compile(backend="eager")
    elif how == "a layer":
        model.model.layers[1].compile(backend="eager")
    elif how == "a wrapped layer":
        model.model.layers[1] = torch.compile(model.model.layers[1], backend="eager")
    else:
        model.model.layers[1].mlp.forward = torch.compile(model.model.layers[1].mlp.forward, backend="eager")
    return model


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("wrapped", r"this OptimizedModule is compiled, and hooks do not act .*_orig_mod"),
        ("in place", r"this LlamaForCausalLM is compiled.*on which module\.compile\(\) was not called"),
        ("a layer", r"model\.layers\.1 of this LlamaForCausalLM is compiled"),
        ("a wrapped layer", r"model\.layers\.1 of this LlamaForCausalLM is compiled.*_orig_mod"),
        ("a forward", r"model\.layers\.1\.mlp of this LlamaForCausalLM is compiled.*del module\.forward"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_compiled_modules_are_refused_whatever_was_compiled(how, message, check):
    """Also where the numerical check is off."""
    with pytest.raises(ModelError, match=message):
        open_model(compiled_as(how), check=check)


def test_a_model_that_is_compiled_after_opening_is_refused_at_the_next_measurement():
    """And measured again once it is plain."""
    model, task = tiny.model("llama", dtype=torch.float32), tiny.task(n=2)
    subject = open_model(model)
    before = subject.sweep(task)
    model.model.layers[0].compile(backend="eager")
    for call in (lambda: subject.sweep(task), lambda: subject.norms(task), lambda: behaviour_digest(model)):
        with pytest.raises(ModelError, match=r"model\.layers\.0 of this LlamaForCausalLM is compiled"):
            call()
    model.model.layers[0]._compiled_call_impl = None
    assert (subject.sweep(task).metric == before.metric).all()


def test_quantised_models_are_refused_by_name():
    """Opening and digesting name the first packed weight."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantised = torch.ao.quantization.quantize_dynamic(tiny.model("llama", dtype=torch.float32), {torch.nn.Linear}, dtype=torch.qint8)
    for call in (open_model, weights_digest):
        with pytest.raises(
            ModelError, match=r"is quantised: model\.layers\.0\.self_attn\.q_proj\._packed_params.*load the model in float32"
        ):
            call(quantised)


@pytest.fixture
def counted(monkeypatch):
    """How often all weights were read."""
    calls = []
    monkeypatch.setattr(loading, "weights_digest", lambda model: calls.append(1) or weights_digest(model))
    return calls


def test_the_fingerprint_is_computed_once_while_nothing_changes(counted):
    """Measurements change nothing."""
    model, task = tiny.model("gpt2"), tiny.task(n=2)
    subject = open_model(model)
    first = subject.fingerprint
    subject.attribute(task, "relp")
    subject.sweep(task)
    assert (subject.fingerprint, subject.describe().fingerprint, len(counted)) == (first, first, 1)
    assert first == weights_digest(model)


def in_place(model):
    with torch.no_grad():
        model.model.layers[1].mlp.down_proj.weight[3, 5] += 1e-9


def by_data(model):
    model.model.layers[1].mlp.down_proj.weight.data[:, 7] = 0


def swapped_by_data(model):
    weight = model.model.layers[1].mlp.down_proj.weight
    weight.data[:, [2, 9]] = weight.data[:, [9, 2]]


def another_parameter(model):
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach() * 2)


def a_step(model):
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    torch.optim.SGD(model.parameters(), lr=1e-3).step()


def the_config(model):
    model.config.rms_norm_eps = 1e-2


def loaded(model):
    model.load_state_dict({k: v * 1.5 for k, v in model.state_dict().items()})


@pytest.mark.parametrize("change", [in_place, by_data, swapped_by_data, another_parameter, a_step, the_config, loaded])
def test_whatever_changes_is_noticed(change):
    """By gradient steps, surgery, `.data`, and configs."""
    model = tiny.model("llama")
    subject = open_model(model)
    first = subject.fingerprint
    change(model)
    assert subject.fingerprint == weights_digest(model) != first


def test_inference_tensors_have_no_versions_and_are_read_each_time(counted):
    """Nothing may be concluded from what is not counted."""
    with torch.inference_mode():
        model = tiny.model("llama")
    subject = open_model(model, check=False)  # which such a model does not pass
    first, second = subject.fingerprint, subject.fingerprint
    assert first == second and len(counted) == 2
