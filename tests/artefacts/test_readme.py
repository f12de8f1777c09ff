"""What the README shows is what happens: its spec, its Python, its table of options."""

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


def test_the_spec_and_the_python_test_give_the_rows_that_are_shown(clone):
    done = pytest_in(clone, "specs", "test_core.py")
    assert done.returncode == 0, done.stdout
    shown = [line.split() for line in block("console", "pytest specs/example").splitlines() if re.match(r"(same|shared|few)-", line)]
    assert len(shown) == 3
    printed = [line.split() for line in done.stdout.splitlines()]
    assert [row for row in shown if row not in printed] == []


def test_the_notebook_example_runs(clone):
    code = block("python", "open_model") + "\nassert found.scores.shape == (64, 36) == every.metric.shape\nassert 'L0MLP' in shared\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


def test_every_option_that_is_named_exists_and_every_one_that_exists_is_named():
    text = subprocess.run([sys.executable, "-m", "pytest", "--help"], cwd=ROOT, capture_output=True, text=True, timeout=HANG).stdout
    existing = set(re.findall(r"--circuits-[a-z-]+", text))
    assert set(re.findall(r"--circuits-[a-z-]+", README)) == existing


def test_names_in_the_readme_are_all_names_that_there_are():
    """Asked of a process of its own: other tests register what they like."""
    code = """
from pytest_circuits.ablation import ABLATIONS
from pytest_circuits.attribution import METHODS
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.tasks import TASKS
print(*(name for registry in (METHODS, ABLATIONS, PROPERTIES, TASKS) for name in registry))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    names = done.stdout.split()
    assert len(names) > 40, done.stderr
    assert [name for name in names if f"`{name}`" not in README] == []
