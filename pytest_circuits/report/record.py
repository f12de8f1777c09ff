"""From the evaluation of a claim to its record."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..core.json_values import plain
from ..core.verdict import as_expected
from .messages.verdicts import reason
from .model import ClaimRecord, ModelInfo, ReportPart

if TYPE_CHECKING:
    from ..claims.outcome import Evaluation
    from ..core.claim import Claim
    from ..core.results import Description


class RecordedClaim(ReportPart):
    """A record with what else the process needs that writes the report: it travels from xdist's workers to the controller.

    `order` is the test's place in the order of collection; `payload` what a baseline stores besides the numbers, and `measured_on` the
    data and the versions that they are from, both None for claims that have no baseline.
    """

    record: ClaimRecord
    model: ModelInfo | None
    order: int = 0
    payload: dict[str, Any] | None = None
    measured_on: dict[str, Any] | None = None


def record_claim(
    nodeid: str,
    claim: Claim,
    evaluation: Evaluation,
    *,
    seed: int = 0,
    line: int | None = None,
    passed: bool | None = None,
    payload: Mapping[str, Any] | None = None,
    measured_on: Mapping[str, Any] | None = None,
) -> RecordedClaim:
    """The record of a claim that a test evaluated. Estimate and interval are null together.

    seed: that of `--circuits-seed`. line: where the claim stands, if it is not in a spec. passed: whether its test passes; by default,
    whether the verdict is the expected one. payload, measured_on: as in `RecordedClaim`.
    """
    estimate, verdict = evaluation.estimate, evaluation.verdict
    if estimate is not None and not all(map(isfinite, (estimate.value, *estimate.interval))):
        estimate = None
    is_expected = _is_attempted(evaluation) and as_expected(verdict.kind, claim.expect)
    statement = _statement(nodeid, claim, line)
    record = {
        **statement,
        "estimate": None if estimate is None else estimate.value,
        "interval": None if estimate is None else estimate.interval,
        "interval_kind": None if estimate is None else estimate.kind,
        "confidence": statement["parameters"].get("confidence"),
        "n": 0 if estimate is None else estimate.n,
        "verdict": verdict.kind,
        "passed": is_expected if passed is None else passed,
        "reason": reason(verdict),
        "reason_code": verdict.code,
        "reason_arguments": verdict.arguments,
        "refuted_at": evaluation.refuted_at,
        "looks": evaluation.looks,
        "looks_planned": evaluation.planned,
        "warnings": evaluation.warnings,
        "seed": seed,
        "details": evaluation.details,
        "cost": evaluation.cost.as_dict(),
    }
    return RecordedClaim(
        record=ClaimRecord.model_validate(plain(record)),
        model=None if evaluation.model is None else model_info(evaluation.model),
        payload=None if payload is None else plain(payload),
        measured_on=None if measured_on is None else plain(measured_on),
    )


def _statement(nodeid: str, claim: Claim, line: int | None) -> dict[str, Any]:
    """What a record says of the claim itself. Tasks have an entry of their own next to the parameters.

    Of a claim over a series, `model` is the series and `series` lists its models; for one checkpoint, `checkpoint` names its series.
    """
    parameters = claim.parameters.model_dump(mode="json")
    for key in ("task", "tasks"):
        parameters.pop(key, None)
    statement: dict[str, Any] = {
        "nodeid": nodeid,
        "claim": claim.name,
        "property": claim.property,
        "model": claim.subject,
        "tasks": list(claim.tasks),
        "parameters": parameters,
        "bound": claim.required_bound().as_dict(),
        "description": claim.description,
        "expect": claim.expect,
        "file": nodeid.split("::")[0],
        "line": claim.line if line is None else line,
    }
    if claim.series:
        statement["series"] = [{"model": model.name, "at": model.at} for model in claim.series]
    elif claim.model.name != claim.entry:
        statement["checkpoint"] = {"of": claim.entry, "at": claim.model.at}
    return statement


def _is_attempted(evaluation: Evaluation) -> bool:
    """False where nothing was attempted, offline or with a model that cannot be opened: `expect: invalid` does not cover that."""
    return evaluation.estimate is not None or (evaluation.model is not None and evaluation.details.get("error") != "Offline")


def model_info(model: Description) -> ModelInfo:
    """What the report says of a model."""
    return ModelInfo(
        fingerprint=model.fingerprint,
        architecture=model.architecture,
        parameters=model.parameters,
        dtype=model.dtype,
        **model.universe.as_dict(),
    )
