"""The report of a run: sums, counts, names of models."""

from __future__ import annotations

import json

import pytest

from pytest_circuits.core.results import Description
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.report.build import build_report, tally
from pytest_circuits.report.model import Report, SpecMistake, notes
from tests.fakes.records import record, recorded
from tests.paths import DOCS


def test_the_report_sums_costs_and_counts_verdicts():
    claims = [recorded(cost=Cost(2, 1, 0.1, 3, 4)), recorded(Invalid("x"), cost=Cost(5, 0, 0.1, 1, 1)), recorded(bound={"at_least": 0.2})]
    report = build_report(claims, 1.23456, [SpecMistake(file="f", line=1, column=2, problem="p")])
    content = report.as_json()
    assert content["schema"] == 1
    assert content["suite"]["cost"] == {"forwards": 7, "backwards": 1, "cached": 4}
    assert content["suite"]["verdicts"] == {"certified": 1, "refuted": 1, "inconclusive": 0, "invalid": 1}
    assert (content["suite"]["seconds"], content["suite"]["errors"][0]["problem"]) == (1.235, "p")
    assert list(content) == ["schema", "suite", "models", "claims", "circuits"]
    assert tally([]) == {"certified": 0, "refuted": 0, "inconclusive": 0, "invalid": 0}


def test_models_of_one_name_are_distinguished_and_unknown_ones_are_not_another_model():
    other = Description("xyz", "llama", 1000, Universe(2, 3, 8), "float32")
    report = build_report(
        [recorded(model=None), recorded(), recorded(model=other), recorded(model=None), recorded(), recorded(model=other)], 0.0
    )
    assert [claim.model for claim in report.claims] == ["tiny", "tiny", "tiny-2", "tiny", "tiny", "tiny-2"]
    assert {name: model.fingerprint for name, model in report.models.items()} == {"tiny": "abc", "tiny-2": "xyz"}
    unopened = build_report([recorded(model=None)], 0.0).as_json()["models"]
    assert unopened == {"tiny": {"fingerprint": None, "architecture": None, "parameters": None}}


def test_building_a_report_leaves_the_records_as_they_were():
    claims = [recorded(), recorded(bound={"at_least": 0.2})]
    before = [entry.as_json() for entry in claims]
    build_report(claims, 0.0)
    assert [entry.as_json() for entry in claims] == before


@pytest.mark.parametrize("name", ["consistency_specificity", "neuron_circuits", "gradient_causal"])
def test_stored_reports_of_earlier_runs_load_and_lose_nothing(name):
    content = json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))
    assert Report.model_validate(content).as_json() == content


def test_notes_are_read_under_the_name_of_earlier_reports_as_well():
    assert notes(record(fields={"details": {"notes": ["a"]}})) == ("a",)
    assert notes(record(fields={"details": {"told": ["a"]}})) == ("a",)
    assert notes(record(Invalid("why", {"notes": ["a"]}))) == ()
