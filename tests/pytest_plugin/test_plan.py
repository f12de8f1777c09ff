"""`--circuits-plan`: a forecast, and nothing else."""

from __future__ import annotations

import pytest

PLANNED = """
first:
  stated: {task: swap}
  at_least: 0.1
second:
  stated: {task: swap, value: 0.55}
  at_least: 0.1
third:
  stated: {task: swap, method: eap}
  at_least: 0.1
"""


def test_a_plan_says_what_each_claim_adds_and_runs_nothing(box):
    box.spec(PLANNED)
    box.python("def test_never(): raise SystemExit('a plan runs no test')\n")
    assert box.run("--circuits-plan").ret == 0
    box.result.stdout.fnmatch_lines([
        "*= plan =*",
        "s.circuits.yaml::first::tiny::swap",
        "    to measure: 1 Attribute, 1 Describe, 1 Encode; about 4 forwards and 2 backwards; 0 stored",
        "s.circuits.yaml::second::tiny::swap",
        "    nothing to measure (0 stored)",
        "s.circuits.yaml::third::tiny::swap",
        "    to measure: 1 Attribute; about 4 forwards and 2 backwards; 0 stored",
        "3 claims; to measure: 2 Attribute, 1 Describe, 1 Encode; about 8 forwards and 4 backwards; 0 stored",
        "Not in this plan: 1 other tests, which may measure too.",
    ])  # fmt: skip
    assert box.calls == []
    assert not (box.path / "report.json").exists()


def test_what_is_stored_is_not_planned_again(box):
    box.spec(PLANNED)
    box.run("-k", "first")
    assert box.run("--circuits-plan").ret == 0
    box.result.stdout.fnmatch_lines(["3 claims; to measure: 1 Attribute; about 4 forwards and 2 backwards; * stored"])


def test_a_plan_goes_on_where_models_tasks_or_properties_are_broken(box):
    header = """\
version: 1
models:
  gone: {path: ./gone}
  tiny: {path: model}
  made: {fixture: my_model}
tasks:
  swap: {file: pairs.jsonl}
  bad: {file: missing.jsonl}
"""
    box.spec(
        f"{PLANNED}\nwrong:\n  stated: {{task: bad}}\n  at_least: 0.1\n  model: tiny"
        "\nbuggy:\n  stated: {raises: bug}\n  at_least: 0.1\n  model: tiny",
        header=header,
    )
    assert box.run("--circuits-plan").ret == 0
    box.result.stdout.fnmatch_lines([
        "s.circuits.yaml::first::gone::swap", "    nothing to measure (0 stored)", "    note: model 'gone' * there is no directory *",
        "s.circuits.yaml::first::made::swap", "    note: not planned, since model 'made' come from fixtures, which a plan does not run",
        "s.circuits.yaml::wrong::tiny::bad", "    note: *missing.jsonl: cannot read the task file: No such file or directory",
        "s.circuits.yaml::buggy::tiny", "    note: cannot be planned: stated raised KeyError: 'a bug in a property'",
        "11 claims; *",
    ])  # fmt: skip
    assert box.calls == []


def test_a_plan_of_wrong_specs_is_refused_like_a_run(box):
    box.spec("c:\n  stated: {}")
    assert box.run("--circuits-plan").ret == pytest.ExitCode.INTERRUPTED
    box.spec(PLANNED, "good.circuits.yaml")
    box.run("--circuits-plan", "--continue-on-collection-errors")
    assert box.result.ret == 1 and box.calls == []
    box.result.stdout.fnmatch_lines(["good.circuits.yaml::first::tiny::swap", "3 claims; *"])


def test_a_plan_without_a_terminal_or_with_workers_runs_no_test_either(box):
    box.spec(PLANNED)
    assert box.run("--circuits-plan", "-p", "no:terminal").ret == 0
    assert box.run("--circuits-plan", "-n", "2").ret == 0
    box.result.stdout.fnmatch_lines(["3 claims; *"])
    assert box.calls == []


def test_a_plan_leaves_nothing_behind(box):
    box.spec(PLANNED)
    before = {p.name for p in box.path.iterdir()}
    box.run("--circuits-plan", "-p", "no:cacheprovider")
    assert {p.name for p in box.path.iterdir()} == before


COMPARING = """
core:
  reuse: {task: swap, p: 0.5}
  at_least: 0.1
beyond:
  reuse: {task: swap, p: 0.5, contrast: [other]}
  at_least: 0.1
moved:
  drift: {of: core, within: 0.1}
circuit-moved:
  drift: {of: beyond, overlap: jaccard, match: function, no_worse_by: 0.1}
against-another:
  drift: {of: core, against: old, within: 0.1}
robust:
  stability: {task: swap, p: 0.5, under: corruption, other_task: other}
  at_least: 0.1
"""


def test_a_plan_goes_all_the_way_where_tasks_or_models_are_compared(box):
    """Claims about drift, with and without a baseline, contrastive circuits, and the same prompts with another corruption."""
    from tests.fakes.project import DEFAULTS, header
    from tests.fakes.torch_side import fake_model

    fake_model(box.path / "old", b"older weights")
    rows = (box.path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    for row in range(len(rows)):
        rows[row] = rows[row].replace('"corrupt": "w', '"corrupt": "w1')
    (box.path / "others.jsonl").write_text("\n".join(rows), encoding="utf-8")
    head = header("tiny: {path: model}, old: {path: old}", "swap: {file: pairs.jsonl}, other: {file: others.jsonl}", DEFAULTS)
    claims = COMPARING
    for name in ("core", "beyond", "robust"):
        claims = claims.replace(f"\n{name}:\n", f"\n{name}:\n  model: tiny\n")
    box.spec(claims, header=head)
    assert box.run("--circuits-plan").ret == 0
    text = box.result.stdout.str()
    assert "note:" not in text, text
    box.result.stdout.fnmatch_lines([
        "s.circuits.yaml::core::tiny::swap", "    to measure: 1 Ablate, 1 Attribute, 1 Describe, 1 Encode; *",
        "s.circuits.yaml::beyond::tiny::swap", "    to measure: 1 Ablate, 1 Attribute, 1 Encode; *",
        "s.circuits.yaml::moved::tiny::swap", "    nothing to measure *",
        "s.circuits.yaml::circuit-moved::tiny::swap", "    nothing to measure *",
        "s.circuits.yaml::against-another::tiny::swap", "    to measure: 1 Ablate, 1 Attribute, 1 Describe, 1 Encode; *",
        "6 claims; *",
    ])  # fmt: skip
    assert box.calls == []
