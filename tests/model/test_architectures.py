"""What single architectures ask for: soft caps, mixtures of experts, tied weights, and what is refused with its reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pytest_circuits import open_model
from pytest_circuits.attribution.relp import relp_rules
from pytest_circuits.errors import ModelError, OptionError
from pytest_circuits.inspection.locate import anatomy_of
from pytest_circuits.model.hooks import Hooks, measuring
from tests.fakes import tiny
from tests.fakes.node_oracle import paired, slopes
from tests.fakes.plain_hooks import Parts, operated, outcomes, same


def paired_slopes(model, pair) -> np.ndarray:
    """d/dε of the metric as each component moves towards its corrupt output."""
    return slopes(model, pair, "logit_diff", "component", paired(model, pair))


def saved(model, folder) -> Path:
    model.save_pretrained(folder)
    return folder


def test_gemma_2_is_opened_with_the_attention_that_caps_scores(tmp_path):
    """Whatever the default of transformers is; without a cap any attention will do."""
    folder = saved(tiny.model("gemma2", dtype=torch.float32), tmp_path / "capped")
    subject = open_model(folder)
    assert subject.model.config._attn_implementation == "eager"
    assert subject.anatomy.softcap == 6.0
    truth = tiny.model("gemma2", dtype=torch.float32)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        assert torch.equal(subject.model(input_ids=ids).logits, truth(input_ids=ids).logits)
        truth.model.layers[0].self_attn.attn_logit_softcapping = None
        assert not torch.allclose(subject.model(input_ids=ids).logits, truth(input_ids=ids).logits)


def test_a_model_in_memory_whose_attention_leaves_the_cap_out_is_refused():
    """With what to do; after doing it the model opens."""
    model = tiny.model("gemma2", dtype=torch.float32)
    model.config._attn_implementation = "sdpa"
    with pytest.raises(ModelError, match=r"caps its attention scores at 2.*'sdpa'.*attn_implementation='eager'"):
        open_model(model, check=False)
    model.config._attn_implementation = "eager"
    open_model(model)
    uncapped = tiny.model("gemma2", dtype=torch.float32, attn_logit_softcapping=None)
    uncapped.config._attn_implementation = "sdpa"
    open_model(uncapped)


def test_relevance_is_conserved_through_a_saturated_soft_cap():
    """z·sg(cap(z)/z) where the slope of the cap is zero to the last bit; plain gradients vanish there."""
    model = tiny.model("gemma2", dtype=torch.float32)
    with torch.no_grad():
        model.lm_head.weight.mul_(50)
    kept = []
    with measuring(model), torch.enable_grad(), Hooks() as taps:
        model.model.embed_tokens.register_forward_hook(lambda _m, _a, y: y.detach().requires_grad_())
        relp_rules(anatomy_of(model), taps)
        model.model.norm.register_forward_hook(lambda _m, _a, y: kept.append(y))
        logits = model(input_ids=torch.tensor([[3, 1, 4]]), use_cache=False).logits[0, -1]
    assert float(logits.detach().abs().max()) == 6.0
    f = logits.max() - logits.min()
    (g,) = torch.autograd.grad(f, kept[0])
    assert float((g * kept[0]).sum().detach()) == pytest.approx(float(f.detach()), rel=1e-5) and float(f.detach()) == 12.0


@pytest.mark.parametrize("change", [{}, {"mlp_only_layers": [1]}, {"norm_topk_prob": True}])
def test_heads_and_mlps_of_a_mixture_of_experts_equal_weight_surgery(change):
    """An MLP is the output of all its experts; some layers may be dense."""
    model, task = tiny.model("qwen3_moe", **change), tiny.task(n=3)
    parts, subject = Parts(model), open_model(model)
    assert subject.anatomy.universe.neurons == 0
    for names in (["L0MLP"], ["L1MLP"], ["L2H3"], ["L0H1", "L1MLP", "L2MLP", "L2H0"], parts.names):
        same(subject.ablate(task, remove=names), outcomes(operated(model, names), task), 1e-6)
    swept = subject.sweep(task)
    np.testing.assert_allclose(swept.metric, subject.ablate_many(task, [[u] for u in swept.units]).metric.T, rtol=1e-6, atol=1e-6)


def test_attribution_of_a_mixture_of_experts_is_the_derivative():
    """Every component, by central differences in float64."""
    model, task = tiny.model("qwen3_moe"), tiny.task(n=2)
    found = open_model(model).attribute(task, "atp")
    for row, pair in enumerate(task):
        np.testing.assert_allclose(found.scores[row], paired_slopes(model, pair), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("site", ["mlp_activation", "mlp_output"])
def test_neurons_of_a_mixture_of_experts_are_refused_with_the_reason(site):
    """In attribution and ablation; relp and weight gradients too."""
    subject, task = open_model(tiny.model("qwen3_moe", dtype=torch.float32)), tiny.task(n=2)
    calls = (
        lambda: subject.attribute(task, "atp", level="neuron", site=site),
        lambda: subject.ablate(task, keep=[], level="neuron", site=site),
        lambda: subject.attribute(task, "relp"),
        lambda: subject.attribute(task, "weight_gradient"),
    )
    for call in calls:
        with pytest.raises(OptionError, match=r"qwen3_moe.*mixtures of experts.*level: component"):
            call()


def test_a_mixture_of_experts_can_be_opened_in_float64(tmp_path):
    """Grouped matrix products have no float64: the experts run one by one, with the same logits."""
    folder = saved(tiny.model("qwen3_moe", dtype=torch.float32), tmp_path / "experts")
    ids = torch.tensor([[3, 1, 4]])
    with torch.no_grad():
        wide, narrow = (open_model(folder, dtype=d).model(input_ids=ids).logits for d in ("float64", "float32"))
    torch.testing.assert_close(wide.float(), narrow, rtol=1e-4, atol=1e-4)


def test_relp_is_refused_where_no_module_applies_the_activation():
    """A probed model whose MLP calls a function."""
    model = tiny.model("llama", dtype=torch.float32)
    anatomy = anatomy_of(model)
    subject = open_model(model)
    object.__setattr__(subject._runner, "anatomy", type(anatomy)(**{**vars(anatomy), "blocks": tuple(_without_activation(anatomy))}))
    with pytest.raises(OptionError, match="no module applies the MLP's activation"):
        subject.attribute(tiny.task(n=1), "relp")
    assert subject.attribute(tiny.task(n=1), "atp").scores.any()


def _without_activation(anatomy):
    return (type(b)(**{**vars(b), "activation": None}) for b in anatomy.blocks)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gemma3", "olmo2", "gpt2"])
def test_tied_embeddings_do_not_matter(name):
    """Heads and MLPs equal surgery, atp equals differences, relp's neurons add up."""
    model, task = tiny.model(name, tie_word_embeddings=True), tiny.task(n=2)
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    subject = open_model(model)
    for names in (["L0H1"], ["L1MLP", "L2H3"]):
        same(subject.ablate(task, remove=names), outcomes(operated(model, names), task), 1e-6)
    found = subject.attribute(task, "atp")
    for row, pair in enumerate(task):
        np.testing.assert_allclose(found.scores[row], paired_slopes(model, pair), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gemma2", "gemma3", "olmo2", "phi3", "qwen3_moe"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_scores_are_near_those_of_float64(name, dtype):
    """The same weights, rounded."""
    half = tiny.model(name, dtype=dtype)
    exact = tiny.model(name)
    exact.load_state_dict({k: v.double() for k, v in half.state_dict().items()})
    task = tiny.task(n=3)
    one, other = (open_model(m).attribute(task).scores for m in (half, exact))
    assert one.dtype == np.float32
    assert np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.98
    np.testing.assert_allclose(one, other, atol=0.15 * other.max())
