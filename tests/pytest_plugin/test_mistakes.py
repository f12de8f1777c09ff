"""Specs with mistakes: refused before anything is measured, in every kind of run. The spec layer has the full table."""

from __future__ import annotations

import json

import pytest

GOOD = "c:\n  stated: {task: swap}\n  at_least: 0.1"
BAD = {
    "unknown key": (
        "version: 1\nmodels: {a: {path: model}}\nclaim: {}\n",
        "bad.circuits.yaml:3:1: unknown key 'claim'; did you mean 'claims'?*",
    ),
    "duplicate key": ("version: 1\nversion: 1\n", "bad.circuits.yaml:2:1: *"),
    "no bound": (
        "version: 1\nmodels: {a: {path: model}}\nclaims:\n  c:\n    stated: {}\n",
        "bad.circuits.yaml:4:3: claims.c: a claim needs exactly one bound*",
    ),
    "vacuous bound": (
        "version: 1\nmodels: {a: {path: model}}\nclaims:\n  c:\n    stated: {}\n    at_least: 0\n",
        "bad.circuits.yaml:6:15: *vacuous*",
    ),
    "unknown task": (
        "version: 1\nmodels: {a: {path: model}}\nclaims:\n  c:\n    stated: {task: nix}\n    at_least: 0.1\n",
        "bad.circuits.yaml:5:20: *unknown task 'nix'*",
    ),
    "tab": ("version: 1\nmodels:\n\ta: 1\n", "bad.circuits.yaml:3:1: *tab*"),
    "bracket": ("version: 1\nmodels: {a: [\n", "bad.circuits.yaml:*: '{' is not closed*"),
    "tag": ("version: !!python/object:os.system 1\n", "bad.circuits.yaml:1:10: *"),
    "empty": ("", "bad.circuits.yaml:1:1: *empty*"),
    "no UTF-8": (b"version: 1\n# \xff\n", "bad.circuits.yaml:2:3: *UTF-8*"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_wrong_spec_stops_the_session_before_anything_is_measured(box, kind):
    text, told = BAD[kind]
    box.spec(GOOD)
    (box.path / "bad.circuits.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert box.run().ret == pytest.ExitCode.INTERRUPTED == 2
    box.result.stdout.fnmatch_lines(["*ERROR collecting bad.circuits.yaml*", told])
    assert "Traceback" not in box.result.stdout.str() + box.result.stderr.str()
    assert (box.calls, box.report["claims"]) == ([], [])


def test_all_mistakes_of_all_files_are_told_together_and_listed_in_the_report(box):
    box.spec("c:\n  statd: {}\n  at_least: 0.1\nd:\n  stated: {p: 1}\n  at_least: 2", "one.circuits.yaml")
    box.spec("c:\n  stated: {}", "two.circuits.yaml")
    assert box.run().ret == 2
    errors = box.report["suite"]["errors"]
    assert [(e["file"], e["line"], e["column"]) for e in errors] == [
        ("one.circuits.yaml", 9, 5), ("one.circuits.yaml", 12, 14), ("one.circuits.yaml", 13, 15), ("two.circuits.yaml", 8, 3)
    ]  # fmt: skip
    shown = box.result.stdout.str()
    assert all(f"{e['file']}:{e['line']}:{e['column']}: {e['problem']}" in shown for e in errors)


def test_the_user_can_ask_to_go_on(box):
    box.spec(GOOD)
    box.spec("c:\n  stated: {}", "bad.circuits.yaml")
    assert box.run("--continue-on-collection-errors").ret == 1
    assert box.verdicts == {"c::tiny::swap": "certified"}


def test_a_wrong_spec_that_is_not_selected_does_no_harm(box):
    box.spec(GOOD)
    box.spec("c:\n  stated: {}", "bad.circuits.yaml")
    assert box.run("s.circuits.yaml").ret == 0
    assert box.run("s.circuits.yaml::c").ret == 0


def test_collecting_only_finds_the_mistakes_too(box):
    box.spec("c:\n  stated: {}", "bad.circuits.yaml")
    assert box.run("--collect-only").ret == 2
    box.result.stdout.fnmatch_lines(["bad.circuits.yaml:8:3: *"])


def test_mistakes_and_failed_claims_are_annotated_on_github(box, monkeypatch):
    """Paths are relative to the repository, percent signs and line breaks are escaped."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(box.path.parent))
    where = box.path.name
    box.spec("c:\n  stated: {}", "bad.circuits.yaml")
    box.run("bad.circuits.yaml")
    box.result.stdout.fnmatch_lines(
        [f"::error file={where}/bad.circuits.yaml,line=8,col=3,title=spec::claims.c: a claim needs exactly one bound*"]
    )
    box.spec("""
fine:
  stated: {}
  at_least: 0.1
low:
  stated: {value: 0.1, low: 0.0, high: 0.2}
  at_least: 0.5
known:
  stated: {value: 0.1, low: 0.0, high: 0.2}
  at_least: 0.5
  marks: [xfail]
open:
  stated: {value: 0.5, low: 0.0, high: 1.0}
  at_least: 0.5
many:
  stated: {raises: lines}
  at_least: 0.5
""")
    box.run("s.circuits.yaml", "--circuits-inconclusive=pass")
    found = [line for line in box.result.outlines if line.startswith("::error")]
    assert found == [
        f"::error file={where}/s.circuits.yaml,line=11,title=claim low::refuted: stated = 0.100 [0.000, 0.200], should be at least 0.5",
        f"::error file={where}/s.circuits.yaml,line=21,title=claim many::invalid: stated: first line",
    ]
    monkeypatch.delenv("GITHUB_ACTIONS")
    box.run("s.circuits.yaml")
    assert "::error" not in box.result.stdout.str()


def test_a_broken_third_party_property_stops_collection_with_its_traceback(box):
    """A bug in somebody's parameters is no mistake of the spec."""
    box.pytester.makeconftest("""
from pydantic import field_validator
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import Parameters
from pytest_circuits.properties.protocol import Property
class Broken(Parameters):
    size: int = 3
    @field_validator("size")
    @classmethod
    def check(cls, value):
        raise ZeroDivisionError("in a validator")
PROPERTIES.add("broken", Property("broken", Broken, None, 0.0, 1.0))
def pytest_unconfigure():
    PROPERTIES.remove("broken")
""")
    box.spec(GOOD)
    box.spec("c:\n  broken: {size: 1}\n  at_least: 0.1", "other.circuits.yaml")
    assert box.run().ret == 2
    box.result.stdout.fnmatch_lines(["*ZeroDivisionError: in a validator"])
    assert box.calls == []
    assert json.loads((box.path / "report.json").read_text())["claims"] == []
