"""Words and letters of tests."""

from __future__ import annotations

from pytest_circuits.errors import Invalid
from pytest_circuits.report.renderers.status import StatusRenderer
from tests.fakes.records import record

STATUS = StatusRenderer()


def test_the_worst_claim_that_failed_gives_the_word():
    certified, refuted, invalid = record(bound={"at_least": 0.2}), record(), record(Invalid("x"))
    expected, open_ = record(expect="refuted"), record(bound={"at_least": 0.35})
    assert STATUS.failed([certified, refuted, open_]) == ("F", "REFUTED")
    assert STATUS.failed([refuted, invalid]) == ("!", "INVALID")
    assert STATUS.failed([certified, open_]) == ("?", "INCONCLUSIVE")
    assert STATUS.failed([certified, expected]) is None
    assert STATUS.failed([certified, open_], "pass") is None
    assert STATUS.failed([record(bound={"at_least": 0.35}, expect="refuted")], "pass") == ("?", "INCONCLUSIVE (expected refuted)")
    assert STATUS.failed([record(bound={"at_least": 0.2}, expect="invalid")]) == ("F", "CERTIFIED (expected invalid)")


def test_the_word_of_a_test_that_passed():
    certified, expected, open_ = record(bound={"at_least": 0.2}), record(expect="refuted"), record(bound={"at_least": 0.35})
    study = record(expect="measured")
    found = [STATUS.passed(claims) for claims in ([certified], [certified, expected], [open_], [study])]
    assert found == ["CERTIFIED", "REFUTED (as expected)", "INCONCLUSIVE", "REFUTED (a study)"]
