"""What an attribution costs: passes of one prompt, counted by an independent hook, whatever the batches."""

from __future__ import annotations

import pytest

from pytest_circuits import open_model
from tests.fakes import tiny

LAYERS = 3
# forward and backward passes of an example: the clean prompt with its gradient, and the corrupt one where there is one
PLAIN = {
    "atp": ({}, 2, 1),
    "relp": ({}, 2, 1),
    "relp without a pair": ({"unpaired": True}, 1, 1),
    "gradient": ({}, 1, 1),
}
# from layer l on a pass goes through 3 − l of 3 layers
SHARES = 3 / 3 + 2 / 3 + 1 / 3


def passes(name: str, options: dict, batch_size: int | None = None, level: str = "neuron", n: int = 5) -> dict[str, float]:
    subject = open_model(tiny.model("llama"))
    return subject.attribute(tiny.task(n), method=name.split()[0], level=level, batch_size=batch_size, **options).details["passes"]


@pytest.mark.parametrize("name", PLAIN)
def test_gradient_methods_take_a_pass_or_two(name):
    options, forwards, backwards = PLAIN[name]
    assert passes(name, options) == {"forwards": forwards, "backwards": backwards}


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("unpaired", [False, True])
def test_integrated_gradients_take_their_steps_in_the_layers_above_each_site(steps, unpaired):
    """And before: the activations (clean, corrupt unless unpaired), and the streams that layers below start from."""
    found = passes("ig_activations", {"steps": steps, "unpaired": unpaired})
    assert found["forwards"] == pytest.approx((2 if unpaired else 3) + steps * SHARES, abs=1e-5)
    assert found["backwards"] == pytest.approx(steps * SHARES, abs=1e-5)


@pytest.mark.parametrize(("name", "options"), [("relp", {}), ("ig_activations", {"steps": 3})])
def test_passes_do_not_depend_on_the_batch_size(name, options):
    assert passes(name, options, batch_size=1) == passes(name, options, batch_size=2) == passes(name, options)


def test_passes_are_what_a_hook_of_each_layer_counts():
    """Each layer's own module is counted as often as prompts go through it, by a patch that the engine knows nothing of."""
    made = tiny.model("llama")
    subject, task = open_model(made), tiny.task(5)
    layers, rows = made.model.layers, [0] * LAYERS
    kind = type(layers[0])
    original = kind.forward

    def counting(self, hidden_states, *args, **kwargs):
        rows[next(i for i, layer in enumerate(layers) if layer is self)] += len(hidden_states)
        return original(self, hidden_states, *args, **kwargs)

    kind.forward = counting
    try:
        found = subject.attribute(task, method="ig_activations", level="neuron", steps=2).details["passes"]
    finally:
        kind.forward = original
    assert found["forwards"] == pytest.approx(sum(rows) / LAYERS / 5, abs=1e-5)


def test_after_a_sweep_that_skips_layers_whole_passes_count_as_whole():
    subject, task = open_model(tiny.model("llama")), tiny.task(5)
    before = subject.attribute(task, method="relp").details["passes"]
    exact = subject.attribute(task, method="exact").details["passes"]
    assert exact["backwards"] == 0 and exact["forwards"] > 2
    assert subject.attribute(task, method="relp").details["passes"] == before == {"forwards": 2, "backwards": 1}
