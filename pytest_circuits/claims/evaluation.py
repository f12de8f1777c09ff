"""From a claim to its verdict: drive the property, hold the estimate against the bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.claim import Claim
from ..core.results import Description
from ..core.verdict import INCONCLUSIVE, REFUTED, Bound, Estimate, decide
from ..errors import CircuitsError
from ..measurement.cost import Cost
from ..measurement.executor import Executor
from ..measurement.requests import Request, Steps
from .outcome import Evaluation, decide_outcome
from .refutation_level import smallest_level
from .sample_size import sample_size_of
from .sequential import LookPlan, problem_with_max_n, property_of


class _NewRequestError(Exception):
    """A property asks for something that it did not ask for before."""


@dataclass(frozen=True)
class MeasuredOutcome:
    """An estimate, or the error that makes the claim invalid; its cost, the model's description, and the requests that were made."""

    outcome: Estimate | CircuitsError
    cost: Cost = field(default_factory=Cost)
    model: Description | None = None
    requests: frozenset[Request[Any]] = frozenset()


def measure(executor: Executor, claim: Claim) -> MeasuredOutcome:
    """Estimate the property of a claim; with `max_n`, at the first look. An error that makes it invalid is the outcome, and not raised."""
    return _measure(executor, LookPlan.of(claim).at(0))


def estimation(claim: Claim) -> Steps[Estimate]:
    """The steps of the claim's property: of one over a series, on all its models."""
    prop = property_of(claim)
    return prop.estimate(replace(claim, series=(claim.series or (claim.model,)) if prop.over_series else ()))


def _measure(executor: Executor, claim: Claim) -> MeasuredOutcome:
    before, description = executor.spent, None
    requests: set[Request[Any]] = set()
    outcome: Estimate | CircuitsError
    try:
        description = executor.describe(claim.model)
        outcome, _ = executor.run(estimation(claim), requests.update)
    except CircuitsError as problem:
        outcome = problem
    return MeasuredOutcome(outcome, executor.spent - before, description, frozenset(requests))


def evaluate_claim(executor: Executor, claim: Claim, first: MeasuredOutcome | None = None, strength: bool = True) -> Evaluation:
    """Measure, unless `first` holds what `measure` returned before, and decide; with more examples until it is settled, up to `max_n`.

    A task that cannot make as many prompts as `max_n` makes the claim invalid, whether or not so many are needed. A refuted claim is tried
    at smaller error levels, unless `strength` is False. The claim needs a bound.
    """
    plan, cost, looks = LookPlan.of(claim), Cost(), []
    bound = claim.required_bound()
    unused = problem_with_max_n(property_of(claim), claim.parameters, claim.tasks)
    try:
        for task in plan.tasks[-1].values() if len(plan) > 1 else ():
            executor.task(task)
    except CircuitsError as problem:
        return decide_outcome(problem, bound, first.cost if first else cost, first.model if first else None)
    for look in range(len(plan)):
        measured = first if first is not None and look == 0 else _measure(executor, plan.at(look))
        cost += measured.cost
        evaluation = decide_outcome(plan.combine(measured.outcome, look), bound, cost, measured.model)
        if isinstance(measured.outcome, Estimate):
            looks.append(_look(measured.outcome, plan.prompts(look)) if len(plan) > 1 else {})
        if evaluation.verdict.kind != INCONCLUSIVE:
            break
    if evaluation.verdict.kind == INCONCLUSIVE and evaluation.estimate is not None:
        evaluation = replace(evaluation, verdict=decide(evaluation.estimate, bound, sample_size_of(executor, plan.at(look))))
    if evaluation.verdict.kind == REFUTED and strength:

        def is_refuted_at(alpha: float) -> bool:
            if evaluation.estimate is not None and evaluation.estimate.search is not None and bound.universal:
                return True  # a counterexample is one at any level
            return _is_still_refuted(executor, plan.at(look, 1 - alpha), bound, measured.requests)

        evaluation = replace(evaluation, refuted_at=smallest_level(evaluation.refuted_at or 1.0, is_refuted_at))
    return replace(
        evaluation,
        looks=tuple(look for look in looks if look),
        planned=len(plan),
        warnings=(f"max_n is not used: {unused}",) if unused else (),
    )


def _look(estimate: Estimate, prompts: Mapping[str, int]) -> dict[str, Any]:
    return {"prompts": dict(prompts), "n": estimate.n, "estimate": estimate.value, "interval": list(estimate.interval)}


def _is_still_refuted(executor: Executor, claim: Claim, bound: Bound, requests: frozenset[Request[Any]]) -> bool:
    """Whether the same measurements refute the claim at the confidence of `claim`.

    Where a property lets the confidence decide what is measured (such as which components are certain to be heroes), another
    confidence makes another claim of it, which says nothing about this one.
    """

    def refuse_new(wanted: Iterable[Request[Any]]) -> None:
        if not requests.issuperset(wanted):
            raise _NewRequestError

    try:
        estimate, _ = executor.run(estimation(claim), refuse_new)
    except (CircuitsError, _NewRequestError):
        return False
    return decide(estimate, bound).kind == REFUTED
