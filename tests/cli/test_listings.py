"""`pytest-circuits properties NAME` and its like: definitions and parameters without reading code."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_circuits.ablation import ABLATIONS
from pytest_circuits.attribution import METHODS
from pytest_circuits.cli import main
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.tasks import TASKS

LISTS = {"properties": PROPERTIES, "tasks": TASKS, "methods": METHODS, "ablations": ABLATIONS}
EVERY = [(kind, name) for kind, registry in LISTS.items() for name in registry]


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_every_entry_says_what_it_is_and_what_it_takes(kind, name, capsys):
    assert main([kind, name]) == 0
    output = capsys.readouterr().out
    assert len(output.splitlines()[0]) > 20
    if kind in ("properties", "tasks"):
        assert "parameters:" in output


def test_parameters_are_shown_with_default_and_meaning(capsys):
    main(["properties", "reuse"])
    output = capsys.readouterr().out
    assert "  p (default 0.95): share of examples whose circuit a component must be in" in output.splitlines()
    assert "  task (required)" in output.splitlines()


def test_an_unknown_name_is_one_line_with_a_suggestion(capsys):
    assert main(["methods", "epa"]) == 1
    assert "did you mean 'eap'?" in capsys.readouterr().err


def test_methods_are_described_without_importing_torch():
    calls = "main(['methods', 'eap']); main(['ablations'])"
    code = f"import sys; from pytest_circuits.cli import main; {calls}; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
