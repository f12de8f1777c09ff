"""Settings of the test suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pytest_circuits.registry import Registry
from tests.paths import SNAPSHOTS

# The same examples on every run, however busy the machine is: no deadline, no check of speed, no examples left over from an earlier run.
settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the texts of tests/snapshots again")


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[str, str | Iterable[str]], None]:
    """Compares a text, or lines, with `tests/snapshots/NAME.txt`; with --update-snapshots it writes the file instead."""
    update = request.config.getoption("--update-snapshots")

    def compare(name: str, content: str | Iterable[str]) -> None:
        text = content if isinstance(content, str) else "\n".join(content)
        path = SNAPSHOTS / f"{name}.txt"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        assert path.is_file(), f"there is no snapshot {path}; run this test with --update-snapshots"
        assert text + "\n" == path.read_text(encoding="utf-8")

    return compare


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
