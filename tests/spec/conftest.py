from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_circuits.properties import PROPERTIES
from pytest_circuits.tasks import TASKS
from tests.fakes import catalogue as CATALOGUE


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Any]:
    """The registries hold the test catalogue, and nothing else, while a module's tests run."""
    with pytest.MonkeyPatch.context() as patch:
        for registry, entries in ((PROPERTIES, CATALOGUE.ALL), (TASKS, CATALOGUE.TASKS)):
            patch.setattr(registry, "builtin", {})
            patch.setattr(registry, "_loaded", dict(entries))
            patch.setattr(registry, "_facts", {})
            patch.setattr(registry, "_scanned", True)
        yield CATALOGUE


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a spec into an empty working directory; its path is relative, so that messages start with its name."""
    monkeypatch.chdir(tmp_path)

    def write(content: str | bytes, name: str = "s.circuits.yaml") -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
