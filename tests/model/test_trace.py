"""After any public call, also one that raised or was interrupted, the model is as it was; the user's hooks live on."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import CircuitsError, MeasurementError, OptionError
from tests.fakes import tiny
from tests.fakes.plain_hooks import NAMES, Parts, as_ids

CALLS = {
    "eap": lambda s, k: s.attribute(k, "eap"),
    "atp neurons": lambda s, k: s.attribute(k, "atp", level="neuron"),
    "eap_ig": lambda s, k: s.attribute(k, "eap_ig", steps=2),
    "ig_activations": lambda s, k: s.attribute(k, "ig_activations", steps=2),
    "relp": lambda s, k: s.attribute(k, "relp"),
    "gradient": lambda s, k: s.attribute(k, "gradient"),
    "weight_gradient": lambda s, k: s.attribute(k, "weight_gradient"),
    "exact": lambda s, k: s.attribute(k, "exact"),
    "remove": lambda s, k: s.ablate(k, remove=["L0H1", "L1MLP"]),
    "keep": lambda s, k: s.ablate(k, keep=["L0H1"], kind="mean"),
    "neurons": lambda s, k: s.ablate(k, remove=["L0N3"]),
    "many": lambda s, k: s.ablate_many(k, [["L0H0"], ["L2MLP"]], kind="counterfactual"),
    "sweep": lambda s, k: s.sweep(k),
    "scale": lambda s, k: s.ablate(k, remove=["L0H1", "L1MLP"], kind="scale", factor=-2),
    "residual_slice": lambda s, k: s.sweep(k, kind="residual_slice"),
    "norms": lambda s, k: s.norms(k),
    "conserve": lambda s, k: s.conserve(k),
    "describe": lambda s, k: s.describe(),
}
every_call = pytest.mark.parametrize("call", CALLS)
HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks_with_kwargs",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called",
)  # fmt: skip


def state(model):
    """Everything about a model that a measurement could leave a mark on, by value."""
    return {
        "config": copy.deepcopy(model.config.to_dict()),
        "implementation": model.config._attn_implementation,
        "hooks": [[(key, id(hook)) for attribute in HOOKS for key, hook in getattr(m, attribute).items()] for m in model.modules()],
        "training": [m.training for m in model.modules()],
        "attributes": [sorted(m.__dict__) for m in model.modules()],
        "classes": [type(m) for m in model.modules()],
        "children": [(name, id(m)) for name, m in model.named_modules()],
        "parameters": [
            (name, id(p), p.requires_grad, None if p.grad is None else p.grad.clone().tolist()) for name, p in model.named_parameters()
        ],
        "weights": [t.clone().tolist() for t in model.state_dict().values()],
        "versions": [p._version for p in model.parameters()],
        "grad mode": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
    }


def logits(model, mode=False):
    was = [m.training for m in model.modules()]
    model.eval()
    with torch.no_grad():
        out = model(input_ids=as_ids((1, 2, 3, 4)), use_cache=False).logits.clone()
    for m, flag in zip(model.modules(), was, strict=True):
        m.training = flag
    return out


def lived_in(name: str, **kwargs):
    """A model in use: mixed modes and flags, gradients in place, two hooks of the user's."""
    model = tiny.model(name, dtype=torch.float32, **kwargs)
    parts = Parts(model)
    for i, p in enumerate(model.parameters()):
        p.requires_grad_(i % 3 != 0)
        p.grad = torch.full_like(p, 0.5) if i % 2 else None
    model.train()
    parts.layers[1].eval()
    seen = []
    parts.mlp[1].register_forward_hook(lambda *_: seen.append("mlp"))
    parts.final_norm.register_forward_pre_hook(lambda *_: seen.append("norm"))
    return model, seen


@every_call
@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_a_call_leaves_no_trace(name, call):
    """Hooks, flags, gradients, modes, config, weights, attributes; logits bit-identical. The user's hooks fired meanwhile."""
    model, seen = lived_in(name)
    subject, task = open_model(model), tiny.task(n=3)
    before, truth = state(model), logits(model)
    seen.clear()
    CALLS[call](subject, task)
    assert state(model) == before
    assert torch.equal(logits(model), truth)
    if call != "describe":
        assert {"mlp", "norm"} <= set(seen)


@pytest.mark.extensive
@every_call
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_middle_leaves_no_trace(call, error):
    """Raised by a hook of the user's at its first, second and fifth call, outside and inside the layers; that hook stays too."""
    for name, place in (("llama", "embedding"), ("gpt_neox", "final_norm")):
        model, _ = lived_in(name)
        if place == "final_norm":  # without hooks in the layers, so that prefix reuse is on
            for m in Parts(model).layers:
                for part in m.modules():
                    part._forward_hooks.clear()
        subject, task = open_model(model), tiny.task(n=3)
        for when in (1, 2, 5):
            count = [0]

            def bomb(*_, count=count, when=when):
                count[0] += 1
                if count[0] == when:
                    raise error("boom")

            handle = getattr(Parts(model), place).register_forward_hook(bomb)
            before = state(model)
            try:
                CALLS[call](subject, task)
                assert count[0] < when
            except error:
                assert count[0] == when
            assert state(model) == before
            handle.remove()
        CALLS[call](subject, task)  # and it works afterwards


@pytest.mark.parametrize(
    "call",
    [
        lambda s, k: s.ablate(k, remove=["L9H0"]),
        lambda s, k: s.ablate(k, remove=["L0H0"], kind="nothing"),
        lambda s, k: s.ablate(k, remove=["L0H0"], metric="nothing"),
        lambda s, k: s.ablate(k, remove=["L0H0"], kind="mean", reference=[]),
        lambda s, k: s.ablate(k),
        lambda s, k: s.attribute(k, "eap", level="neuron"),
        lambda s, k: s.attribute(k, "relp", batch_size=0),
        lambda s, k: s.attribute(k, "relp", examples=[99]),
        lambda s, k: s.attribute(k, "relp", examples=[-1]),
        lambda s, k: s.attribute(k, "relp", examples=[]),
        lambda s, k: s.sweep(k, examples=[99]),
        lambda s, k: s.ablate(k, remove=["L0H0"], examples=[]),
        lambda s, k: s.ablate(k, remove="L0H0"),
        lambda s, k: s.attribute(k, "eap_ig", steps=0),
        lambda s, k: s.sweep(k, kind="mean", positions="some"),
    ],
)
def test_a_refused_call_leaves_no_trace(call):
    """One clear error, not a traceback from the depths."""
    model, _ = lived_in("gpt2")
    subject = open_model(model)
    before = state(model)
    with pytest.raises(CircuitsError):
        call(subject, tiny.task(n=3))
    assert state(model) == before


@every_call
@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_calls_work_without_grad_mode_and_in_inference_mode(call, context):
    """With the same numbers."""
    model, task = tiny.model("llama", dtype=torch.float32), tiny.task(n=2)
    plain = CALLS[call](open_model(model), task)
    grad = torch.is_grad_enabled()
    try:
        with context():
            found = CALLS[call](open_model(model), task)
    finally:
        torch.set_grad_enabled(grad)
    for field in ("scores", "metric", "correct"):
        if hasattr(plain, field):
            assert np.array_equal(getattr(plain, field), getattr(found, field))


@pytest.mark.extensive
@every_call
@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox"])
def test_dropout_is_off_during_a_measurement(name, call):
    """A model in training mode, with dropout everywhere, gives the numbers of evaluation mode."""
    rates = {
        "llama": {"attention_dropout": 0.5},
        "gpt2": {"attn_pdrop": 0.5, "resid_pdrop": 0.5, "embd_pdrop": 0.5},
        "gpt_neox": {"attention_dropout": 0.5, "hidden_dropout": 0.5},
    }[name]
    task, plain, leaky = tiny.task(n=2), tiny.model(name), tiny.model(name, **rates).train()
    noise = [leaky(input_ids=as_ids((1, 2, 3))).logits.detach() for _ in range(2)]
    assert not torch.equal(*noise)
    expected, found = CALLS[call](open_model(plain), task), CALLS[call](open_model(leaky), task)
    for field in ("scores", "metric"):
        if hasattr(expected, field):
            assert np.array_equal(getattr(expected, field), getattr(found, field))
    assert all(m.training for m in leaky.modules())


def test_two_models_do_not_disturb_each_other():
    """Also when one is measured in the middle of the other's measurement."""
    one, other = tiny.model("llama"), tiny.model("gpt2")
    task, a, b = tiny.task(n=2), open_model(one), open_model(other)
    alone = {call: (CALLS[call](a, task), CALLS[call](b, task)) for call in ("eap", "relp", "sweep", "many")}
    for outer in alone:
        for inner in alone:
            nested = []
            handle = Parts(one).final_norm.register_forward_hook(
                lambda *_, n=nested, c=inner: n.append(CALLS[c](b, task)) if len(n) < 2 else None
            )
            mine = CALLS[outer](a, task)
            handle.remove()
            for found, expected in [(mine, alone[outer][0]), *((n, alone[inner][1]) for n in nested)]:
                field = next(name for name in ("scores", "totals", "metric", "values") if hasattr(expected, name))
                assert len(nested) == 2
                assert np.array_equal(getattr(found, field), getattr(expected, field))


@pytest.mark.extensive
@pytest.mark.parametrize("place", ["embedding", "final_norm", "mlp"])
def test_a_nested_measurement_of_the_same_model_gives_the_same_numbers(place):
    """A hook of the user's that measures the model while it is being measured: neither sees the other."""
    model = tiny.model("llama")
    task, subject = tiny.task(n=2), open_model(model)
    module = Parts(model).mlp[1] if place == "mlp" else getattr(Parts(model), place)
    calls = ("eap", "relp", "sweep", "many", "ig_activations", "weight_gradient")
    for outer in calls:
        for inner in ("relp", "sweep", "many"):
            nested, busy = [], []

            def hook(*_, nested=nested, busy=busy, inner=inner):
                if not busy and len(nested) < 3:
                    busy.append(1)
                    nested.append(CALLS[inner](subject, task))
                    busy.pop()

            handle = module.register_forward_hook(lambda *_: None)
            alone_outer, alone_inner = CALLS[outer](subject, task), CALLS[inner](subject, task)
            handle.remove()
            handle = module.register_forward_hook(hook)
            before = state(model)
            mine = CALLS[outer](subject, task)
            assert state(model) == before
            handle.remove()
            assert nested
            for found, expected in [(mine, alone_outer), *((n, alone_inner) for n in nested)]:
                field = next(name for name in ("scores", "totals", "metric", "values") if hasattr(expected, name))
                np.testing.assert_allclose(getattr(found, field), getattr(expected, field), rtol=1e-6, atol=1e-6)


def test_a_users_steering_vector_gets_no_gradient():
    """A hook adds a tensor that requires a gradient: it takes effect, and its .grad stays as it is."""
    model, task = tiny.model("llama"), tiny.task(n=2)
    subject, vector = open_model(model), torch.ones(24, dtype=torch.float64, requires_grad=True)
    handle = Parts(model).embedding.register_forward_hook(lambda _m, _a, y: y + vector)
    steered = {call: CALLS[call](subject, task) for call in CALLS if call != "describe"}
    assert vector.grad is None
    handle.remove()
    fixed = Parts(model).embedding.register_forward_hook(lambda _m, _a, y: y + vector.detach())
    for call, found in steered.items():
        expected = CALLS[call](subject, task)
        field = next(name for name in ("scores", "totals", "metric", "values") if hasattr(expected, name))
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), rtol=1e-6, atol=1e-7)
    fixed.remove()


def test_a_hook_that_cuts_every_gradient_is_an_error_not_a_zero():
    """Nothing was measured, so nothing is reported."""
    model = tiny.model("llama")
    model.get_output_embeddings().register_forward_hook(lambda _m, _a, y: y.detach())
    for method in ("eap", "atp", "relp", "weight_gradient", "ig_activations", "eap_ig"):
        with pytest.raises(MeasurementError, match="gradient"):
            open_model(model).attribute(tiny.task(n=1), method)


@pytest.mark.parametrize("name", NAMES)
def test_config_flags_of_the_user_do_not_matter(name):
    """Hidden states or a cache asked for: as before, with the same numbers."""
    task, expected = tiny.task(n=2), open_model(tiny.model(name)).attribute(tiny.task(n=2)).scores
    model = tiny.model(name)
    model.config.output_hidden_states = True
    model.config.use_cache = True
    assert np.array_equal(open_model(model).attribute(task).scores, expected)
    assert model.config.output_hidden_states and model.config.use_cache


def test_weights_changed_between_two_calls_count():
    """A model that is trained on, or operated on, while a subject of it is open: scores and fingerprint are those of now."""
    model, task = tiny.model("llama"), tiny.task(n=2)
    subject = open_model(model)
    for method in ("eap", "relp", "eap_ig"):
        subject.attribute(task, method)
    first = subject.fingerprint
    with torch.no_grad():
        for norm in (*Parts(model).norm1, *Parts(model).norm2, Parts(model).final_norm):
            norm.weight.mul_(torch.linspace(0.5, 2, 24))
    for method in ("eap", "relp", "eap_ig"):
        assert np.array_equal(subject.attribute(task, method).scores, open_model(model).attribute(task, method).scores)
    assert subject.fingerprint != first and subject.fingerprint == open_model(model).fingerprint


def test_models_that_differ_in_their_config_alone_have_different_fingerprints():
    """The same weights with another rotary base, activation or window are another model."""
    first = open_model(tiny.model("mistral")).fingerprint
    assert open_model(tiny.model("mistral")).fingerprint == first
    for change in ({"sliding_window": 3}, {"hidden_act": "gelu"}, {"rms_norm_eps": 1e-3}):
        assert open_model(tiny.model("mistral", **change)).fingerprint != first
    moved = tiny.model("mistral")
    moved.config._name_or_path = "elsewhere"
    assert open_model(moved).fingerprint == first


def test_models_in_memory_are_told_apart_by_hooks_buffers_and_attributes():
    """Weights and config alone would give one model's measurements to another."""
    from pytest_circuits.model.loading import behaviour_digest

    same, other = tiny.model("llama"), tiny.model("llama")
    plain = behaviour_digest(same)
    assert behaviour_digest(other) == plain
    other.model.layers[0].self_attn.scaling *= 2
    assert behaviour_digest(other) != plain
    other = tiny.model("llama")
    other.model.rotary_emb.inv_freq *= 2
    assert behaviour_digest(other) != plain
    handle = same.model.layers[1].register_forward_hook(lambda *_: None)
    assert behaviour_digest(same) != plain
    handle.remove()
    assert behaviour_digest(same) == plain


def test_an_enclosing_autocast_changes_nothing():
    subject = open_model(tiny.model("llama", dtype=torch.float32))
    task = tiny.task()
    expected = subject.attribute(task, "atp").scores
    with torch.autocast("cpu", torch.bfloat16):
        assert np.array_equal(subject.attribute(task, "atp").scores, expected)


@pytest.mark.parametrize("examples", [[True, False], np.array([True, False]), [0.7], ["0"], [None]], ids=str)
def test_examples_are_numbers_not_masks(examples):
    with pytest.raises(OptionError, match="selected by number"):
        open_model(tiny.model("llama")).attribute(tiny.task(), "atp", examples=examples)
