"""The record of one claim: an entry of the JSON document's `claims`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..core.verdict import as_expected
from .document import plain

if TYPE_CHECKING:
    from ..claims.evaluation import Judgement
    from ..core.results import Description


def claim_record(nodeid: str, judgement: Judgement, facts: Mapping[str, Any], *, passed: bool | None = None) -> dict[str, Any]:
    """Plain values only: records travel between processes.

    `facts`: claim, property, model, tasks, parameters, bound, expect, file, line. `passed` says whether the verdict is the expected
    one, unless it is given. Estimate and interval are null together: half of a measurement is none.
    """
    estimate, cost, model = judgement.estimate, judgement.cost, judgement.model
    if estimate is not None and not all(map(isfinite, (estimate.value, *estimate.interval))):
        estimate = None
    told = ("claim", "property", "model", "tasks", "parameters")
    made: dict[str, Any] = plain(
        {
            "nodeid": nodeid,
            **{key: facts[key] for key in told},
            "estimate": None if estimate is None else estimate.value,
            "interval": None if estimate is None else list(estimate.interval),
            "interval_kind": None if estimate is None else estimate.kind,
            "confidence": facts["parameters"].get("confidence"),
            "n": 0 if estimate is None else estimate.n,
            "bound": facts["bound"],
            "verdict": judgement.verdict.kind,
            "passed": (_tried(judgement) and as_expected(judgement.verdict.kind, facts["expect"])) if passed is None else passed,
            "reason": judgement.verdict.reason,
            "refuted_at": judgement.refuted_at,
            "looks": list(judgement.looks),
            "looks_planned": judgement.planned,
            "warnings": list(judgement.warnings),
            **{key: value for key, value in facts.items() if key not in (*told, "bound")},
            "details": judgement.details,
            "cost": cost.as_dict(),
            "model_info": None if model is None else _about(model),
        }
    )
    return made


def _tried(judgement: Judgement) -> bool:
    """False where nothing was attempted, offline or with a model that cannot be opened: nobody's `expect: invalid` means that."""
    return judgement.estimate is not None or (judgement.model is not None and judgement.details.get("error") != "Offline")


def _about(model: Description) -> dict[str, Any]:
    """What the document says of a model."""
    return {
        "fingerprint": model.fingerprint, "architecture": model.architecture, "parameters": model.parameters,
        "dtype": model.dtype, **model.universe.as_dict(),
    }  # fmt: skip
