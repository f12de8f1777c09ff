"""The last positions are copied before the unembedding: torch multiplies a slice by a frozen matrix prompt by prompt, much slower."""

from __future__ import annotations

import pytest
import torch

from pytest_circuits import open_model
from tests.fakes import tiny

RUNS = {
    "attribute": lambda s, k: s.attribute(k, "eap", batch_size=4),
    "ablate": lambda s, k: s.ablate(k, remove=["L0H1"], batch_size=4),
    "sweep": lambda s, k: s.sweep(k, batch_size=4),
}


def _seen(model: torch.nn.Module) -> list[tuple[bool, int]]:
    """Fills with (contiguous, positions) of the unembedding's input as a module behind all hooks gets it."""
    found: list[tuple[bool, int]] = []
    unembedding = model.get_output_embeddings()
    original = unembedding.forward
    unembedding.forward = lambda x: (found.append((x.is_contiguous(), x.shape[1])), original(x))[1]
    return found


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
@pytest.mark.parametrize("run", RUNS)
def test_the_unembedding_gets_a_contiguous_tail(family, run):
    model = tiny.model(family)
    subject = open_model(model)
    task = tiny.task(n=4)
    seen = _seen(model)
    RUNS[run](subject, task)
    assert seen and all(contiguous for contiguous, _ in seen)
    assert {positions for _, positions in seen} <= {1, 2}, "logits are computed at the answer only"


def test_a_slice_is_not_contiguous_without_our_copy():
    """The premise: the bare model does hand a slice to its unembedding."""
    model = tiny.model("llama")
    seen = _seen(model)
    with torch.no_grad():
        model(input_ids=torch.ones(4, 6, dtype=torch.long), logits_to_keep=1)
    assert seen == [(False, 1)]


def test_nothing_of_it_stays_on_the_unembedding_also_after_an_error():
    model = tiny.model("llama")
    subject = open_model(model)
    unembedding = model.get_output_embeddings()

    def broken(_module: torch.nn.Module, _args: object) -> None:
        raise RuntimeError("from a hook of the user's")

    handle = unembedding.register_forward_pre_hook(broken)
    with pytest.raises(RuntimeError, match="hook of the user's"):
        subject.attribute(tiny.task(n=2), "atp")
    handle.remove()
    assert not unembedding._forward_pre_hooks
