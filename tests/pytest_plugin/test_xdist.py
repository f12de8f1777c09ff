"""pytest-xdist: the same verdicts from any number of workers, each measurement made once, one report."""

from __future__ import annotations

import tempfile

import pytest

from tests.fakes.project import DEFAULTS, header

pytest.importorskip("xdist")

SUITE = """
many:
  stated: {task: swap, value: [0.5, 0.51, 0.52, 0.53, 0.54, 0.55]}
  at_least: 0.1
other:
  stated: {task: other, method: [atp, eap]}
  at_least: 0.1
low:
  stated: {value: 0.1, low: 0.0, high: 0.2}
  at_least: 0.5
open:
  stated: {value: 0.5, low: 0.0, high: 1.0}
  at_least: 0.5
  marks: [xfail]
nothing:
  stated: {raises: invalid}
  at_least: 0.5
  expect: invalid
bug:
  stated: {raises: bug}
  at_least: 0.5
"""
MEASURED = ["attribute atp other", "attribute atp swap", "attribute eap other", "encode other", "encode swap"]


@pytest.fixture
def suite(box):
    box.subprocess_conftest()
    box.spec(SUITE, "one.circuits.yaml")
    box.spec(SUITE, "two.circuits.yaml")
    box.python("""
import pytest
@pytest.mark.parametrize('n', [1, 2])
def test_it(circuits, n):
    swap = circuits.task('pairs.jsonl', name='swap')
    circuits.check(circuits.model('model', name='tiny').measure('stated', task=swap), at_least=0.1)
""")
    return box


def essence(report):
    """A report without what a second run cannot repeat."""
    return [{k: v for k, v in claim.items() if k != "cost"} for claim in report["claims"]]


@pytest.mark.extensive
def test_workers_give_the_verdicts_of_a_plain_run_and_measure_once(suite):
    suite.run("-p", "no:xdist")
    plain = suite.report
    assert len(plain["claims"]) == 26
    for arguments in (["-n", "0"], ["-n", "2"], ["-n", "2", "--dist", "loadfile"]):
        suite.log.unlink()
        cache = f"cache-{'-'.join(arguments)}".replace(" ", "")
        result = suite.run(*arguments, f"--circuits-cache-dir={cache}", "-v")
        result.assert_outcomes(passed=20, failed=4, xfailed=2)
        assert result.ret == 1
        assert essence(suite.report) == essence(plain)
        assert sorted(call for call in suite.calls if not call.startswith("open")) == MEASURED
        assert suite.report["suite"]["cost"]["forwards"] == plain["suite"]["cost"]["forwards"] == 6
        assert suite.report["models"] == plain["models"]
        assert [p.name for p in suite.path.glob("*.json")] == ["report.json"]
    result.stdout.fnmatch_lines(["*INVALID (as expected)*one.circuits.yaml::nothing::tiny*"])
    result.stdout.fnmatch_lines(
        ["refuted: stated = 0.100 [[]0.000, 0.200], should be at least 0.5", "REFUTED one.circuits.yaml::low::tiny*"]
    )
    suite.log.unlink()
    suite.run("-n", "2", f"--circuits-cache-dir={cache}")
    assert (suite.calls, suite.report["suite"]["cost"]["forwards"]) == ([], 0), "a warm run opens no model in any worker"


@pytest.mark.extensive
def test_a_wrong_spec_stops_all_workers_before_anything_is_measured(suite):
    suite.spec("c:\n  stated: {}", "bad.circuits.yaml")
    suite.spec("c:\n  stated: {valeu: 1}\n  at_least: 0.1", "worse.circuits.yaml")
    result = suite.run("-n", "2")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["bad.circuits.yaml:8:3: claims.c: a claim needs exactly one bound*"])
    result.stdout.fnmatch_lines(["worse.circuits.yaml:9:14: claims.c.stated: unknown parameter 'valeu'; did you mean 'value'?*"])
    result.stdout.fnmatch_lines(["*Interrupted: 2 errors during collection*"])
    assert "Traceback" not in result.stdout.str()
    assert (suite.calls, suite.report["claims"], len(suite.report["suite"]["errors"])) == ([], [], 2)
    suite.run("-n", "2", "--continue-on-collection-errors")
    assert len(suite.report["claims"]) == 26


@pytest.mark.extensive
def test_a_model_on_the_command_line_that_no_spec_has_is_a_usage_error_with_workers_too(suite):
    result = suite.run("-n", "2", "--circuits-model=tinny=model")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --circuits-model tinny=…: no collected spec has a model of that name"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert suite.calls == []
    assert suite.run("-n", "2", "--circuits-model=tiny=model", "one.circuits.yaml", "-k", "many").ret == 0


@pytest.mark.extensive
def test_workers_share_measurements_that_are_not_kept(suite, monkeypatch):
    scratch = suite.path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    suite.run("-n", "2", "--circuits-no-cache")
    assert sorted(call for call in suite.calls if not call.startswith("open")) == MEASURED
    assert not (suite.path / ".circuits_cache").exists()
    assert [p for p in scratch.iterdir() if p.name.startswith("pytest-circuits")] == []


@pytest.mark.extensive
def test_a_real_measurement_is_made_once_by_two_workers(real):
    real.spec("""
shared:
  reuse: {task: swap, p: [0.2, 0.25, 0.3]}
  at_least: 0.1
nec:
  necessity: {task: swap, p: 0.3, draws: 20}
  at_most: 0.9
""", header=header("tiny: {path: model}", more=DEFAULTS))  # fmt: skip
    real.run("--circuits-cache-dir=alone")
    alone = real.report
    result = real.run("-n", "2", "--circuits-cache-dir=together")
    assert result.ret == 0
    assert essence(real.report) == essence(alone)
    assert real.report["suite"]["cost"]["forwards"] == alone["suite"]["cost"]["forwards"] > 0
    assert sum(c["cost"]["measured"] for c in real.report["claims"]) == sum(c["cost"]["measured"] for c in alone["claims"])
