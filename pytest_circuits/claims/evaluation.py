"""From a claim to its verdict: drive the property, hold the estimate against the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.results import Description
from ..core.verdict import INCONCLUSIVE, INVALID, REFUTED, Bound, Estimate, Verdict, decide
from ..errors import CircuitsError, Invalid
from ..measurement.cost import Cost
from ..measurement.executor import Executor
from ..measurement.request_trace import ElsewhereError, watched
from ..measurement.requests import AnyRequest
from . import sequential as looks
from .question import Looks, Question
from .refutation_level import level_of, smallest
from .sample_size import sample_size_of


@dataclass(frozen=True)
class Measurement:
    """An estimate, or the error that makes it invalid; what it cost, what the model is, and which measurements were asked for."""

    outcome: Estimate | CircuitsError
    cost: Cost = field(default_factory=Cost)
    model: Description | None = None
    asked: frozenset[AnyRequest] = frozenset()


@dataclass(frozen=True)
class Judgement:
    """What came of a claim. `estimate` is None when it could not be measured; `model` None when the model could not be opened.

    `refuted_at`, of a refuted claim, is an error level at which it is still refuted, the smallest that was found: an upper bound of
    its p-value. `looks`, of a claim with `max_n`, are the looks that were taken of the `planned` ones, the last being the estimate's.
    `warnings` are what a reader should know whatever the verdict.
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


def measure(lab: Executor, question: Question) -> Measurement:
    """Measure a property. What makes it invalid is the outcome, and not raised. With `max_n` this is the first look of those planned."""
    return _measure(lab, Looks.of(question).at(0))


def _measure(lab: Executor, question: Question) -> Measurement:
    prop, claim = question.claim()
    before, found = lab.spent, None
    asked: set[AnyRequest] = set()
    outcome: Estimate | CircuitsError
    try:
        found = lab.describe(question.model)
        outcome, _ = lab.run(watched(prop.estimate(claim), asked.update))
    except CircuitsError as problem:
        outcome = problem
    return Measurement(outcome, lab.spent - before, found, frozenset(asked))


def evaluate_claim(lab: Executor, question: Question, bound: Bound, first: Measurement | None = None, strength: bool = True) -> Judgement:
    """Measure, unless `first` holds what `measure` found before, and judge; with more examples while that settles nothing, up to `max_n`.

    A task that cannot make as many prompts as `max_n` makes the claim invalid, whether or not it comes to that. A refuted claim is tried
    at smaller error levels, unless `strength` is False.
    """
    plan, cost, taken = Looks.of(question), Cost(), []
    wrong = looks.problem(question.claim()[0], question.parameters, question.tasks)
    try:
        for task in plan.tasks[-1].values() if len(plan.tasks) > 1 else ():
            lab.task(task)
    except CircuitsError as problem:
        return decide_outcome(problem, bound, first.cost if first else cost, first.model if first else None)
    for look in range(len(plan.tasks)):
        found = first if first is not None and look == 0 else _measure(lab, plan.at(look))
        cost += found.cost
        made = decide_outcome(plan.together(found.outcome, look), bound, cost, found.model)
        if isinstance(found.outcome, Estimate):
            taken.append(_told(found.outcome, plan.prompts(look)) if len(plan.tasks) > 1 else {})
        if made.verdict.kind != INCONCLUSIVE:
            break
    if made.verdict.kind == INCONCLUSIVE and made.estimate is not None:
        made = replace(made, verdict=decide(made.estimate, bound, sample_size_of(lab, plan.at(look))))
    if made.verdict.kind == REFUTED and strength:

        def still(alpha: float) -> bool:
            if made.estimate is not None and made.estimate.search is not None and bound.universal:
                return True  # a counterexample is one at any level
            return _still_refuted(lab, plan.at(look, 1 - alpha), bound, found.asked)

        made = replace(made, refuted_at=smallest(made.refuted_at or 1.0, still))
    return replace(
        made, looks=tuple(one for one in taken if one), planned=len(plan.tasks), warnings=(f"max_n is not used: {wrong}",) if wrong else ()
    )


def _told(estimate: Estimate, prompts: Mapping[str, int]) -> dict[str, Any]:
    return {"prompts": dict(prompts), "n": estimate.n, "estimate": estimate.value, "interval": list(estimate.interval)}


def decide_outcome(outcome: Estimate | CircuitsError, bound: Bound, cost: Cost, model: Description | None) -> Judgement:
    """The verdict on an estimate, or on the error that took its place."""
    if isinstance(outcome, CircuitsError):
        details = outcome.details if isinstance(outcome, Invalid) else {"error": type(outcome).__name__}
        return Judgement(Verdict(INVALID, str(outcome)), None, cost, model, details)
    verdict = decide(outcome, bound)
    level = level_of(outcome.confidence) if verdict.kind == REFUTED else None
    return Judgement(verdict, outcome, cost, model, outcome.details, level)


def _still_refuted(lab: Executor, question: Question, bound: Bound, asked: frozenset[AnyRequest]) -> bool:
    """Whether the same measurements refute the claim at the confidence of `question`.

    Where a property lets the confidence decide what is measured (such as which components are certain to be heroes), another
    confidence makes another claim of it, which says nothing about this one.
    """

    def known(requests: list[AnyRequest]) -> None:
        if not asked.issuperset(requests):
            raise ElsewhereError

    prop, claim = question.claim()
    try:
        estimate, _ = lab.run(watched(prop.estimate(claim), known))
    except (CircuitsError, ElsewhereError):
        return False
    return decide(estimate, bound).kind == REFUTED
