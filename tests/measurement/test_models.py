"""Models are opened when needed, few at a time, and not again after they failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_circuits.core.sources import ModelSource
from pytest_circuits.errors import ModelError, OptionError
from pytest_circuits.measurement.requests import Attribute, Describe, Encode
from tests.fakes.executor import TASK, FakeSubject, Opener, model_directory

Loaded = FakeSubject  # as opened from a module: the module says where it is


def the_loader():
    """Called as `test_models:the_loader`."""
    return "a module", "its tokenizer"


def a_broken_loader():
    raise ZeroDivisionError("oops")


def three(tmp_path):
    return [model_directory(tmp_path / f"m{i}", f"weights {i}".encode()) for i in range(3)]


@pytest.mark.parametrize(("budget", "opened"), [(0, "010102"), (199, "010102"), (200, "012"), (300, "012")])
def test_the_model_unused_for_longest_is_let_go(new_executor, tmp_path, budget, opened):
    """Each takes 100 bytes: two fit into 200, and one is open even where it does not fit."""
    models = three(tmp_path)
    executor = new_executor(budget=budget)
    for i, method in zip((0, 1, 0, 1, 0, 2), "abcdef", strict=True):
        executor.result(Attribute(models[i], TASK, "eap", metric=method))
    assert "".join(Path(path).name[1:] for path, _ in executor.opener.opened) == opened
    assert [executor.models.is_open(model) for model in models] == [budget >= 200, budget >= 300, True]


def test_what_counts_is_the_bytes_of_all_open_models(new_executor, tmp_path):
    """One large model takes the place of several small ones, of as many as it needs and no more; the order of use decides which."""
    models = [model_directory(tmp_path / f"m{i}", f"weights {i}".encode()) for i in range(4)]

    class Sized(FakeSubject):
        size = property(lambda self: {"m0": 10, "m1": 20, "m2": 30, "m3": 45}[Path(self.where).name])

    executor = new_executor(Opener(Sized), budget=75)
    for i in (0, 1, 2, 0, 3):  # 45 bytes more are 105: without m1, then used for longest, still 85
        executor.result(Attribute(models[i], TASK, "eap", metric=f"{i}{executor.spent.measured}"))
    assert [executor.models.is_open(model) for model in models] == [True, False, False, True]


def test_room_is_made_before_a_model_is_opened(new_executor, tmp_path):
    """Two large ones are never in memory together; the files tell how large it will be."""
    small, large = model_directory(tmp_path / "small"), model_directory(tmp_path / "large", bytes(1000))
    seen = []

    class Watching(Opener):
        def __call__(self, model, tokenizer=None, **options):
            seen.append((Path(model).name, executor.models.is_open(small), executor.models.is_open(large)))
            return super().__call__(model, tokenizer, **options)

    executor = new_executor(Watching(), budget=1050)
    for model in (small, large, small):
        executor.result(Attribute(model, TASK, "eap"))
    assert seen == [("small", False, False), ("large", False, False)]
    assert not executor.models.is_open(small)
    executor.result(Attribute(small, TASK, "atp"))
    assert executor.models.is_open(large), "the small one fits beside it: it took 100 bytes, whatever its file said"


def test_a_model_of_which_nothing_is_known_is_opened_alone(new_executor, model):
    """A loader may return anything."""
    seen = []

    class Watching(Opener):
        def __call__(self, opened, tokenizer=None, **options):
            seen.append(executor.models.is_open(model))
            return super().__call__(opened, tokenizer, **options)

    executor = new_executor(Watching(), budget=1000)
    executor.result(Attribute(model, TASK, "eap"))
    executor.result(Attribute(ModelSource("mine", loader=f"{__name__}:the_loader"), TASK, "eap", metric="other"))
    assert seen == [False, False]


def test_the_bytes_of_a_model_are_those_of_its_parameters():
    """Each once, in its own precision."""
    torch = pytest.importorskip("torch")
    from pytest_circuits.measurement.models import parameter_bytes

    tied = torch.nn.Linear(3, 5, bias=False)
    module = torch.nn.ModuleList([tied, tied, torch.nn.Linear(2, 2, dtype=torch.bfloat16)])
    assert parameter_bytes(SimpleNamespace(model=module)) == 4 * 15 + 2 * 6


def test_ten_claims_on_a_model_that_cannot_be_opened_fail_fast_with_one_message(new_executor, model):
    """Opening 16 GB in vain ten times is no help."""
    executor = new_executor(Opener(error=ModelError("the checkpoint lacks tensors")))
    for i in range(10):
        with pytest.raises(ModelError, match=r"^the checkpoint lacks tensors$"):
            executor.result(Attribute(model, TASK, "eap", metric=f"m{i}") if i % 2 else Describe(model))
    assert len(executor.opener.opened) == 1


def test_a_strange_exception_of_opening_names_the_model(new_executor, model):
    """Whatever a library raises becomes a ModelError, the original as its cause."""
    executor = new_executor(Opener(error=RuntimeError("size mismatch")))
    for _ in range(2):
        with pytest.raises(ModelError, match=r"model 'm' \(.*\) cannot be opened: RuntimeError: size mismatch") as error:
            executor.result(Describe(model))
    assert (type(error.value.__cause__), len(executor.opener.opened)) == (RuntimeError, 1)


def test_a_missing_directory_is_told_before_anything_is_opened(new_executor, tmp_path):
    """Torch is not even imported for it."""
    executor = new_executor()
    with pytest.raises(ModelError, match="there is no directory"):
        executor.result(Attribute(ModelSource("m", str(tmp_path / "nowhere")), TASK, "eap"))
    assert executor.opener.opened == []


def test_files_that_change_during_a_session_are_refused(new_executor, model):
    """The key would name other weights than those measured."""
    executor = new_executor()
    executor.models.identity(model)
    Path(model.path, "model.safetensors").write_bytes(b"new weights")
    with pytest.raises(ModelError, match="changed during this session"):
        executor.result(Describe(model))


def test_a_downloaded_hub_model_is_opened_at_the_commit_of_its_key(new_executor, tmp_path, monkeypatch):
    """The branch may move between the look-up and the opening."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "models--owner--name"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "step10").write_text("c" * 40)
    (root / "snapshots" / ("c" * 40)).mkdir(parents=True)
    (root / "snapshots" / ("c" * 40) / "config.json").write_text("{}")
    executor = new_executor()
    executor.result(Describe(ModelSource("m", "owner/name", revision="step10")))
    assert executor.opener.opened == [("owner/name", {"revision": "c" * 40, "dtype": None, "device": "cpu"})]


def test_a_loaded_model_is_known_by_its_weights(new_executor):
    """A loader must run in each session; what was measured on equal weights is still there."""
    source = ModelSource("mine", loader=f"{__name__}:the_loader")
    first, second = new_executor(Opener(Loaded)), new_executor(Opener(Loaded))
    for executor in (first, second):
        executor.result(Attribute(source, TASK, "eap"))
        assert executor.opener.opened == [("a module", {"revision": None, "dtype": None, "device": None})]
        assert executor.opener.count("encode") == 1
    assert [executor.opener.count("attribute") for executor in (first, second)] == [1, 0]


def test_other_weights_from_the_same_loader_are_another_model(new_executor):
    """The loader's name says nothing about what it returns."""
    source = ModelSource("mine", loader=f"{__name__}:the_loader")
    new_executor(Opener(Loaded)).result(Attribute(source, TASK, "eap"))
    executor = new_executor(
        Opener(type("Other", (Loaded,), {"describe": lambda self: replace(FakeSubject.describe(self), fingerprint="other")}))
    )
    executor.result(Attribute(source, TASK, "eap"))
    assert executor.opener.count("attribute") == 1


def test_another_tokenizer_of_a_loaded_model_is_noticed(new_executor):
    """No file tells it; the encoded prompts do."""

    class Other(Loaded):
        def encode(self, task):
            return SimpleNamespace(**{**vars(super().encode(task)), "digest": "other ids"})

    source = ModelSource("mine", loader=f"{__name__}:the_loader")
    new_executor(Opener(Loaded)).result(Attribute(source, TASK, "eap"))
    executor = new_executor(Opener(Other))
    executor.result(Attribute(source, TASK, "eap"))
    assert executor.opener.count("attribute") == 1


def test_a_module_in_memory_is_provided_under_a_source(new_executor):
    """For fixtures; its tokenizer comes with it, and its encoding is made once a session."""
    executor = new_executor(Opener(Loaded))
    source = ModelSource("fixture")
    executor.models.provide(source, lambda: ("my module", "my tokenizer"))
    executor.result(Encode(source, TASK))
    executor.result(Encode(source, TASK))
    assert (executor.opener.opened[0][0], executor.opener.count("encode"), executor.spent.hits) == ("my module", 1, 1)


def test_a_module_that_is_provided_again_is_looked_at_again(new_executor):
    """It may have been trained since; the key must not name its old weights."""
    weights = ["old"]

    class Trained(Loaded):
        def describe(self):
            return replace(super().describe(), fingerprint=weights[0])

    executor = new_executor(Opener(Trained))
    source = ModelSource("fixture")
    found = []
    for state in ("old", "new"):
        weights[0] = state
        executor.models.provide(source, lambda: "my module")
        found.append(executor.describe(source).fingerprint)
    assert found == ["old", "new"]


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (f"{__name__}:a_broken_loader", f"the loader {__name__}:a_broken_loader raised ZeroDivisionError: oops"),
        (f"{__name__}:nothing", "has no 'nothing'"),
        ("no_such_module:f", "cannot import 'no_such_module'"),
    ],
)
def test_a_loader_that_fails_is_a_model_error(new_executor, loader, message):
    """So that the claim is invalid and the others go on."""
    with pytest.raises(ModelError, match=message):
        new_executor(Opener(Loaded)).result(Describe(ModelSource("mine", loader=loader)))


@pytest.mark.parametrize("device", ["auto", "meta", "cuda0", "GPU"])
def test_only_real_devices_are_accepted(new_executor, model, device):
    """The key must say on what a number was measured."""
    with pytest.raises(OptionError, match=f"'{device}' is not a device"):
        new_executor(device=device).result(Describe(model))


def test_a_budget_is_a_number_of_bytes():
    """None of which is fine: one model is open at a time."""
    from pytest_circuits.measurement.models import Models

    with pytest.raises(OptionError, match="got -1"):
        Models(None, device=None, dtype=None, budget=-1, opener=None, emit=print)
