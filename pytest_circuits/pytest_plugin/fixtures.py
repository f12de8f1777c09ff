"""Fixtures for claims in Python: `circuits`, and `circuits_model` for users to override."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .api.circuits import CircuitsFixture


@pytest.fixture(scope="session")
def circuits(pytestconfig: pytest.Config) -> CircuitsFixture:
    """Open models and tasks, measure properties, check claims; measurements are cached and shared with spec files."""
    from .api.circuits import CircuitsFixture
    from .keys import STATE

    return CircuitsFixture(pytestconfig.stash[STATE])


@pytest.fixture(scope="session")
def circuits_model() -> Any:
    """The model under test, for suites that run on whichever checkpoint is at hand. Override it: return a path, a hub id or a module."""
    pytest.fail(
        "the fixture circuits_model has to be overridden: define it in conftest.py with scope='session', "
        "and return a model directory, a hub id or a Hugging Face model",
        pytrace=False,
    )
