"""Properties of tests in JUnit's XML."""

from __future__ import annotations

from pytest_circuits.errors import Invalid
from pytest_circuits.report.renderers.junit import JunitRenderer
from tests.fakes.records import record


def test_verdict_estimate_and_interval_of_each_claim_without_what_is_null():
    assert JunitRenderer().properties([record(), record(Invalid("x"))]) == [
        ("circuits_verdict", "refuted"), ("circuits_estimate", 0.4), ("circuits_interval", [0.3, 0.45]), ("circuits_verdict", "invalid"),
    ]  # fmt: skip
