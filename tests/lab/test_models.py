"""Models are opened when needed, few at a time, and not again after they failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_fakes import TASK, FakeSubject, Opener, model_directory

from pytest_circuits.errors import ModelError, OptionError
from pytest_circuits.requests import Attribute, Describe, Encode
from pytest_circuits.sources import ModelSource


class Loaded(FakeSubject):
    """As opened from a module: the module says where it is."""

    model = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device=SimpleNamespace(type="cpu"))]))


def the_loader():
    """Called as `test_models:the_loader`."""
    return "a module", "its tokenizer"


def a_broken_loader():
    raise ZeroDivisionError("oops")


def three(tmp_path):
    return [model_directory(tmp_path / f"m{i}", f"weights {i}".encode()) for i in range(3)]


@pytest.mark.parametrize(("max_open", "opened"), [(1, "010102"), (2, "012"), (3, "012")])
def test_the_model_unused_for_longest_is_let_go(new_lab, tmp_path, max_open, opened):
    """Memory holds `max_open` models."""
    models = three(tmp_path)
    lab = new_lab(max_open=max_open)
    for i, method in zip((0, 1, 0, 1, 0, 2), "abcdef", strict=True):
        lab.result(Attribute(models[i], TASK, "eap", metric=method))
    assert "".join(Path(path).name[1:] for path, _ in lab.opener.opened) == opened
    assert lab.models.is_open(models[2])
    assert lab.models.is_open(models[1]) == (max_open == 3)


def test_ten_claims_on_a_model_that_cannot_be_opened_fail_fast_with_one_message(new_lab, model):
    """Opening 16 GB in vain ten times is no help."""
    lab = new_lab(Opener(error=ModelError("the checkpoint lacks tensors")))
    for i in range(10):
        with pytest.raises(ModelError, match=r"^the checkpoint lacks tensors$"):
            lab.result(Attribute(model, TASK, "eap", metric=f"m{i}") if i % 2 else Describe(model))
    assert len(lab.opener.opened) == 1


def test_a_strange_exception_of_opening_names_the_model(new_lab, model):
    """Whatever a library raises becomes a ModelError, the original as its cause."""
    lab = new_lab(Opener(error=RuntimeError("size mismatch")))
    for _ in range(2):
        with pytest.raises(ModelError, match=r"model 'm' \(.*\) cannot be opened: RuntimeError: size mismatch") as error:
            lab.result(Describe(model))
    assert (type(error.value.__cause__), len(lab.opener.opened)) == (RuntimeError, 1)


def test_a_missing_directory_is_told_before_anything_is_opened(new_lab, tmp_path):
    """Torch is not even imported for it."""
    lab = new_lab()
    with pytest.raises(ModelError, match="there is no directory"):
        lab.result(Attribute(ModelSource("m", str(tmp_path / "nowhere")), TASK, "eap"))
    assert lab.opener.opened == []


def test_files_that_change_during_a_session_are_refused(new_lab, model):
    """The key would name other weights than those measured."""
    lab = new_lab()
    lab.models.identity(model)
    Path(model.path, "model.safetensors").write_bytes(b"new weights")
    with pytest.raises(ModelError, match="changed during this session"):
        lab.result(Describe(model))


def test_a_downloaded_hub_model_is_opened_at_the_commit_of_its_key(new_lab, tmp_path, monkeypatch):
    """The branch may move between the look-up and the opening."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "models--owner--name"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "step10").write_text("c" * 40)
    (root / "snapshots" / ("c" * 40)).mkdir(parents=True)
    (root / "snapshots" / ("c" * 40) / "config.json").write_text("{}")
    lab = new_lab()
    lab.result(Describe(ModelSource("m", "owner/name", revision="step10")))
    assert lab.opener.opened == [("owner/name", {"revision": "c" * 40, "dtype": None, "device": "cpu"})]


def test_a_loaded_model_is_known_by_its_weights(new_lab):
    """A loader must run in each session; what was measured on equal weights is still there."""
    source = ModelSource("mine", loader="test_models:the_loader")
    first, second = new_lab(Opener(Loaded)), new_lab(Opener(Loaded))
    for lab in (first, second):
        lab.result(Attribute(source, TASK, "eap"))
        assert lab.opener.opened == [("a module", {"revision": None, "dtype": None, "device": None})]
        assert lab.opener.count("encode") == 1
    assert [lab.opener.count("attribute") for lab in (first, second)] == [1, 0]


def test_other_weights_from_the_same_loader_are_another_model(new_lab):
    """The loader's name says nothing about what it returns."""
    source = ModelSource("mine", loader="test_models:the_loader")
    new_lab(Opener(Loaded)).result(Attribute(source, TASK, "eap"))
    lab = new_lab(Opener(type("Other", (Loaded,), {"describe": lambda self: replace(FakeSubject.describe(self), fingerprint="other")})))
    lab.result(Attribute(source, TASK, "eap"))
    assert lab.opener.count("attribute") == 1


def test_another_tokenizer_of_a_loaded_model_is_noticed(new_lab):
    """No file tells it; the encoded prompts do."""

    class Other(Loaded):
        def encode(self, task):
            return SimpleNamespace(**{**vars(super().encode(task)), "digest": "other ids"})

    source = ModelSource("mine", loader="test_models:the_loader")
    new_lab(Opener(Loaded)).result(Attribute(source, TASK, "eap"))
    lab = new_lab(Opener(Other))
    lab.result(Attribute(source, TASK, "eap"))
    assert lab.opener.count("attribute") == 1


def test_a_module_in_memory_is_provided_under_a_source(new_lab):
    """For fixtures; its tokenizer comes with it, and its encoding is made once a session."""
    lab = new_lab(Opener(Loaded))
    source = ModelSource("fixture")
    lab.models.provide(source, lambda: ("my module", "my tokenizer"))
    lab.result(Encode(source, TASK))
    lab.result(Encode(source, TASK))
    assert (lab.opener.opened[0][0], lab.opener.count("encode"), lab.spent.hits) == ("my module", 1, 1)


def test_a_module_that_is_provided_again_is_looked_at_again(new_lab):
    """It may have been trained since; the key must not name its old weights."""
    weights = ["old"]

    class Trained(Loaded):
        def describe(self):
            return replace(super().describe(), fingerprint=weights[0])

    lab = new_lab(Opener(Trained))
    source = ModelSource("fixture")
    found = []
    for state in ("old", "new"):
        weights[0] = state
        lab.models.provide(source, lambda: "my module")
        found.append(lab.describe(source).fingerprint)
    assert found == ["old", "new"]


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ("test_models:a_broken_loader", "the loader test_models:a_broken_loader raised ZeroDivisionError: oops"),
        ("test_models:nothing", "has no 'nothing'"),
        ("no_such_module:f", "cannot import 'no_such_module'"),
    ],
)
def test_a_loader_that_fails_is_a_model_error(new_lab, loader, message):
    """So that the claim is invalid and the others go on."""
    with pytest.raises(ModelError, match=message):
        new_lab(Opener(Loaded)).result(Describe(ModelSource("mine", loader=loader)))


@pytest.mark.parametrize("device", ["auto", "meta", "cuda0", "GPU"])
def test_only_real_devices_are_accepted(new_lab, model, device):
    """The key must say on what a number was measured."""
    with pytest.raises(OptionError, match=f"'{device}' is no device"):
        new_lab(device=device).result(Describe(model))


def test_at_least_one_model_must_fit():
    """0 open models cannot measure."""
    from pytest_circuits.lab.models import Models

    with pytest.raises(OptionError, match="max_open=0"):
        Models(None, device=None, dtype=None, max_open=0, opener=None, emit=print)
