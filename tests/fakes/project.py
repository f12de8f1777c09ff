"""A project to run pytest in, and what it is filled with."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_circuits
from tests.fakes import torch_side
from tests.paths import ROOT

WORDS = ["<pad>", "<unk>", *(f"w{i}" for i in range(40))]
TORCH_SIDE = ("ablation", "attribution", "inspection", "model", "subject")
HEADER = """\
version: 1
models:
  tiny: {path: model}
tasks:
  swap: {file: pairs.jsonl}
  other: {file: pairs.jsonl, n: 20}
"""
DEFAULTS = "defaults: {size: 25%, attribution: atp, min_accuracy: 0.0}\n"


def header(models: str, tasks: str = "swap: {file: pairs.jsonl}", more: str = "") -> str:
    """All of a spec but its claims."""
    return f"version: 1\nmodels: {{{models}}}\ntasks: {{{tasks}}}\n{more}"


def import_package(torch_side: bool) -> None:
    """All modules of the package, with or without those that need torch."""
    for module in pkgutil.walk_packages(pytest_circuits.__path__, "pytest_circuits."):
        own = module.name.split(".")
        if own[-1] != "__main__" and (torch_side or own[1] not in TORCH_SIDE):
            importlib.import_module(module.name)


def write_pairs(path: Path, n: int = 200) -> None:
    """A task file of one-token words."""
    rows = [
        {"clean": f"w{i % 7} w{(i * 3) % 11} w{i % 5}", "corrupt": f"w{(i + 2) % 7} w{(i * 3 + 1) % 11} w{i % 5}",
         "answer": f"w{i % 13}", "foil": f"w{(i + 5) % 13}"} for i in range(n)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")


class Box:
    """An empty project with a model and a task file: write specs, run pytest, read the report."""

    def __init__(self, pytester: pytest.Pytester, model: Path | None) -> None:
        self.pytester, self.path = pytester, pytester.path
        self.log = self.path / "calls.log"
        if model is None:
            torch_side.fake_model(self.path / "model")
        else:
            (self.path / "model").symlink_to(model)
        write_pairs(self.path / "pairs.jsonl")

    def spec(self, claims: str, name: str = "s.circuits.yaml", header: str = HEADER) -> Path:
        """A spec of these claims, each line of which is written without the indentation below `claims:`."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        body = "".join(f"  {line}\n" if line else "\n" for line in claims.strip("\n").split("\n"))
        path.write_text(f"{header}claims:\n{body}", encoding="utf-8")
        return path

    def python(self, source: str, name: str = "test_python.py") -> Path:
        path = self.path / name
        path.write_text(source, encoding="utf-8")
        return path

    def run(self, *args: Any, **options: Any) -> pytest.RunResult:
        """pytest in this process, with `--circuits-json`."""
        given = [str(a) for a in args]
        json_option = [] if any(a.startswith("--circuits-json") for a in given) else ["--circuits-json=report.json"]
        self.result = self.pytester.runpytest_inprocess(*given, *json_option, **options)
        return self.result

    @property
    def report(self) -> Any:
        return json.loads((self.path / "report.json").read_text(encoding="utf-8"))

    @property
    def claims(self) -> dict[str, Any]:
        return {claim["claim"]: claim for claim in self.report["claims"]}

    @property
    def verdicts(self) -> dict[str, str]:
        return {claim["nodeid"].partition("::")[2]: claim["verdict"] for claim in self.report["claims"]}

    @property
    def calls(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    def subprocess_conftest(self, more: str = "") -> None:
        """The fake torch side for processes of their own."""
        self.pytester.makeconftest(f"""
from tests.fakes import torch_side
torch_side.install({str(self.log)!r})
{more}
""")


def save_tokenizer(folder: Path, words: list[str] = WORDS) -> None:
    """A tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", unk_token="<unk>").save_pretrained(folder)


def tiny_llama(seed: int = 0) -> Any:
    """A random Llama of 3 layers and 4 heads."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def fake_box(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, register: Callable[..., None]) -> Box:
    """A project whose models are fakes and whose claims may use the property `stated`."""
    from tests.fakes import torch_side

    made = Box(pytester, None)
    monkeypatch.setattr("pytest_circuits.measurement.models.default_opener", torch_side.opener)
    register(torch_side.PROPERTIES, "stated", torch_side.STATED)
    monkeypatch.setattr(torch_side, "LOG", made.log)
    for name in ("GITHUB_ACTIONS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # processes of their own find the fakes
    return made
