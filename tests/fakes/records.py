"""Records of claims from plain facts, for tests of reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_circuits.claims.outcome import decide_outcome
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.results import Description
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Bound, Estimate
from pytest_circuits.errors import CircuitsError
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.report.model import ClaimRecord
from pytest_circuits.report.record import RecordedClaim, record_claim

MODEL = Description("abc", "llama", 1000, Universe(2, 3, 8), "float32")
FACTS: dict[str, Any] = {
    "claim": "c", "description": "", "property": "reuse", "model": "tiny", "tasks": ["swap"], "parameters": {"confidence": 0.9},
    "bound": {"at_least": 0.5}, "expect": "certified", "line": 3,
}  # fmt: skip


def claim_of(**facts: Any) -> Claim:
    """`facts` has keys of a record: claim, description, property, model, tasks, parameters, bound, expect, line."""
    facts = FACTS | facts
    values = dict(facts["parameters"])
    bound = Bound(*facts["bound"]["within"]) if "within" in facts["bound"] else Bound(**facts["bound"])
    return Claim(
        facts["property"], SimpleNamespace(model_dump=lambda mode: dict(values)), ModelSource(facts["model"]),
        {task: TaskSource(task, "builtin", task) for task in facts["tasks"]}, bound=bound, expect=facts["expect"], name=facts["claim"],
        description=facts["description"], entry=facts["model"], line=facts["line"],
    )  # fmt: skip


def recorded(
    outcome: Estimate | CircuitsError | None = None,
    *,
    model: Description | None = MODEL,
    cost: Cost | None = None,
    passed: bool | None = None,
    nodeid: str = "s.circuits.yaml::c::tiny::swap",
    fields: dict[str, Any] | None = None,
    **facts: Any,
) -> RecordedClaim:
    """A claim as a run records it, by default refuted with a failed test; `fields` replaces fields of the record afterwards."""
    claim = claim_of(**facts)
    evaluation = decide_outcome(
        Estimate(0.4, (0.3, 0.45), 100, 0.9) if outcome is None else outcome, claim.required_bound(), cost or Cost(), model
    )
    entry = record_claim(nodeid, claim, evaluation, passed=passed)
    return entry.model_copy(update={"record": with_fields(entry.record, **{"outcome": "failed", **(fields or {})})})


def with_fields(record: ClaimRecord, **fields: Any) -> ClaimRecord:
    """The record with other fields, validated."""
    return ClaimRecord.model_validate({**record.as_json(), **fields})


def record(*arguments: Any, **options: Any) -> ClaimRecord:
    """The record alone."""
    return recorded(*arguments, **options).record
