"""What comes of a claim: a verdict, and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.descriptions import Description
from ..core.verdict import REFUTED, Bound, Estimate, Verdict, decide, invalid
from ..errors import CircuitsError, Invalid
from ..measurement.cost import Cost
from .refutation_level import level_of


@dataclass(frozen=True)
class Evaluation:
    """The verdict on a claim, and what it rests on.

    `estimate` is None when it could not be measured; `model` None when the model could not be opened.

    `refuted_at`, of a refuted claim, is an error level at which it is still refuted, the smallest that was found: an upper bound of
    its p-value. `looks`, of a claim with `max_n`, are the looks taken of the `planned` ones; the estimate is that of the last.
    `warnings` hold whatever the verdict is.
    """

    verdict: Verdict
    estimate: Estimate | None
    cost: Cost
    model: Description | None
    details: Mapping[str, Any] = field(default_factory=dict)
    refuted_at: float | None = None
    looks: tuple[Mapping[str, Any], ...] = ()
    planned: int = 1
    warnings: tuple[str, ...] = ()


def decide_outcome(outcome: Estimate | CircuitsError, bound: Bound, cost: Cost, model: Description | None) -> Evaluation:
    """The verdict on an estimate, or on the error that took its place."""
    if isinstance(outcome, CircuitsError):
        details = outcome.details if isinstance(outcome, Invalid) else {"error": type(outcome).__name__}
        return Evaluation(invalid(outcome.code, str(outcome)), None, cost, model, details)
    verdict = decide(outcome, bound)
    level = level_of(outcome.confidence) if verdict.kind == REFUTED else None
    return Evaluation(verdict, outcome, cost, model, outcome.details, level)
