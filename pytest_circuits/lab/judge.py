"""From a claim to its verdict: drive the property, hold the estimate against the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import CircuitsError, Invalid
from ..properties import PROPERTIES
from ..properties.base import AnyParameters, Claim, Property
from ..requests import Request
from ..results import Description
from ..sources import ModelSource, TaskSource
from ..verdict import INVALID, REFUTED, Bound, Estimate, Verdict, decide
from .cost import Cost
from .lab import Lab
from .levels import level_of, smallest
from .watched import ElsewhereError, watched


@dataclass(frozen=True)
class Question:
    """A claim without its bound: a property by name, its parameters, the model, where its tasks come from.

    `series` are the models of a property over a series, in order, `model` the last of them; without them it is a series of one.
    """

    property: str
    parameters: AnyParameters
    model: ModelSource
    tasks: Mapping[str, TaskSource]
    series: tuple[ModelSource, ...] = ()

    def at(self, confidence: float) -> Question:
        """The same question, answered with another confidence."""
        return replace(self, parameters=self.parameters.model_copy(update={"confidence": confidence}))

    def claim(self) -> tuple[Property, Claim]:
        """What is judged, and with what."""
        prop: Property = PROPERTIES.get(self.property)
        over = (self.series or (self.model,)) if prop.over_series else ()
        return prop, Claim(self.parameters, self.model, self.tasks, over)


@dataclass(frozen=True)
class Measurement:
    """An estimate, or the error that makes it invalid; what it cost, what the model is, and which measurements were asked for."""

    outcome: Estimate | CircuitsError
    cost: Cost = field(default_factory=Cost)
    model: Description | None = None
    asked: frozenset[Request] = frozenset()


@dataclass(frozen=True)
class Judgement:
    """What came of a claim. `estimate` is None when it could not be measured; `model` None when the model could not be opened.

    `refuted_at`, of a refuted claim, is an error level at which it is still refuted, the smallest that was found: an upper bound of
    its p-value.
    """

    verdict: Verdict
    estimate: Estimate | None
    cost: Cost
    model: Description | None
    details: Mapping[str, Any] = field(default_factory=dict)
    refuted_at: float | None = None


def measure(lab: Lab, question: Question) -> Measurement:
    """Measure a property. What makes it invalid is the outcome, and not raised."""
    prop, claim = question.claim()
    before, found = lab.spent, None
    asked: set[Request] = set()
    outcome: Estimate | CircuitsError
    try:
        found = lab.describe(question.model)
        outcome, _ = lab.run(watched(prop.judge(claim), asked.update))
    except CircuitsError as problem:
        outcome = problem
    return Measurement(outcome, lab.spent - before, found, frozenset(asked))


def judge_claim(lab: Lab, question: Question, bound: Bound, first: Measurement | None = None) -> Judgement:
    """Measure, unless `first` holds what was measured before, and judge. A refuted claim is tried at smaller error levels."""
    found = first or measure(lab, question)
    made = judge(found.outcome, bound, found.cost, found.model)
    if made.verdict.kind != REFUTED:
        return made
    level = smallest(made.refuted_at or 1.0, lambda alpha: _still_refuted(lab, question.at(1 - alpha), bound, found.asked))
    return replace(made, refuted_at=level)


def judge(outcome: Estimate | CircuitsError, bound: Bound, cost: Cost, model: Description | None) -> Judgement:
    """The verdict on an estimate, or on the error that took its place."""
    if isinstance(outcome, CircuitsError):
        details = outcome.details if isinstance(outcome, Invalid) else {"error": type(outcome).__name__}
        return Judgement(Verdict(INVALID, str(outcome)), None, cost, model, details)
    verdict = decide(outcome, bound)
    level = level_of(outcome.confidence) if verdict.kind == REFUTED else None
    return Judgement(verdict, outcome, cost, model, outcome.details, level)


def _still_refuted(lab: Lab, question: Question, bound: Bound, asked: frozenset[Request]) -> bool:
    """Whether the same measurements refute the claim at the confidence of `question`.

    Where a property lets the confidence decide what is measured (such as which components are certain to be heroes), another
    confidence makes another claim of it, which says nothing about this one.
    """

    def known(requests: list[Request]) -> None:
        if not asked.issuperset(requests):
            raise ElsewhereError

    prop, claim = question.claim()
    try:
        estimate, _ = lab.run(watched(prop.judge(claim), known))
    except (CircuitsError, ElsewhereError):
        return False
    return decide(estimate, bound).kind == REFUTED
