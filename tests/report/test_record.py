"""From an evaluation to a record."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from pytest_circuits.claims.outcome import Evaluation
from pytest_circuits.core.verdict import Estimate, invalid
from pytest_circuits.errors import Invalid, ModelError, Offline
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.report.build import build_report
from pytest_circuits.report.record import RecordedClaim, record_claim
from pytest_circuits.report.renderers.terminal import table
from tests.fakes.records import claim_of, record, recorded


def test_a_record_has_all_that_is_known_about_a_claim():
    made = record(Estimate(np.float64(0.4), (0.3, 0.45), 100, 0.9, "betting", details={"k": np.int64(3)}), cost=Cost(2, 1, 0.5, 3, 4))
    content = made.as_json()
    assert content.items() >= {"estimate": 0.4, "interval": [0.3, 0.45], "interval_kind": "betting", "confidence": 0.9, "n": 100}.items()
    assert content.items() >= {"verdict": "refuted", "passed": False, "details": {"k": 3}, "bound": {"at_least": 0.5}}.items()
    assert content["cost"] == {"forwards": 2, "backwards": 1, "seconds": 0.5, "hits": 3, "measured": 4, "cached": False}
    assert record(expect="refuted").passed is True
    assert record(expect="refuted", passed=False).passed is False


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_record_holds_a_whole_measurement_or_none(value, place):
    parts = [0.4, 0.3, 0.5]
    parts[place] = value
    made = recorded(Estimate(parts[0], (parts[1], parts[2]), 100))
    found = made.record
    assert (found.estimate, found.interval, found.n, found.verdict, found.reason_code) == (None, None, 0, "invalid", "not-finite")
    assert table(build_report([made], 0.1))


def test_what_stopped_a_measurement_is_in_the_details_and_in_the_code():
    stopped = record(Invalid("why", {"counted": 3}, code="too-few-examples"))
    assert (stopped.details, stopped.reason_code, stopped.reason) == ({"counted": 3}, "too-few-examples", "why")
    assert record(Invalid("why")).reason_code == "invalid"
    unopened = record(ModelError("why"), model=None)
    assert (unopened.details, unopened.reason_code) == ({"error": "ModelError"}, "model-error")
    assert record(Offline("why")).reason_code == "offline"


def test_the_facts_behind_a_reason_are_plain_values():
    made = record(bound={"at_least": 0.35})
    assert made.reason_code == "interval-straddles-bound"
    assert json.loads(json.dumps(made.reason_arguments)) == {
        "estimate": 0.4, "interval": [0.3, 0.45], "confidence": 0.9, "bound": {"at_least": 0.35},
        "outlook": "more-examples", "needed": 440, "now": 100, "unit": "examples",
    }  # fmt: skip


def test_an_evaluation_without_a_model_is_a_record_without_facts():
    made = record_claim("n", claim_of(), Evaluation(invalid("invalid", "gone"), None, Cost(), None))
    assert (made.model, made.record.details, made.record.reason) == (None, {}, "gone")


def test_a_record_survives_the_way_between_processes():
    made = recorded(Estimate(0.4, (0.3, 0.45), 100, 0.9, details={"units": ("L0H1",)}))
    sent = json.loads(json.dumps(made.as_json()))
    assert RecordedClaim.model_validate(sent) == made
    with pytest.raises(ValueError, match="frozen"):
        made.record.verdict = "certified"


def test_an_error_keeps_its_message_under_a_code_that_verdicts_use_as_well():
    stopped = record(Invalid("the metric is NaN", code="not-finite"))
    assert (stopped.reason, stopped.reason_code) == ("the metric is NaN", "not-finite")
