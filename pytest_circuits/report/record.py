"""The record of one claim: an entry of the JSON document's `claims`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..baseline.entries import kept_of
from ..core.verdict import as_expected
from .document import plain

if TYPE_CHECKING:
    from ..claims.evaluation import Evaluation
    from ..core.claim import Claim
    from ..core.results import Description


def claim_record(
    nodeid: str,
    claim: Claim,
    evaluation: Evaluation,
    *,
    seed: int = 0,
    line: int | None = None,
    measured_on: Mapping[str, Any] | None = None,
    passed: bool | None = None,
) -> dict[str, Any]:
    """Plain values only: records travel between processes.

    seed: that of `--circuits-seed`. line: where the claim stands, if it is not in a spec. measured_on: digests of data and versions, for a
    claim of a spec that was measured. passed: whether its test passes; by default, whether the verdict is the expected one. Estimate
    and interval are null together.
    """
    estimate, cost, model = evaluation.estimate, evaluation.cost, evaluation.model
    if estimate is not None and not all(map(isfinite, (estimate.value, *estimate.interval))):
        estimate = None
    facts = _facts(nodeid, claim, line)
    first = ("claim", "property", "model", "tasks", "parameters")
    record: dict[str, Any] = plain(
        {
            "nodeid": nodeid,
            **{key: facts[key] for key in first},
            "estimate": None if estimate is None else estimate.value,
            "interval": None if estimate is None else list(estimate.interval),
            "interval_kind": None if estimate is None else estimate.kind,
            "confidence": facts["parameters"].get("confidence"),
            "n": 0 if estimate is None else estimate.n,
            "bound": facts["bound"],
            "verdict": evaluation.verdict.kind,
            "passed": (_is_attempted(evaluation) and as_expected(evaluation.verdict.kind, claim.expect)) if passed is None else passed,
            "reason": evaluation.verdict.reason,
            "refuted_at": evaluation.refuted_at,
            "looks": list(evaluation.looks),
            "looks_planned": evaluation.planned,
            "warnings": list(evaluation.warnings),
            **{key: value for key, value in facts.items() if key not in (*first, "bound")},
            **({} if measured_on is None else {"measured_on": measured_on}),
            "seed": seed,
            "details": evaluation.details,
            "cost": cost.as_dict(),
            "model_info": None if model is None else _model_info(model),
        }
    )
    if measured_on is not None:
        record["kept"] = {} if evaluation.estimate is None else plain(kept_of(evaluation.estimate))
    return record


def _facts(nodeid: str, claim: Claim, line: int | None) -> dict[str, Any]:
    """What a record says of the claim itself. Tasks have an entry of their own next to the parameters.

    Of a claim over a series, `model` is the series and `series` lists its models; for one checkpoint, `checkpoint` names its series.
    """
    parameters = claim.parameters.model_dump(mode="json")
    for key in ("task", "tasks"):
        parameters.pop(key, None)
    facts: dict[str, Any] = {
        "claim": claim.name, "description": claim.description, "property": claim.property, "model": claim.subject,
        "tasks": list(claim.tasks), "parameters": parameters, "bound": None if claim.bound is None else claim.bound.as_dict(),
        "expect": claim.expect, "file": nodeid.split("::")[0], "line": claim.line if line is None else line,
    }  # fmt: skip
    if claim.series:
        facts["series"] = [{"model": model.name, "at": model.at} for model in claim.series]
    elif claim.model.name != claim.entry:
        facts["checkpoint"] = {"of": claim.entry, "at": claim.model.at}
    return facts


def _is_attempted(evaluation: Evaluation) -> bool:
    """False where nothing was attempted, offline or with a model that cannot be opened: nobody's `expect: invalid` means that."""
    return evaluation.estimate is not None or (evaluation.model is not None and evaluation.details.get("error") != "Offline")


def _model_info(model: Description) -> dict[str, Any]:
    """What the document says of a model."""
    return {
        "fingerprint": model.fingerprint, "architecture": model.architecture, "parameters": model.parameters,
        "dtype": model.dtype, **model.universe.as_dict(),
    }  # fmt: skip
