"""The JSON Schema says what `load_suite` accepts, as far as a schema can; the command prints it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pytest_circuits
from pytest_circuits import cli
from pytest_circuits.attribution import METHODS
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.protocol import Property
from pytest_circuits.spec.schema import json_schema
from pytest_circuits.spec.yaml_reader import read_yaml
from tests.fakes.schema_validator import faults

SHIPPED = Path(pytest_circuits.__file__).parent / "spec" / "circuits-spec-1.json"


GOOD = """
version: 1
models:
  candidate: {path: ../m, revision: main, dtype: float32}
  made: {loader: "a.b:c"}
  run: {checkpoints: ../run/step-*}
  hub: {path: org/name, checkpoints: {revisions: [step1, step2]}}
  seeds: {checkpoints: [../a, {path: ../b, at: 1.5}], dtype: float32}
tasks:
  addition: {builtin: addition, digits: 2, n: 256, seed: 0}
  mine: {file: data/mine.jsonl, scoring: argmax, stop: digits}
  theirs: {loader: "mypkg.tasks:pairs", whatever: [1]}
defaults: {attribution: [eap, atp], size: 10%, p: 0.8}
claims:
  a: {reuse: {task: [addition, mine], p: [0.5, 1]}, at_least: 0.4, marks: [slow, {xfail: {strict: true}}]}
  b: {jaccard: {tasks: [addition, mine]}, at_most: 0.6, model: made}
  c: {necessity: {task: mine, circuit: {task: addition}, ablation: mean}, within: [0.1, 0.9], expect: refuted, models: [made]}
  d: {trajectory: {of: {reuse: {task: [mine], p: 0.5}}, shape: [no_drop, spread]}, at_most: 0.1, model: run}
  e: {trajectory: {of: [{necessity: {task: mine}}], shape: emerges_by, at: 100}, at_least: 0.1}
"""
BAD = {
    "an unknown key": ("version: 1", "version: 1\nmodles: {}"),
    "another version": ("version: 1", "version: 2"),
    "two sources of a model": ("{path: ../m,", "{path: ../m, loader: 'a:b',"),
    "an unknown built-in": ("builtin: addition", "builtin: additoin"),
    "two kinds of task": ("{file: data/mine.jsonl", "{builtin: ioi, file: data/mine.jsonl"),
    "a negative n": ("n: 256", "n: -1"),
    "an unknown property": ("a: {reuse:", "a: {reuze:"),
    "two properties": ("{jaccard: ", "{reuse: {task: mine}, jaccard: "),
    "no bound": ("at_least: 0.4, ", ""),
    "two bounds": ("at_most: 0.6", "at_most: 0.6, at_least: 0.1"),
    "an unknown parameter": ("p: [0.5, 1]", "q: 1"),
    "a P of 0": ("p: [0.5, 1]", "p: 0"),
    "a P of 0 in a list": ("p: [0.5, 1]", "p: [0.5, 0]"),
    "an unknown attribution": ("eap, atp", "eap, apt"),
    "an unknown ablation": ("ablation: mean", "ablation: meen"),
    "an unknown verdict": ("expect: refuted", "expect: refused"),
    "a range of one number": ("[0.1, 0.9]", "[0.1]"),
    "model and models": ("model: made", "model: made, models: [made]"),
    "checkpoints of a loader": ("{checkpoints: ../run/step-*}", "{loader: 'a:b', checkpoints: ../run/step-*}"),
    "a revision beside checkpoints": ("{path: org/name, ", "{path: org/name, revision: main, "),
    "no checkpoints": ("[../a, {path: ../b, at: 1.5}]", "[]"),
    "an unknown key of a checkpoint": ("at: 1.5", "att: 1.5"),
    "an unknown property inside": ("{necessity: {task: mine}}", "{necesity: {task: mine}}"),
    "a series inside": ("{necessity: {task: mine}}", "{role_stability: {task: mine}}"),
    "two properties inside": ("{necessity: {task: mine}}", "{necessity: {task: mine}, reuse: {task: mine}}"),
    "an unknown parameter inside": ("{task: [mine], p: 0.5}", "{task: [mine], q: 0.5}"),
    "a confidence inside": ("{task: [mine], p: 0.5}", "{task: [mine], confidence: 0.5}"),
    "an unknown shape": ("shape: emerges_by", "shape: emerges_before"),
    "a name with a bracket": ("  b:", "  'b[0]':"),
}  # fmt: skip


def _data(text: str) -> Any:
    return read_yaml(text.encode(), "s").data


@pytest.fixture(scope="module")
def schema() -> Any:
    return json_schema()


def test_the_schema_accepts_a_spec_that_uses_everything(schema: Any) -> None:
    """With the real properties and tasks."""
    assert list(faults(_data(GOOD), schema, schema)) == []


@pytest.mark.parametrize("case", BAD)
def test_the_schema_refuses_mistakes(schema: Any, case: str) -> None:
    """So that an editor marks them."""
    old, new = BAD[case]
    assert GOOD.count(old) == 1
    assert list(faults(_data(GOOD.replace(old, new)), schema, schema)) != []


def test_the_schema_says_what_methods_and_properties_are(schema: Any) -> None:
    """For an editor's completion."""
    method = schema["$defs"]["attribution-method"]
    assert method["enum"] == METHODS.names()
    assert all(f"{name}: " in method["description"] for name in METHODS)
    for name in PROPERTIES:
        assert schema["$defs"][name]["description"] == PROPERTIES.get(name).summary


def test_third_party_properties_are_in_the_schema(register: Any) -> None:
    """As soon as they are registered."""
    reuse = PROPERTIES.get("reuse")
    register(PROPERTIES, "mine", Property("mine", reuse.parameters, reuse.estimate, summary="my own property"))
    schema = json_schema()
    text = GOOD.replace("{reuse:", "{mine:")
    assert list(faults(_data(text), schema, schema)) == []
    assert schema["$defs"]["mine"]["description"] == "my own property"


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest_circuits", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8").stdout


def test_the_shipped_schema_is_up_to_date() -> None:
    """Remedy: `pytest-circuits schema --out pytest_circuits/spec/circuits-spec-1.json`."""
    assert json.loads(_run("schema")) == json.loads(SHIPPED.read_text(encoding="utf-8"))


def test_the_schema_is_printed_without_torch() -> None:
    """Nor are numpy or transformers needed to write specs."""
    code = (
        "import sys; from pytest_circuits.cli import main; main(['schema']); main(['methods']);"
        "print([m for m in ('torch', 'transformers', 'numpy', 'scipy') if m in sys.modules], file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.strip() == "[]"


def test_the_schema_can_be_written_to_a_file(tmp_path: Path) -> None:
    """The same text that is printed."""
    assert cli.main(["schema", "--out", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text(encoding="utf-8")) == json_schema()


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, no traceback."""
    assert cli.main(["schema", "--out", str(tmp_path / "none" / "s.json")]) == 1
    assert re.fullmatch(r"pytest-circuits: .*No such file.*\n", capsys.readouterr().err)


@pytest.mark.parametrize(("which", "name"), [("properties", "necessity"), ("tasks", "ioi"), ("methods", "relp")])
def test_lists_have_a_summary_for_each_name(which: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    assert cli.main([which]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert len(lines[name]) > 10
    assert all(lines.values())


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """As argparse does it."""
    with pytest.raises(SystemExit) as stop:
        cli.main(["scheme"])
    assert stop.value.code == 2
    assert "schema" in capsys.readouterr().err
