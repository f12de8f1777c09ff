"""A plan and an open model read the same sizes from a config."""

import json

import pytest
import transformers as tf

from pytest_circuits.core.units import Universe
from pytest_circuits.errors import ModelError
from pytest_circuits.inspection.locate import anatomy_of
from pytest_circuits.model.config_sizes import config_sizes, config_universe

SMALL = {"vocab_size": 29, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 20}
GROUPED = {**SMALL, "num_key_value_heads": 2}
MIXTURE = {**GROUPED, "moe_intermediate_size": 12, "num_experts_per_tok": 2}
CONFIGS = {
    "llama": tf.LlamaConfig(**GROUPED),
    "gpt2": tf.GPT2Config(vocab_size=29, n_embd=24, n_layer=2, n_head=4),
    "gpt_neo": tf.GPTNeoConfig(vocab_size=29, hidden_size=24, num_layers=2, num_heads=4, attention_types=[[["global"], 2]]),
    "gpt_neox": tf.GPTNeoXConfig(**SMALL),
    "gpt_neox in sequence": tf.GPTNeoXConfig(**SMALL, use_parallel_residual=False),
    "mixtral": tf.MixtralConfig(**GROUPED, num_local_experts=3),
    "qwen3_moe": tf.Qwen3MoeConfig(**MIXTURE, num_experts=4, head_dim=6),
    "olmoe": tf.OlmoeConfig(**{**MIXTURE, "num_experts": 4}),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_plan_sees_the_universe_that_the_open_model_has(name):
    config = CONFIGS[name]
    model = tf.AutoModelForCausalLM.from_config(config)
    written = json.loads(config.to_json_string(use_diff=False))
    assert config_universe(written) == anatomy_of(model).universe


def test_the_text_model_of_a_multimodal_config_is_read():
    config = tf.Gemma3Config(text_config={**GROUPED, "head_dim": 6}, vision_config={"hidden_size": 8, "num_hidden_layers": 1})
    written = json.loads(config.to_json_string(use_diff=False))
    assert config_universe(written) == Universe(2, 4, 20, 2)
    live = config_sizes(config)
    assert (live.layers, live.heads, live.kv_heads, live.architecture) == (2, 4, 2, "gemma3")


def test_unknown_mixtures_of_experts_have_no_neurons():
    assert config_universe({"model_type": "new_moe", **GROUPED, "n_routed_experts": 8}) == Universe(2, 4, 0, 2)
    assert config_universe({"model_type": "new_dense", **GROUPED, "n_routed_experts": 1}) == Universe(2, 4, 20, 2)


def test_key_value_heads_of_one_query_group_and_of_falcon():
    falcon = {"model_type": "falcon", "hidden_size": 24, "n_layer": 2, "n_head": 4, "multi_query": True}
    assert config_universe(falcon) == Universe(2, 4, 96, 1)
    assert config_universe({**falcon, "new_decoder_architecture": True, "num_kv_heads": 2}) == Universe(2, 4, 96, 2)


@pytest.mark.parametrize(("config", "problem"), [
    ({"model_type": "t5", "is_encoder_decoder": True}, "encoder–decoder"),
    ({"model_type": "mamba2", "num_hidden_layers": 2, "num_heads": 8}, "names no attention heads"),
    ({"model_type": "x", "num_attention_heads": 4}, "names no layers"),
    ({"model_type": "x", **SMALL, "num_key_value_heads": 3}, "4 query heads for 3 key-value heads"),
    ({"model_type": "x", **SMALL, "num_attention_heads": [4, 8]}, r"num_attention_heads is \[4, 8\]: models whose layers differ"),
])  # fmt: skip
def test_configs_that_cannot_be_measured_are_refused(config, problem):
    with pytest.raises(ModelError, match=problem):
        config_universe(config)
