"""The published hook, written out on the bare model: it is reproduced, and it is not head ablation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.errors import OptionError
from tests.fakes import tiny
from tests.fakes.plain_hooks import Parts, as_ids, metric, prompts, record

FITTING = ("llama", "mistral", "qwen2", "olmo2", "gpt2", "gpt_neox", "gpt_neox-serial")
REFERENCE = [0, 2, 3]


def by_hand(model, task, names, reference):
    """Metrics with plain forward hooks on the projections; means over the reference prompts' positions."""
    parts = Parts(model)
    seen = [record(model, prompts(task.pairs[i])[0]) for i in reference]
    means = {key: torch.cat([r[key][0] for r in seen]).mean(0) for key in seen[0]}
    handles = []
    for name in names:
        layer = int(name[1])

        def overwrite(_module, _args, y, name=name, layer=layer):
            if name.endswith("MLP"):
                return means["mlp", layer].expand_as(y)
            start = int(name.split("H")[1]) * parts.hd
            y = y.clone()
            y[..., start : start + parts.hd] = means["z", layer][start : start + parts.hd]
            return y

        handles.append((parts.down if name.endswith("MLP") else parts.o)[layer].register_forward_hook(overwrite))
    with torch.no_grad():
        found = [float(metric("logit_diff", model(input_ids=as_ids(prompts(p)[0])).logits[0], p)) for p in task]
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize("name", FITTING)
def test_ablate_and_sweep_do_what_the_published_hook_does(name):
    """Single units and a set with several heads of a layer and MLPs; stacked, in batches of any size."""
    model, task = tiny.model(name), tiny.task(n=4, tokens=2)
    subject = open_model(model)
    sets = [["L0H1"], ["L2MLP"], ["L1H0", "L1H3", "L1MLP", "L2H2"]]
    found = subject.ablate_many(task, sets, kind="residual_slice", reference=REFERENCE, batch_size=7)
    for row, names in zip(found.metric, sets, strict=True):
        np.testing.assert_allclose(row, by_hand(model, task, names, REFERENCE), rtol=1e-5, atol=1e-5)
    swept = subject.sweep(task, kind="residual_slice", reference=REFERENCE)
    for column, unit in enumerate(swept.units):
        if unit in ("L0H1", "L0MLP", "L1H0", "L2H3"):
            np.testing.assert_allclose(swept.metric[:, column], by_hand(model, task, [unit], REFERENCE), rtol=1e-5, atol=1e-5)


def test_it_is_mean_ablation_for_mlps_and_something_else_for_heads():
    """The very same numbers for MLPs; other ones for each head."""
    subject, task = open_model(tiny.model("gpt2")), tiny.task(n=6)
    slices, means = subject.sweep(task, kind="residual_slice"), subject.sweep(task, kind="mean")
    for column, unit in enumerate(slices.units):
        close = np.allclose(slices.metric[:, column], means.metric[:, column], rtol=1e-4, atol=1e-4)
        assert close == unit.endswith("MLP"), unit


def test_a_head_that_writes_nothing_still_seems_to_matter():
    """Why it is not head ablation: with its rows of the projection at zero, a head cannot have an effect."""
    model, task = tiny.model("llama"), tiny.task(n=4)
    parts = Parts(model)
    parts.zero_inputs(parts.o[1], parts.hd, 2 * parts.hd)
    subject = open_model(model)
    intact = subject.ablate(task, remove=[]).metric
    np.testing.assert_allclose(subject.ablate(task, remove=["L1H1"], kind="mean").metric, intact, rtol=1e-6)
    assert (np.abs(subject.ablate(task, remove=["L1H1"], kind="residual_slice").metric - intact) > 1e-3).any()


def test_keeping_overwrites_all_other_slices():
    """keep is the complement of remove."""
    subject, task = open_model(tiny.model("llama")), tiny.task(n=4)
    names = subject.anatomy.universe.component_names
    kept = subject.ablate(task, keep=names[3:7], kind="residual_slice")
    removed = subject.ablate(task, remove=[*names[:3], *names[7:]], kind="residual_slice")
    assert np.array_equal(kept.metric, removed.metric)


@pytest.mark.parametrize(("name", "sizes"), [("qwen3", "4 · 8 = 32"), ("llama-wide", "4 · 10 = 40"), ("gemma2", "4 · 8 = 32")])
def test_where_heads_are_no_slices_of_the_stream_it_is_refused(name, sizes):
    """With the arithmetic."""
    subject, task = open_model(tiny.model(name)), tiny.task(n=2)
    for call in (lambda: subject.sweep(task, "residual_slice"), lambda: subject.ablate(task, remove=["L0H0"], kind="residual_slice")):
        with pytest.raises(OptionError, match=f"d_model 24 but {sizes}; use mean"):
            call()


@pytest.mark.parametrize(("unit", "level"), [("L0N1", "neuron"), ("L0H0->L1.MLP", "edge")])
def test_it_is_for_components(unit, level):
    """Neurons and edges have no slice."""
    with pytest.raises(OptionError, match=f"residual_slice ablation does not work at level '{level}'"):
        open_model(tiny.model("llama")).ablate(tiny.task(n=2), remove=[unit], kind="residual_slice", level=level)
