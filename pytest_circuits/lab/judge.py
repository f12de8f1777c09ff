"""From a claim to its verdict: drive the property, hold the estimate against the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import CircuitsError, Invalid
from ..properties import PROPERTIES
from ..properties.base import AnyParameters, Claim, Property
from ..results import Description
from ..sources import ModelSource, TaskSource
from ..verdict import INVALID, Bound, Estimate, Verdict, decide
from .cost import Cost
from .lab import Lab


@dataclass(frozen=True)
class Judgement:
    """What came of a claim. `estimate` is None when it could not be measured; `model` None when the model could not be opened."""

    verdict: Verdict
    estimate: Estimate | None
    cost: Cost
    model: Description | None
    details: Mapping[str, Any] = field(default_factory=dict)


def measure(
    lab: Lab, name: str, parameters: AnyParameters, model: ModelSource, tasks: Mapping[str, TaskSource],
    series: Sequence[ModelSource] = (),
) -> tuple[Estimate | CircuitsError, Cost, Description | None]:  # fmt: skip
    """A property's estimate, or the error that makes it invalid; with what it cost and what the model is.

    `series` are the models of a property over a series, in order, `model` the last of them; without them it is a series of one.
    """
    prop: Property = PROPERTIES.get(name)
    before, found = lab.spent, None
    outcome: Estimate | CircuitsError
    over = (tuple(series) or (model,)) if prop.over_series else ()
    try:
        found = lab.describe(model)
        outcome, _ = lab.run(prop.judge(Claim(parameters, model, tasks, over)))
    except CircuitsError as problem:
        outcome = problem
    return outcome, lab.spent - before, found


def judge(outcome: Estimate | CircuitsError, bound: Bound, cost: Cost, model: Description | None) -> Judgement:
    """The verdict on an estimate, or on the error that took its place."""
    if isinstance(outcome, CircuitsError):
        details = outcome.details if isinstance(outcome, Invalid) else {"error": type(outcome).__name__}
        return Judgement(Verdict(INVALID, str(outcome)), None, cost, model, details)
    return Judgement(decide(outcome, bound), outcome, cost, model, outcome.details)
