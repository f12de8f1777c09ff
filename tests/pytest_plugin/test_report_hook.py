"""Third parties get the finished report, and their renderers run at the end of a session."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CLAIMS = "c:\n  stated: {value: 0.5}\n  at_least: 0.1"
CONFTEST = """
from pytest_circuits.report.renderers import RENDERERS, Section


class Names:
    def sections(self, report, context):
        yield Section("names", tuple(f"{claim.claim} is {claim.verdict}" for claim in report.claims))


if "names" not in RENDERERS:
    RENDERERS.add("names", Names, purpose="summary")


def pytest_circuits_report(report, config):
    (config.rootpath / "hook.txt").open("a").write(f"{len(report.claims)} {report.claims[0].verdict} {report.suite.alpha}\\n")
    try:
        report.claims[0].verdict = "refuted"
    except ValueError as problem:
        assert "frozen" in str(problem)
"""


@pytest.fixture(autouse=True)
def unregistered():
    from pytest_circuits.report.renderers import RENDERERS

    yield
    if "names" in RENDERERS:
        RENDERERS.remove("names")


def test_a_renderer_of_a_conftest_and_a_hook_see_the_report(box):
    box.spec(CLAIMS)
    box.pytester.makeconftest(CONFTEST)
    box.run().assert_outcomes(passed=1)
    box.result.stdout.fnmatch_lines(["*= circuits =*", "*= names =*", "c is certified", "report: report.json"])
    assert (box.path / "hook.txt").read_text() == "1 certified 0.05\n"


def test_a_run_without_claims_calls_no_hook(box):
    box.pytester.makeconftest(CONFTEST)
    box.python("def test_it(): pass\n")
    box.pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert not (box.path / "hook.txt").exists()


def test_collecting_imports_no_report(box):
    """Start-up counts: the report's models are built when there is something to report."""
    box.spec("c:\n  reuse: {task: swap}\n  at_least: 0.1")
    code = (
        "import json, sys, pytest; code = pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider']); "
        "open('imported.json', 'w').write(json.dumps([int(code), [m for m in sys.modules if m.startswith('pytest_circuits.report')]]))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=box.path, check=True, capture_output=True, timeout=300)
    assert json.loads((box.path / "imported.json").read_text()) == [0, []]
