"""The JSON Schema of reports: shipped, printed, and true of what a run writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_circuits import cli, report
from pytest_circuits.core.verdict import REASONS
from pytest_circuits.errors import Invalid
from pytest_circuits.report.build import build_report
from pytest_circuits.report.model import json_schema
from tests.fakes.records import recorded
from tests.fakes.schema_validator import faults
from tests.paths import DOCS

SHIPPED = Path(report.__file__).parent / "circuits-report-1.json"


@pytest.fixture(scope="module")
def schema():
    return json_schema()


def test_the_shipped_schema_is_up_to_date_and_printed(capsys):
    """Remedy: `pytest-circuits schema --report --out pytest_circuits/report/circuits-report-1.json`."""
    assert cli.main(["schema", "--report"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(SHIPPED.read_text(encoding="utf-8"))


def test_a_report_fits(schema):
    content = build_report([recorded(), recorded(Invalid("why")), recorded(bound={"within": [0.2, 0.5]})], 1.0).as_json()
    assert list(faults(content, schema, schema)) == []


@pytest.mark.parametrize("name", ["consistency_specificity", "neuron_circuits", "gradient_causal"])
def test_reports_of_earlier_runs_fit(schema, name):
    content = json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    assert list(faults(content, schema, schema)) == []


@pytest.mark.parametrize(("key", "value"), [("verdict", "sure"), ("estimate", "0.3"), ("nodeid", None), ("surprise", 1)])
def test_a_damaged_report_does_not(schema, key, value):
    content = build_report([recorded()], 1.0).as_json()
    content["claims"][0][key] = value
    assert list(faults(content, schema, schema)) != []


def test_the_reasons_of_verdicts_are_listed(schema):
    description = schema["$defs"]["ClaimRecord"]["properties"]["reason_code"]["description"]
    assert all(code in description for code in REASONS)
