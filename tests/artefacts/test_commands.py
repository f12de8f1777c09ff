"""The commands of a clone: what the Makefile's targets run, and what continuous integration runs."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib

import pytest

from tests.paths import ROOT
from tests.waiting import HANG

SCRIPT = ROOT / ".ci" / "run"


def commands(target):
    """The commands that a target runs, as make prints them; the environment is taken as it is."""
    done = subprocess.run(["make", "--dry-run", "--assume-old=.venv/ready", target], cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if not line.startswith("make")]


def test_continuous_integration_lints_before_it_tests():
    assert os.access(SCRIPT, os.X_OK)
    assert re.findall(r"^make (.*)", SCRIPT.read_text(encoding="utf-8"), re.M) == ["lint", "test"]


def test_lint_checks_style_types_and_layers():
    tools = [line.removeprefix(".venv/bin/") for line in commands("lint")]
    assert tools[-4:] == ["ruff check .", "ruff format --check .", "mypy", "lint-imports"]


@pytest.mark.parametrize(("target", "selection"), [("test", ""), ("test-quick", ' -m "not extensive"')])
def test_the_suite_is_run_whole_or_without_its_extensive_tests(target, selection):
    assert commands(target)[-1] == f".venv/bin/python -m pytest -n 2 --dist loadfile{selection}"


def test_marks_of_the_suite_are_registered():
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert {line.partition(":")[0] for line in options["markers"]} == {"slow", "extensive"}


def test_no_target_is_mistaken_for_a_file():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert targets == set(re.search(r"^\.PHONY: (.*)", makefile, re.M)[1].split())


def test_every_dependency_of_the_suite_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = project["dependencies"] + project["optional-dependencies"]["dev"]
    pinned = re.findall(r"^(.*)==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M)
    assert {re.split(r"[><=!~]", name)[0].lower() for name in required} - {name.lower() for name in pinned} == set()
