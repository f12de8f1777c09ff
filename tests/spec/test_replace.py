"""`--circuits-model NAME=loader:pkg.mod:function`: a model made by Python in the place of one of a spec."""

from __future__ import annotations

import pytest

from pytest_circuits.errors import OptionError
from pytest_circuits.spec.load import load_suite

SPEC = """\
version: 1
models:
  candidate: {path: org/model, revision: main, dtype: float32}
  run: {checkpoints: run/step-*}
tasks: {ioi: {builtin: ioi, n: 32}}
claims:
  done: {accuracy: {task: ioi}, at_least: 0.5}
"""


@pytest.fixture
def replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in (1, 2):
        (tmp_path / "run" / f"step-{step}").mkdir(parents=True)
    (tmp_path / "s.circuits.yaml").write_text(SPEC)

    def models(**given):
        return load_suite("s.circuits.yaml", models=given).models

    return models


def test_a_loader_takes_the_place_of_a_path_with_its_revision_and_keeps_the_precision(replaced):
    made = replaced(candidate="loader:models.damaged:zeroed_head")["candidate"]
    assert (made.path, made.revision, made.loader, made.dtype) == (None, None, "models.damaged:zeroed_head", "float32")


def test_a_loader_takes_the_place_of_a_whole_series(replaced):
    one = replaced(run="loader:models.damaged:int8")["run"]
    assert (one.name, one.path, one.loader) == ("run", None, "models.damaged:int8")


def test_a_reference_without_its_prefix_is_told_how_to_write_it(replaced):
    with pytest.raises(OptionError, match=r"there is no directory .*models\.damaged:int8; .* write candidate=loader:models\.damaged:int8$"):
        replaced(candidate="models.damaged:int8")


@pytest.mark.parametrize("wrong", ["loader:", "loader:models.damaged", "loader:models/damaged:int8", "loader:a:b:c"])
def test_what_follows_the_prefix_is_a_reference(replaced, wrong):
    with pytest.raises(OptionError, match=r"a loader is written loader:package\.module:function"):
        replaced(candidate=wrong)


def test_a_directory_that_is_called_like_a_reference_is_a_directory(replaced, tmp_path):
    (tmp_path / "runs:last").mkdir()
    made = replaced(candidate="runs:last")["candidate"]
    assert made.loader is None and made.path == str(tmp_path / "runs:last")
