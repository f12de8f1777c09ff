"""Projects with fake models, as the tests of the plugin have them; shared fakes of other folders."""

from __future__ import annotations

from typing import Any

import numpy  # noqa: F401 (pytester forgets modules that an inner run was first to import)
import pytest
import safetensors.numpy  # noqa: F401
import scipy.special  # noqa: F401

from tests.fakes.project import Box, fake_box, import_package

import_package(torch_side=False)


@pytest.fixture
def box(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, register: Any) -> Box:
    """A project whose models are fakes and whose claims may use the property `stated`."""
    return fake_box(pytester, monkeypatch, register)
