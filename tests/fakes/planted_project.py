"""Planted models on disk: one that does its task by L1MLP alone, one with a spare for two prompts, one with two heads for one job."""

from __future__ import annotations

import json
from types import SimpleNamespace

import hypothesis.database
import hypothesis.internal.conjecture.engine
import hypothesis.strategies  # noqa: F401 (pytester forgets modules that an inner run was first to import)
import numpy  # noqa: F401
import pytest
import safetensors.numpy  # noqa: F401
import scipy.special  # noqa: F401

import pytest_circuits.strategies  # noqa: F401
from tests.fakes.project import import_package
from tests.paths import ROOT

import_package(torch_side=False)

COUNTRIES = ["Austria", "Cuba", "Egypt", "France", "Italy", "Japan", "Kenya", "Peru"]
SPARED = ("Kenya", "Peru")
TASK = {
    "builtin": "template",
    "template": ["capital of {C}", "the capital of {C}"],
    "corrupt": ["capital of {D}", "the capital of {D}"],
    "slots": {"C": COUNTRIES, "D": COUNTRIES},
    "facts": {"capital": dict(zip(COUNTRIES, ("Vienna", "Havana", "Cairo", "Paris", "Rome", "Tokyo", "Nairobi", "Lima"), strict=True))},
    "answer": "{C.capital}",
    "foil": "{D.capital}",
    "n": 16,
}


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Folders of the models, and one where all tests keep measurements.

    `plain`: removing L1MLP makes every answer wrong. `spared`: L2MLP knows the capitals of Kenya and Peru as well. `backup`: L0H1 and L1H3
    do the same job, so only removing both does harm.
    """
    import torch
    import transformers.models.auto.modeling_auto
    import transformers.models.llama.modeling_llama  # noqa: F401

    from models.planted import backup, memory

    import_package(torch_side=True)
    folder = tmp_path_factory.mktemp("planted")
    for name, case in (("plain", memory.build()), ("spared", memory.build()), ("backup", backup.build())):
        if name == "spared":
            first, second = (case.model.model.layers[i].mlp for i in (1, 2))
            with torch.no_grad():
                for place in (memory.PLACES[country] for country in SPARED):
                    second.gate_proj.weight[place] = first.gate_proj.weight[place]
                    second.up_proj.weight[place] = first.up_proj.weight[place]
                    second.down_proj.weight[:, place] = first.down_proj.weight[:, place]
        case.model.save_pretrained(folder / name)
        case.tokenizer.save_pretrained(folder / name)
    return SimpleNamespace(folder=folder, cache=folder / "cache")


class Project:
    """An empty project with the planted models: write specs, run pytest, read the report."""

    def __init__(self, pytester: pytest.Pytester, planted: SimpleNamespace) -> None:
        self.pytester, self.path = pytester, pytester.path
        for name in ("plain", "spared", "backup"):
            (self.path / name).symlink_to(planted.folder / name)
        rows = (ROOT / "models/planted-circuits/backup/task.jsonl").read_text(encoding="utf-8")
        (self.path / "backup.jsonl").write_text(rows, encoding="utf-8")
        pytester.makeini(f"[pytest]\ncircuits_cache_dir = {planted.cache}\n")

    def spec(self, claim: str, model: str = "spared", bound: str = "", more: str = "") -> None:
        """A spec of one claim `c`; `claim` are the parameters of for_all but the prompts."""
        prompts = "rows" if model == "backup" else "capitals"
        tasks = f"tasks:\n  capitals: {json.dumps(TASK)}\n  rows: {{file: backup.jsonl, scoring: argmax}}\n"
        text = f"version: 1\nmodels: {{m: {{path: {model}}}}}\n{tasks}"
        text += f"{more}claims:\n  c:\n    for_all: {{prompts: {{task: {prompts}}}, {claim}}}\n{bound}"
        (self.path / "s.circuits.yaml").write_text(text, encoding="utf-8")

    def run(self, *options: str, claim: str | None = None, **about: str) -> dict:
        """The claim's record."""
        if claim is not None:
            self.spec(claim, **about)
        (self.path / "out.json").unlink(missing_ok=True)
        self.result = self.pytester.runpytest_inprocess("-p", "no:cacheprovider", "s.circuits.yaml", "--circuits-json=out.json", *options)
        return json.loads((self.path / "out.json").read_text(encoding="utf-8"))["claims"][0]


@pytest.fixture
def project(pytester: pytest.Pytester, planted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with the planted models and hypothesis as it is outside of continuous integration."""
    from hypothesis import settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    for name in ("GITHUB_ACTIONS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    before = settings.get_current_profile_name()
    settings.register_profile("of the test", settings.get_profile("default"), database=DirectoryBasedExampleDatabase(pytester.path / "db"))
    settings.load_profile("of the test")
    monkeypatch.setattr("hypothesis.core.global_force_seed", None)
    yield Project(pytester, planted)
    settings.load_profile(before)
