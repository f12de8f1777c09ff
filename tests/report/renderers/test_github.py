"""Annotations for GitHub."""

from __future__ import annotations

from pytest_circuits.errors import Invalid
from pytest_circuits.report.build import build_report
from pytest_circuits.report.model import SpecMistake
from pytest_circuits.report.renderers import RunContext
from pytest_circuits.report.renderers.github import GithubRenderer
from tests.fakes.records import recorded


def lines(report, root, claims=True, **environment):
    context = RunContext(root, annotates_failures=not claims, environment=environment)
    return [line for section in GithubRenderer().sections(report, context) for line in section.lines]


def test_annotations_escape_what_github_reads_as_its_own(tmp_path):
    bad = recorded(Invalid("50% of\nthem"), claim="a,b:c", nodeid="x/s.circuits.yaml::a::tiny", line=7)
    mistake = SpecMistake(file="t", line=1, column=2, problem="a%\nb")
    report = build_report([bad, recorded(passed=True), recorded(fields={"outcome": "xfailed"})], 0.0, [mistake])
    assert lines(report, tmp_path) == [], "not on GitHub"
    found = lines(report, tmp_path, GITHUB_ACTIONS="true")
    assert found == [
        "::error file=t,line=1,col=2,title=spec::a%25%0Ab",
        "::error file=x/s.circuits.yaml,line=7,title=claim a%2Cb%3Ac::invalid: reuse(swap): 50%25 of",
    ]
    assert lines(report, tmp_path, claims=False, GITHUB_ACTIONS="true") == found[:1]
    inside = lines(report, tmp_path, claims=False, GITHUB_ACTIONS="true", GITHUB_WORKSPACE=str(tmp_path.parent))
    assert inside == [found[0].replace("file=t", f"file={tmp_path.name}/t")]
