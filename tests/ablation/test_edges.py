"""Edge ablation against one-prompt runs written by hand, against removing nodes, and against weight surgery."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pytest_circuits import open_model
from pytest_circuits.ablation import ABLATIONS
from pytest_circuits.ablation.kind import AblationContext
from pytest_circuits.ablation.sets import sets_of
from pytest_circuits.errors import OptionError, UnitError
from pytest_circuits.model.batches import batches
from pytest_circuits.model.hooks import measuring
from tests.fakes import tiny
from tests.fakes.plain_edges import EdgeRun, edge_names, zeros
from tests.fakes.plain_hooks import NAMES, WITH_EXPERTS, Parts, logits_of, metric, operated, outcomes, prompts, record, same

every_architecture = pytest.mark.parametrize("name", WITH_EXPERTS)
PRE_NORM = [n for n in WITH_EXPERTS if n not in ("gemma2", "gemma3", "olmo2")]
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would run the model for minutes
few = settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)


@cache
def opened(name: str, seed: int = 0):
    """A float64 model, opened once."""
    return open_model(tiny.model(name, seed=seed))


def double(subject, task, sets, kind="zero", level="edge", mode="remove") -> torch.Tensor:
    """The engine's metric in float64 (public arrays are float32); [sets, examples]."""
    encoded, runner = subject.encode(task), subject._runner
    chosen = sets_of(runner, encoded, sets, mode, level, "mlp_activation", None)
    out = torch.zeros(len(sets), len(task), dtype=torch.float64)
    with measuring(subject.model):
        values = ABLATIONS.get(kind)().prepare(AblationContext(runner, encoded, chosen.sites, None, None, None))
        for batch in batches(encoded, 8, runner.device, runner.vocabulary):
            logits = chosen.logits(batch, range(len(sets)), values(batch)).unflatten(0, (len(sets), -1))
            for s in range(len(sets)):
                for i, row in enumerate(batch.rows):
                    pair = task.pairs[int(row)]
                    padded = torch.cat([torch.zeros(batch.start, logits.shape[-1], dtype=logits.dtype), logits[s, i]])
                    out[s, int(row)] = metric("logit_diff", padded, pair)
    return out


def oracle(model, task, edges, values_of) -> np.ndarray:
    return np.array([float(metric("logit_diff", EdgeRun(model, edges, values_of(p)).logits(prompts(p)[0]), p)) for p in task])


def some_sets(parts: Parts, seed: int) -> list[list[str]]:
    """One edge of every kind of reader, and joint sets small and large."""
    r, every = random.Random(seed), edge_names(parts)
    kinds = [[e for e in every if e.endswith(tail)] for tail in (".q", ".k", ".v", "MLP", "logits")]
    return [[r.choice(k)] for k in kinds] + [r.sample(every, n) for n in (3, 20, len(every) - 4)]


@every_architecture
def test_zeroed_edges_are_those_of_a_run_by_hand(name):
    """Many different sets stacked; grouped queries, fused projections, biases, post-norms, parallel blocks."""
    subject, task = opened(name), tiny.task(n=2, tokens=2)
    sets = some_sets(Parts(subject.model), 1)
    found = double(subject, task, sets)
    intact = [float(metric("logit_diff", logits_of(subject.model, prompts(p)[0])[0], p)) for p in task]
    for edges, row in zip(sets, found, strict=True):
        expected = oracle(subject.model, task, edges, lambda p: zeros(subject.model, prompts(p)[0]))
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)
        assert len(edges) == 1 or not np.allclose(row, intact)


@every_architecture
def test_edges_from_the_corrupt_run_are_those_of_a_run_by_hand(name):
    """A reader sees the source's corrupt value in place of its current one, which other removed edges have changed."""
    subject, task = opened(name), tiny.task(n=2)
    sets = some_sets(Parts(subject.model), 2)
    found = double(subject, task, sets, "counterfactual")
    for edges, row in zip(sets, found, strict=True):
        expected = oracle(subject.model, task, edges, lambda p: record(subject.model, prompts(p)[1], ("z", "mlp")))
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox", "gemma2"])
def test_mean_and_resample_take_the_values_of_the_same_ablation_of_nodes(name):
    """The pooled mean over the task; a donor's values (found among all donors)."""
    subject, task = opened(name), tiny.task(n=4)
    seen = [record(subject.model, p.clean, ("z", "mlp")) for p in task]
    mean = {key: torch.cat([r[key][0] for r in seen]).mean(0) for key in seen[0]}
    edges = some_sets(Parts(subject.model), 3)[-2]
    found = subject.ablate(task, remove=edges, kind="mean")
    np.testing.assert_allclose(found.metric, oracle(subject.model, task, edges, lambda _: mean), rtol=1e-5, atol=1e-5)
    resampled = subject.ablate(task, remove=edges, kind="resample", seed=5).metric
    for i, pair in enumerate(task):
        donors = [j for j, p in enumerate(task) if j != i and len(p.clean) == len(pair.clean)]
        near = [float(metric("logit_diff", EdgeRun(subject.model, edges, seen[j]).logits(pair.clean), pair)) for j in donors]
        assert min(abs(x - resampled[i]) for x in near) < 1e-4


@pytest.mark.parametrize("name", PRE_NORM)
@pytest.mark.parametrize("kind", ["zero", "counterfactual"])
def test_removing_all_outgoing_edges_is_removing_the_node(name, kind):
    """Every component, and joint sets of components: in float64, the same logits along a different way."""
    subject, task = opened(name), tiny.task(n=2)
    edges, names = subject.anatomy.universe.edges, Parts(subject.model).names
    nodes = [[n] for n in names] + [["L0H1", "L1MLP", "L1H2"], names]
    whole = double(subject, task, nodes, kind, "component")
    cut = double(subject, task, [[e for n in s for e in edges.outgoing(n)] for s in nodes], kind)
    np.testing.assert_allclose(cut, whole, rtol=1e-9, atol=1e-9)
    assert not np.allclose(whole[:-1], whole[-1:])


@pytest.mark.parametrize("name", PRE_NORM)
def test_removing_all_outgoing_edges_equals_weight_surgery(name):
    """The oracle that shares no code with hooks."""
    subject, task = opened(name), tiny.task(n=3, tokens=2)
    for node in ("L0H1", "L1MLP", "L2H3") if name != "qwen3_moe" else ("L0H1", "L2H3"):
        found = subject.ablate(task, remove=subject.anatomy.universe.edges.outgoing(node))
        same(found, outcomes(operated(subject.model, [node]), task), 1e-5)


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "olmo2"])
def test_a_post_norm_keeps_its_scale_when_edges_are_removed(name):
    """That is where all edges and the node itself differ: without the node, the norm of what is left has another scale."""
    subject, task = opened(name), tiny.task(n=2)
    edges = subject.anatomy.universe.edges
    cut, whole = (double(subject, task, [s], level=lv) for s, lv in ((edges.outgoing("L1H2"), "edge"), (["L1H2"], "component")))
    assert not np.allclose(cut, whole)
    everything = [e for h in range(4) for e in edges.outgoing(f"L1H{h}")]
    np.testing.assert_allclose(  # a sublayer without output bias that is gone as a whole leaves no scale to differ in
        double(subject, task, [everything]), double(subject, task, [[f"L1H{h}" for h in range(4)]], level="component"), atol=1e-9
    )


@every_architecture
def test_keeping_and_removing_everything(name):
    """keep(all) and remove(nothing) are the intact model bit for bit; keep(nothing) is remove(all)."""
    subject, task = opened(name), tiny.task(n=3)
    every = edge_names(Parts(subject.model))
    intact = [float(np.float32(metric("logit_diff", logits_of(subject.model, p.clean)[0], p))) for p in task]
    for found in (subject.ablate(task, keep=every), subject.ablate(task, remove=[], level="edge")):
        assert found.metric.tolist() == found.baseline.metric.tolist()
        np.testing.assert_allclose(found.metric, intact, rtol=1e-6)
    nothing, removed = subject.ablate(task, keep=[], level="edge"), subject.ablate(task, remove=every)
    assert nothing.metric.tolist() == removed.metric.tolist() and not np.allclose(nothing.metric, intact)
    if name in PRE_NORM:
        np.testing.assert_allclose(nothing.metric, subject.ablate(task, keep=[]).metric, rtol=1e-5, atol=1e-5)


@few
@given(st.sampled_from(["llama", "gpt2", "gpt_neox", "olmo2"]), st.sampled_from(["zero", "counterfactual", "mean"]), st.data())
def test_keeping_is_removing_the_complement(name, kind, data):
    """Bit for bit, whatever the set."""
    subject, task = opened(name), tiny.task(n=2)
    every = edge_names(Parts(subject.model))
    kept = data.draw(st.sets(st.sampled_from(every)))
    one = subject.ablate(task, keep=kept, kind=kind, level="edge")
    other = subject.ablate(task, remove=[e for e in every if e not in kept], kind=kind, level="edge")
    assert one.metric.tolist() == other.metric.tolist() and one.correct.tolist() == other.correct.tolist()


@few
@given(st.sampled_from(["llama", "phi3", "gpt_neox"]), st.integers(1, 5), st.integers(0, 10**6))
def test_stacks_and_batches_change_nothing(name, batch_size, seed):
    """A set's outcome does not depend on the other sets, on companions or on the batch size."""
    subject, task = opened(name), tiny.task(n=4)
    sets = some_sets(Parts(subject.model), seed)
    together = subject.ablate_many(task, sets, kind="counterfactual", level="edge")
    apart = subject.ablate_many(task, sets[3:5], kind="counterfactual", level="edge", batch_size=batch_size, examples=[3, 0])
    np.testing.assert_allclose(apart.metric, together.metric[3:5][:, [3, 0]], rtol=1e-5, atol=1e-6)


def test_sets_that_leave_a_reader_alone_leave_it_alone_bit_for_bit():
    """A set stacked on others in which the last reader's edges go: a set without edges has the intact logits."""
    subject, task = open_model(tiny.model("llama", dtype=torch.float32)), tiny.task(n=2)
    encoded, runner = subject.encode(task), subject._runner
    chosen = sets_of(runner, encoded, [["L0H1->L2H3.q"], [], ["L2MLP->logits", "L0MLP->L1KV0.v"]], "remove", "edge", "mlp_activation", None)
    with measuring(subject.model), torch.no_grad():
        values = ABLATIONS.get("zero")().prepare(AblationContext(runner, encoded, chosen.sites, None, None, None))
        for batch in batches(encoded, 8, runner.device, runner.vocabulary):
            logits = chosen.logits(batch, range(3), values(batch))
            plain = runner.logits(batch.clean.repeat(3, 1), batch.tail)
            assert torch.equal(logits[len(batch) : 2 * len(batch)], plain[len(batch) : 2 * len(batch)])
            assert not torch.equal(logits, plain)


def test_an_edge_from_a_component_that_writes_nothing_changes_nothing():
    """Its contribution is zero in every run."""
    twin = operated(tiny.model("llama"), ["L1H2"])
    subject, task = open_model(twin), tiny.task(n=2)
    found = subject.ablate(task, remove=subject.anatomy.universe.edges.outgoing("L1H2"), kind="counterfactual")
    np.testing.assert_allclose(found.metric, found.baseline.metric, rtol=1e-6)


def test_the_users_hooks_count_in_what_readers_see():
    """A hook that shifts a norm's output, one that shifts a projection's: both act on the readers of removed edges too."""
    model, task = tiny.model("llama"), tiny.task(n=2)
    subject, parts = open_model(model), Parts(model)
    edges = ["L0H1->L1H2.q", "L0MLP->L1MLP"]
    before = subject.ablate(task, remove=edges).metric
    shift = torch.linspace(-1, 1, 24, dtype=torch.float64)
    handles = [
        parts.norm1[1].register_forward_hook(lambda _m, _a, y: y + shift),
        parts.attn[1].q_proj.register_forward_hook(lambda _m, _a, y: 0.5 * y),
    ]
    hooked = subject.ablate(task, remove=edges).metric
    for handle in handles:
        handle.remove()
    shifted = tiny.model("llama", attention_bias=True)
    with torch.no_grad():
        shifted.load_state_dict(model.state_dict(), strict=False)
        for layer in range(3):
            for which in "qkvo":
                getattr(Parts(shifted).attn[layer], f"{which}_proj").bias.zero_()
        attn = Parts(shifted).attn[1]
        for which in "qkv":
            getattr(attn, f"{which}_proj").bias.copy_(getattr(attn, f"{which}_proj").weight @ shift)
        attn.q_proj.weight.mul_(0.5)
        attn.q_proj.bias.mul_(0.5)
    np.testing.assert_allclose(hooked, open_model(shifted).ablate(task, remove=edges).metric, rtol=1e-5, atol=1e-6)
    assert not np.allclose(hooked, before)


def test_removing_edges_leaves_no_trace():
    """Logits before and after are the same, and no hook of ours is left."""
    model, task = tiny.model("qwen3", dtype=torch.float32), tiny.task(n=2)
    before = logits_of(model, task.pairs[0].clean)
    open_model(model).ablate(task, remove=["L0H1->L2H3.q"], kind="mean")
    assert torch.equal(logits_of(model, task.pairs[0].clean), before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_near_float32(dtype):
    """Contributions are exchanged in float32."""
    model, task = tiny.model("llama", dtype=torch.float32), tiny.task(n=4)
    sets = some_sets(Parts(model), 4)
    exact = open_model(model).ablate_many(task, sets, level="edge").metric
    rough = open_model(model.to(dtype)).ablate_many(task, sets, level="edge").metric
    assert np.abs(rough - exact).max() < 0.1 * np.abs(exact).max()


def test_levels_and_positions_that_do_not_fit_are_refused():
    """Edges among components, components among edges, an edge with a position."""
    subject, task = opened("llama"), tiny.task(n=2)
    with pytest.raises(UnitError, match="is an edge, not a component"):
        subject.ablate(task, remove=["L0H1", "L0H1->L1MLP"])
    with pytest.raises(UnitError, match="not an edge name"):
        subject.ablate(task, remove=["L0H1->L1MLP", "L0H1"])
    with pytest.raises(UnitError, match="edges have no positions"):
        subject.ablate(task, remove=["L0H1->L1MLP@-1"])
    with pytest.raises(OptionError, match="unknown mode"):
        subject.ablate_many(task, [["L0H1->L1MLP"]], mode="drop", level="edge")


def test_names_agree_with_the_definition():
    """In the order of the definition, for every architecture."""
    for name in NAMES:
        subject = opened(name)
        assert list(subject.anatomy.universe.names("edge")) == edge_names(Parts(subject.model))
