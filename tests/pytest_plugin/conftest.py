"""Runs of pytest inside pytest.

What inner runs import is imported here first: pytester forgets modules that an inner run was first to import.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy  # noqa: F401
import pytest
import safetensors.numpy  # noqa: F401
import scipy.special  # noqa: F401

from tests.fakes.project import Box, fake_box, import_package, save_tokenizer, tiny_llama

import_package(torch_side=False)


@pytest.fixture
def box(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, register: Any) -> Box:
    """A project whose models are fakes and whose claims may use the property `stated`."""
    return fake_box(pytester, monkeypatch, register)


@pytest.fixture(scope="session")
def torch_side() -> None:
    """Everything that a real measurement imports."""
    import_package(torch_side=True)
    import transformers.models.auto.modeling_auto
    import transformers.models.llama.modeling_llama  # noqa: F401


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, torch_side: None) -> SimpleNamespace:
    """A random model on disk, and a folder where all tests that use it keep its measurements."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny_llama().save_pretrained(folder / "model")
    save_tokenizer(folder / "model")
    return SimpleNamespace(model=folder / "model", cache=folder / "cache")


@pytest.fixture
def real(pytester: pytest.Pytester, tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Box:
    """A project with a real model; its measurements are kept for all tests."""
    made = Box(pytester, tiny.model)
    made.pytester.makeini(f"[pytest]\ncircuits_cache_dir = {tiny.cache}\n")
    for name in ("GITHUB_ACTIONS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return made
