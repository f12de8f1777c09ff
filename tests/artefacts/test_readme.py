"""What the README shows is what happens: its spec and its Python. It is short, and its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.waiting import HANG

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    """The code block of a language that contains a text."""
    return next(b for b in re.findall(rf"```{language}\n(.*?)```", README, re.S) if containing in b)


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options], cwd=folder, capture_output=True, text=True, timeout=HANG
    )


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder with the README's paths: models/, and the spec and the Python test that it shows."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "models").symlink_to(ROOT / "models")
    (folder / "specs").mkdir()
    (folder / "specs" / "example.circuits.yaml").write_text(block("yaml", "version: 1"), encoding="utf-8")
    (folder / "test_core.py").write_text(block("python", "circuits.check"), encoding="utf-8")
    return folder


@pytest.mark.extensive
def test_the_spec_and_the_python_test_give_the_rows_that_are_shown(clone):
    done = pytest_in(clone, "specs", "test_core.py")
    assert done.returncode == 0, done.stdout
    shown = [line.split() for line in block("console", "pytest specs/example").splitlines() if re.match(r"(same|shared|few)-", line)]
    assert len(shown) == 3
    printed = [line.split() for line in done.stdout.splitlines()]
    assert [row for row in shown if row not in printed] == []


@pytest.mark.extensive
def test_the_notebook_example_runs(clone):
    checks = "assert attribution.scores.shape == (64, 36) == effects.metric.shape\nassert shared[:3] == ('L0H5', 'L0MLP', 'L1MLP')\n"
    code = block("python", "open_model") + checks
    done = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


def test_it_is_short():
    assert len(README.split()) < 700


def test_it_names_the_two_commands_of_a_clone():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert {"specs", "test"} <= {name for name in re.findall(r"^\$ make ([a-z-]+)", README, re.M) if name in targets}
