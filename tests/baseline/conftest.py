"""Projects with fake models, as the tests of the plugin have them; shared fakes of other folders."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy  # noqa: F401 (pytester forgets modules that an inner run was first to import)
import pytest
import safetensors.numpy  # noqa: F401
import scipy.special  # noqa: F401

for folder in ("plugin", "properties"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))

import plugin_fakes  # noqa: E402
from plugin_box import Box, import_package  # noqa: E402

import_package(torch_side=False)


@pytest.fixture
def box(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Box:
    """A project whose models are fakes and whose claims may use the property `stated`."""
    made = Box(pytester, None)
    monkeypatch.setattr("pytest_circuits.lab.models.default_opener", plugin_fakes.opener)
    monkeypatch.setitem(plugin_fakes.PROPERTIES._loaded, "stated", plugin_fakes.STATED)
    monkeypatch.setattr(plugin_fakes, "LOG", made.log)
    for name in ("GITHUB_ACTIONS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return made
