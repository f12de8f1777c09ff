"""Settings of the test suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pytest_circuits.registry import Registry

# The same examples on every run, however busy the machine is: no deadline, no check of speed, no examples left over from an earlier run.
settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Registers an entry for one test, in place of an earlier one of the name: `register(PROPERTIES, "mine", thing)`."""
    added: list[tuple[Registry, str]] = []

    def register(registry: Registry, name: str, thing: Any, **facts: Any) -> None:
        if (registry, name) in added:
            registry.remove(name)
        else:
            added.append((registry, name))
        registry.add(name, thing, **facts)

    yield register
    for registry, name in added:
        registry.remove(name)
