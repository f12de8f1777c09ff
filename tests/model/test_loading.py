"""Opening models: what comes back, and one clear message for each way in which it can go wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

from pytest_circuits import open_model
from pytest_circuits.errors import CircuitsError, MeasurementError, ModelError, OptionError
from pytest_circuits.model.architectures import FAMILIES, Family, register_family
from tests.fakes import tiny
from tests.paths import ROOT


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A tiny Llama as `save_pretrained` writes it, without a tokenizer."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    tiny.model("llama", dtype=torch.float32).save_pretrained(folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def change_weights(folder: Path, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder: Path, **entries) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **entries}))


def test_a_directory_opens_with_its_own_weights_dtype_and_no_tokenizer(saved):
    """As a string, a Path and a path with a tilde-free relative part; in evaluation mode; nothing is printed."""
    for path in (str(saved), saved):
        subject = open_model(path)
        assert subject.tokenizer is None and subject.describe().dtype == "float32"
        assert not any(m.training for m in subject.model.modules())
    truth = tiny.model("llama", dtype=torch.float32).state_dict()
    assert all(torch.equal(t, truth[name]) for name, t in subject.model.state_dict().items())
    described = subject.describe()
    assert (described.architecture, described.universe.layers, described.universe.heads, described.universe.neurons) == ("llama", 3, 4, 40)
    assert described.parameters == sum(p.numel() for p in subject.model.parameters())


def test_loading_is_quiet_and_leaves_transformers_as_it_was(saved, capfd):
    """No tables, no progress bars; verbosity and bars as before."""
    from transformers.utils import logging

    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    open_model(saved)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", torch.bfloat16, "torch.float32"])
def test_a_dtype_is_applied(saved, dtype):
    """By name or as a torch dtype."""
    assert str(dtype).removeprefix("torch.") == open_model(saved, dtype=dtype).describe().dtype


WRONG = {
    "missing tensor": (
        lambda f: change_weights(f, lambda w: w.pop("model.layers.1.mlp.down_proj.weight")),
        r"lacks model\.layers\.1\.mlp\.down_proj\.weight.*would be random",
    ),
    "wrong shape": (
        lambda f: change_weights(f, lambda w: w.update({"model.layers.1.mlp.down_proj.weight": torch.zeros(3, 3)})),
        r"wrong shape for model\.layers\.1\.mlp\.down_proj\.weight",
    ),
    "more layers in the config": (lambda f: change_config(f, num_hidden_layers=4), r"lacks model\.layers\.3\..*and 6 more"),
    "fewer layers in the config": (lambda f: change_config(f, num_hidden_layers=2), r"has weights of layer 2.*names 2 layers"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no file named model.safetensors"),
    "garbage in place of weights": (lambda f: (f / "model.safetensors").write_bytes(b"hello"), "cannot be loaded.*header"),
    "half a file of weights": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-100]),
        "cannot be loaded.*not fully covered",
    ),
    "no config": (lambda f: (f / "config.json").unlink(), r"has no config\.json; it holds generation_config\.json, model\.safetensors"),
    "a broken config": (lambda f: (f / "config.json").write_text("{"), "config.json' is not a valid JSON file"),
    "heads that do not divide": (lambda f: change_config(f, num_attention_heads=5), "not a multiple of the number of attention heads"),
    "unknown to transformers": (lambda f: change_config(f, model_type="foo"), "model type `foo`"),
    "a broken tokenizer": (lambda f: (f / "tokenizer.json").write_text("{"), "tokenizer of .* cannot be loaded"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_broken_directory_is_one_clear_model_error(copy, what):
    """That names the directory and what is wrong with it."""
    spoil, message = WRONG[what]
    spoil(copy)
    with pytest.raises(ModelError, match=message) as caught:
        open_model(copy)
    assert "\n" not in str(caught.value) and str(copy) in str(caught.value)


def test_a_given_tokenizer_replaces_a_broken_one(copy):
    """The broken one is not even read."""
    (copy / "tokenizer.json").write_text("{")
    mine = object()
    assert open_model(copy, mine).tokenizer is mine


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("./nowhere", "'nowhere' does not exist"),
        ("/nowhere/at/all", "does not exist; give the folder that holds config.json, or a hub id"),
        ("a/b/c", "does not exist"),
        ("~/nowhere-at-all", "nowhere-at-all' does not exist"),
        ("", "path is empty"),
        (__file__, "is a file"),
    ],
)
def test_a_path_that_is_no_directory(path, message):
    """Missing, empty, a file."""
    with pytest.raises(ModelError, match=message):
        open_model(path)


@pytest.mark.parametrize(("thing", "message"), [(3, "not a int"), (None, "not a NoneType"), (torch.nn.Linear(2, 2), "model_type")])
def test_things_that_are_no_models(thing, message):
    """Numbers, nothing, bare modules."""
    with pytest.raises(ModelError, match=message):
        open_model(thing)


def test_unknown_dtypes_and_devices_are_refused(saved):
    """With the allowed dtypes."""
    with pytest.raises(OptionError, match=r"unknown dtype 'float8'.*bfloat16"):
        open_model(saved, dtype="float8")
    with pytest.raises(ModelError, match="cannot be moved to device 'nonsense'"):
        open_model(saved, device="nonsense")


def test_directories_and_modules_have_no_revisions(saved):
    """A revision is never dropped silently."""
    with pytest.raises(ModelError, match="is a directory, which has no revisions: remove revision 'step2'"):
        open_model(saved, revision="step2")
    with pytest.raises(OptionError, match="in memory has no revisions"):
        open_model(tiny.model("gpt2"), revision="step2")


def test_a_module_in_memory_is_used_as_it_is():
    """Not copied, not moved, not converted; asking for something else is refused."""
    model = tiny.model("gpt2", dtype=torch.float32).train()
    subject = open_model(model, dtype="float32", device="cpu")
    assert subject.model is model and all(m.training for m in model.modules())
    for wish in ({"dtype": "bfloat16"}, {"device": "cuda"}, {"device": "meta"}):
        with pytest.raises(OptionError, match="convert it first"):
            open_model(model, **wish)
    assert {p.dtype for p in model.parameters()} == {torch.float32} and {p.device.type for p in model.parameters()} == {"cpu"}


def test_an_architecture_without_an_anatomy_is_refused_and_can_be_registered():
    """OPT has its parts elsewhere; the message says how to describe it. A family that does not fit names the missing part."""
    config = tf.OPTConfig(
        vocab_size=29,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=32,
        max_position_embeddings=32,
        word_embed_proj_dim=24,
    )
    model = tf.AutoModelForCausalLM.from_config(config)
    with pytest.raises(ModelError, match=r"architecture 'opt' is not known.*register_family"):
        open_model(model)
    register_family("opt", FAMILIES["llama"])
    try:
        with pytest.raises(ModelError, match=r"no 'model\.layers'"):
            open_model(model)
        with pytest.raises(OptionError, match="already known"):
            register_family("opt", FAMILIES["gpt2"])
        with pytest.raises(OptionError, match="already known"):
            register_family("llama", FAMILIES["gpt2"])
    finally:
        del FAMILIES["opt"]


def test_a_registered_architecture_is_measured():
    """A class with Llama's parts under another model type."""

    class Config(tf.LlamaConfig):
        model_type = "my-llama"

    class Model(tf.LlamaForCausalLM):
        config_class = Config

    model = Model(Config(**tiny.COMMON, intermediate_size=40, num_key_value_heads=2)).eval()
    assert isinstance(FAMILIES["llama"], Family)
    register_family("my-llama", FAMILIES["llama"])
    try:
        assert (open_model(model).attribute(tiny.task(n=2)).scores > 0).any()
    finally:
        del FAMILIES["my-llama"]


@pytest.mark.parametrize("where", ["model.layers.1.mlp.down_proj.weight", "model.layers.2.input_layernorm.weight", "model.norm.weight"])
def test_nan_weights_are_a_measurement_error(copy, where):
    """Found when the model is opened; without that check never a number, and never a circuit, whatever is measured."""
    change_weights(copy, lambda w: w[where].fill_(float("nan")))
    with pytest.raises(ModelError, match=r"not finite.*NaN weights"):
        open_model(copy)
    subject = open_model(copy, check=False)
    task = tiny.task(n=2)
    for call in (
        *(lambda m=m: subject.attribute(task, m) for m in ("eap", "atp", "relp", "gradient", "weight_gradient", "exact", "eap_ig")),
        lambda: subject.attribute(task, "ig_activations", level="neuron"),
        lambda: subject.attribute(task, "eap", reduce="mean"),
        lambda: subject.ablate(task, remove=["L0H0"]),
        lambda: subject.sweep(task),
    ):
        with pytest.raises(MeasurementError, match=r"not finite.*NaN weights"):
            call()


@pytest.mark.extensive
def test_hub_ids_from_the_cache_and_offline(saved, tmp_path):
    """A revision is passed on to model and tokenizer; unknown revisions, ids that are not cached and typing errors are one ModelError."""
    repository = tmp_path / "hub" / "models--me--model"
    for revision, commit, factor in (("main", "a" * 40, 1.0), ("step2", "b" * 40, 2.0)):
        snapshot = Path(shutil.copytree(saved, repository / "snapshots" / commit))
        change_weights(snapshot, lambda w, factor=factor: w["model.norm.weight"].fill_(factor))
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / revision).write_text(commit)
    program = """
        from tests.fakes import tiny
        from pytest_circuits import ModelError, open_model
        nothing = object()
        for revision, value in ((None, 1), ("main", 1), ("step2", 2), ("b" * 40, 2)):
            assert (open_model("me/model", nothing, revision=revision).model.model.norm.weight == value).all(), revision
        for name, revision, words in (
            ("me/model", "step3", "'me/model' at revision 'step3' cannot be loaded"),
            ("me/other", None, "'me/other' cannot be loaded: "),
            ("other", None, "nor is there a directory of that name"),
        ):
            try:
                open_model(name, nothing, revision=revision)
            except ModelError as problem:
                assert words in str(problem), problem
            else:
                raise AssertionError(name)
        print("done")
    """
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_CACHE": str(tmp_path / "hub"),
        "PYTHONPATH": str(ROOT),
    }
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout == "done\n", ran.stderr


def test_every_error_of_opening_is_a_circuits_error():
    """So that a claim becomes invalid, and the others go on."""
    assert issubclass(ModelError, CircuitsError) and issubclass(OptionError, CircuitsError)
