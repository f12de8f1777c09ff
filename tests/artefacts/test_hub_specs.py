"""Specs of the papers' own models, without their weights: true architectures are understood, random small ones are measured."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_circuits.spec.load import load_suite
from tests.paths import ROOT
from tests.waiting import HANG

pytestmark = pytest.mark.extensive

HUB = ROOT / "specs" / "hub"
SPECS = sorted(HUB.glob("*.circuits.yaml"))
TOKENIZER = ROOT / "tests" / "data" / "gpt2-bpe" / "tokenizer.json.gz"
NARROWER = 32
"""Divides every width of the small models: a head of Llama has 4 dimensions instead of 128."""

LLAMA3_ROPE = {
    "rope_theta": 500000.0,
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
GEMMA = {
    "class": "Gemma2Config", "vocab_size": 256000, "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
    "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216, "query_pre_attn_scalar": 256, "sliding_window": 4096,
    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": True,
}  # fmt: skip
LLAMA_3B = {
    "class": "LlamaConfig", "vocab_size": 128256, "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 24,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
    "rope_parameters": {**LLAMA3_ROPE, "factor": 32.0}, "max_position_embeddings": 131072,
}  # fmt: skip
LLAMA_8B = {
    **LLAMA_3B, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 14336,
    "tie_word_embeddings": False, "rope_parameters": {**LLAMA3_ROPE, "factor": 8.0},
}  # fmt: skip
QWEN_4B = {
    "class": "Qwen3Config", "vocab_size": 151936, "hidden_size": 2560, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9728, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
}  # fmt: skip
QWEN_8B = {**QWEN_4B, "hidden_size": 4096, "intermediate_size": 12288, "tie_word_embeddings": False}
OLMO = {
    "class": "Olmo2Config", "vocab_size": 100352, "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
    "num_key_value_heads": 16, "intermediate_size": 8192, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
}  # fmt: skip

# model of the specs: its configuration, published number of parameters, N = L(H + 1)
MODELS = {
    "gemma-2-2b": (GEMMA, 2_614_341_888, 234),
    "llama-3.2-3b": (LLAMA_3B, 3_212_749_824, 700),
    "qwen3-4b": (QWEN_4B, 4_022_468_096, 1188),
    "qwen3-8b": (QWEN_8B, 8_190_735_360, 1188),
    "olmo2-1b": (OLMO, 1_484_916_736, 272),
    "llama-3.1-8b-instruct": (LLAMA_8B, 8_030_261_248, 1056),
}
ALIKE = {"gemma-2-2b-it": "gemma-2-2b", "llama-3.2-3b-instruct": "llama-3.2-3b"}  # the same architecture, trained further


def config(given: dict, **changes):
    import transformers

    options = {key: value for key, value in {**given, **changes}.items() if key != "class"}
    return getattr(transformers, given["class"])(**options)


def narrow(given: dict) -> dict:
    """The same heads, norms and caps, every width a thirty-second, two layers, the vocabulary of the tokenizer."""
    widths = {
        key: given[key] // NARROWER for key in ("hidden_size", "intermediate_size", "head_dim", "query_pre_attn_scalar") if key in given
    }
    return {
        **given,
        **widths,
        "num_hidden_layers": 2,
        "vocab_size": 50257,
        "bos_token_id": 50256,
        "eos_token_id": 50256,
        "pad_token_id": None,
    }


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A function from the name of a model of the specs to the directory of its small random version."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("hub")
    (folder / "tokenizer.json").write_bytes(gzip.decompress(TOKENIZER.read_bytes()))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )

    def make(name: str, seed: int = 0) -> Path:
        path = folder / f"{name}-{seed}"
        if not path.exists():
            torch.manual_seed(seed)
            model = transformers.AutoModelForCausalLM.from_config(config(narrow(MODELS[name][0])), dtype=torch.bfloat16)
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.dim() > 1:  # large enough that every part matters
                        parameter.normal_(0, 0.3)
            assert sum(p.numel() * p.element_size() for p in model.parameters()) < 50e6
            model.save_pretrained(path)
            tokenizer.save_pretrained(path)
        return path

    return make


def test_there_are_specs_for_all_models_of_the_papers():
    suites = [load_suite(spec) for spec in SPECS]
    assert {name for suite in suites for name in suite.models if "@" not in name} == {*MODELS, *ALIKE}
    paths = {source.path for suite in suites for source in suite.models.values()}
    assert paths == {
        "google/gemma-2-2b", "google/gemma-2-2b-it", "meta-llama/Llama-3.2-3B", "meta-llama/Llama-3.2-3B-Instruct", "Qwen/Qwen3-4B",
        "Qwen/Qwen3-8B", "allenai/OLMo-2-0425-1B", "allenai/OLMo-2-0425-1B-early-training", "meta-llama/Llama-3.1-8B-Instruct",
    }  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.name.partition(".")[0])
def test_a_spec_loads_with_the_papers_settings(spec):
    suite = load_suite(spec)
    assert suite.claims and all(source.dtype == "bfloat16" for source in suite.models.values())
    if "neuron" in spec.name:
        assert {case.parameters.attribution for case in suite.claims} == {"relp", "ig_activations"}
        return
    plain = [case.parameters for case in suite.claims if case.property != "trajectory"]
    inner = [case.parameters.of.parameters for case in suite.claims if case.property == "trajectory"]
    assert {p.metric for p in plain + inner} == {"log_prob"} and {p.attribution for p in plain + inner} == {"eap"}
    assert {json.loads(source.parameters).get("digits") for name, source in suite.tasks.items() if name.startswith("addition")} == {3}
    if suite.series:
        (olmo,) = suite.series.values()
        assert [one.at for one in olmo] == sorted(one.at for one in olmo) and len({one.revision for one in olmo}) == len(olmo) >= 8
        assert next(one for one in olmo if one.at == 76).revision == "stage1-step36000-tokens76B"
    else:
        assert {"1%", "5%", "10%", "20%", "30%"} <= {p.size for p in plain if type(p).__name__ == "Reuse"}
        assert {0.95, 1.0} <= {p.p for p in plain if type(p).__name__ == "Reuse"}


def test_specs_of_the_hub_are_collected_only_where_they_are_asked_for(pytester):
    """`pytest specs` is offline and small; a folder or file that is named is collected."""
    collected = {
        where: pytester.runpytest_subprocess(
            str(ROOT / where), "--collect-only", "-q", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml")
        )
        for where in ("specs", "specs/hub/training.circuits.yaml")
    }
    assert "specs/hub" not in collected["specs"].stdout.str() and "specs/core.circuits.yaml::" in collected["specs"].stdout.str()
    assert "specs/hub/training.circuits.yaml::reuse-peaks-early::olmo2::ioi" in collected["specs/hub/training.circuits.yaml"].stdout.str()


@pytest.mark.parametrize("name", MODELS)
def test_the_true_architecture_has_the_published_size_and_all_its_components_are_found(name):
    """Without weights. The number of parameters says that these dimensions are the model's own, N that every head and MLP is there."""
    import torch
    import transformers

    from pytest_circuits.inspection.locate import anatomy_of

    given, parameters, components = MODELS[name]
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config(given), attn_implementation="eager")
    assert model.num_parameters() == parameters
    found = anatomy_of(model)
    assert not found.probed and found.universe.components == components
    assert (found.heads, found.kv_heads) == (given["num_attention_heads"], given["num_key_value_heads"])
    assert found.neurons == given["intermediate_size"] and found.softcap == given.get("final_logit_softcapping")


SMALLER = {
    "dtype: bfloat16": "dtype: float32",  # which CPUs multiply many times faster
    "min_accuracy: 0.6": "min_accuracy: 0",
    "n: 1000": "n: 24",
    "n: 340": "n: 60",
    "n: 200": "n: 24",
    "split: 0.88": "split: 0.5",
    "split: 0.8": "split: 0.5",
    "p: 0.95": "p: 0.5",
    "p: 1.0": "p: 0.5",
    "size: 10%": "size: 20%",
    "control: [c3, c3_parity]": "control: c3_parity",
    "ablation: zero": "ablation: zero\n  draws: 20",
    "neurons: 200": "neurons: 50",
    "attribution: relp": "attribution: relp\n  metric: log_prob",
}
"""What makes a spec measurable on random models of two layers in seconds: small tasks, larger shares, no accuracy gate."""
CHOSEN = """
    ((reuse and not over-size and not definition or composition or cross-task or necessity) and ioi
        and not addition and not boolean and not copycolors and not arc and not instruct and not gemma-2-2b-it)
    or (olmo2 and ioi and (reuse-peaks-early or necessity-comes or composition-over-training))
    or two-hundred-neurons
"""


@pytest.fixture(scope="session")
def claims(small, tmp_path_factory):
    """Records of the chosen claims of all specs, measured on small random models by one run of pytest."""
    folder = tmp_path_factory.mktemp("run")
    for spec in SPECS:
        text = spec.read_text(encoding="utf-8")
        for old, new in SMALLER.items():
            text = text.replace(old, new)
        (folder / spec.name).write_text(text, encoding="utf-8")
    (folder / "steps").mkdir()
    for seed, step in enumerate((100, 4052)):
        (folder / "steps" / f"step-{step}").symlink_to(small("olmo2-1b", seed), target_is_directory=True)
    seeds = {"llama-3.1-8b-instruct": 2}  # one of those whose random MLPs raise the log-probability of the verb's number
    models = {**{name: small(name, seeds.get(name, 0)) for name in MODELS}, "olmo2": folder / "steps" / "step-*"}
    swaps = [option for name, path in models.items() for option in ("--circuits-model", f"{name}={path}")]
    command = [sys.executable, "-m", "pytest", ".", "-q", "-k", " ".join(CHOSEN.split()), "--circuits-json=r.json", *swaps]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert (folder / "r.json").exists(), done.stdout + done.stderr
    return json.loads((folder / "r.json").read_text(encoding="utf-8"))["claims"]


def invalid(found: list[dict]) -> list[str]:
    return [f"{one['nodeid']}: {one['reason']}" for one in found if one["verdict"] == "invalid"]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "llama-3.1-8b-instruct"])
def test_claims_about_components_are_measured_on_a_random_model_of_the_architecture(claims, name):
    """Verdicts are whatever they are; no claim is invalid."""
    found = [one for one in claims if one["model"] == name]
    assert {one["property"] for one in found} == {"reuse", "composition", "necessity", "cross_task_ablation"}
    heads = MODELS[name][0]["num_attention_heads"]
    assert {one["details"]["universe"] for one in found if one["property"] == "reuse"} == {2 * (heads + 1)}
    assert invalid(found) == []
    assert all(one["interval"][0] <= one["estimate"] <= one["interval"][1] for one in found)


def test_claims_about_training_are_measured_on_a_series_of_random_models(claims):
    found = [one for one in claims if one["property"] == "trajectory"]
    assert {next(iter(one["parameters"]["of"])) for one in found} == {"reuse", "composition", "necessity"} and invalid(found) == []
    assert all([point["at"] for point in one["details"]["curve"]] == [100, 4052] for one in found)


def test_claims_about_neurons_are_measured_on_a_random_model_of_the_architecture(claims):
    found = [one for one in claims if one["model"] == "llama-3.1-8b-instruct"]
    assert [one["property"] for one in found] == ["neuron_faithfulness", "neuron_completeness"]
    assert invalid(found) == []
    assert all(one["details"]["neurons"] == 50 for one in found)


def test_the_half_precision_of_the_specs_is_measured_too(small):
    """As the papers do it, in bfloat16."""
    from pytest_circuits import load_task, open_model

    subject = open_model(small("llama-3.2-3b"), dtype="bfloat16")
    found = subject.attribute(load_task("ioi", n=4), method="eap", metric="log_prob")
    assert found.scores.dtype == "float32" and found.scores.shape == (4, 50) and (found.scores != 0).any(1).all()
