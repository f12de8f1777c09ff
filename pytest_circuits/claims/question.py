"""What is asked of a model: a claim without its bound, and the looks at more and more examples that it may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..core.sources import ModelSource, TaskSource
from ..core.verdict import Estimate
from ..errors import CircuitsError, Invalid
from ..properties import PROPERTIES
from ..properties.parameters import AnyParameters
from ..properties.protocol import BaselineReference, Claim, Property
from . import sequential as looks


@dataclass(frozen=True)
class Question:
    """A claim without its bound: a property by name, its parameters, the model, where its tasks come from.

    `series` are the models of a property over a series, in order, `model` the last of them; without them it is a series of one.
    `against` is what a claim about drift compares the model with.
    """

    property: str
    parameters: AnyParameters
    model: ModelSource
    tasks: Mapping[str, TaskSource]
    series: tuple[ModelSource, ...] = ()
    against: ModelSource | BaselineReference | None = None

    def at(self, confidence: float) -> Question:
        """The same question, answered with another confidence."""
        return replace(self, parameters=self.parameters.model_copy(update={"confidence": confidence}))

    def claim(self) -> tuple[Property, Claim]:
        """What is judged, and with what."""
        prop: Property = PROPERTIES.get(self.property)
        over = (self.series or (self.model,)) if prop.over_series else ()
        return prop, Claim(self.parameters, self.model, self.tasks, over, self.against)


@dataclass(frozen=True)
class Looks:
    """A question as it is asked at each planned look: with more and more examples, each time at the same share of the error."""

    question: Question
    tasks: list[looks.Tasks]

    @classmethod
    def of(cls, question: Question) -> Looks:
        """One look, unless the parameters give a `max_n` that is of use."""
        return cls(question, looks.planned(question.claim()[0], question.parameters, question.tasks))

    def at(self, look: int, confidence: float | None = None) -> Question:
        """What is asked at a look (from 0), for all looks together to have this confidence, by default that of the parameters."""
        confidence = self.question.parameters.confidence if confidence is None else confidence
        each = looks.spent(confidence, len(self.tasks))
        return replace(self.question, tasks=self.tasks[look]).at(each)

    def together(self, outcome: Estimate | CircuitsError, look: int) -> Estimate | CircuitsError:
        """An outcome of one look as one of them all: its interval holds together with the others, with the confidence asked for."""
        planned = len(self.tasks)
        if planned == 1:
            return outcome
        if isinstance(outcome, Estimate):
            kind = f"{outcome.kind}; for {planned} looks, {outcome.confidence:.4g} at each"
            return replace(outcome, confidence=self.question.parameters.confidence, kind=kind)
        prompts = " and ".join(f"{n} prompts of {name!r}" for name, n in self.prompts(look).items())
        details = outcome.details if isinstance(outcome, Invalid) else {"error": type(outcome).__name__}
        return Invalid(f"at look {look + 1} of {planned} ({prompts}): {outcome}", details)

    def prompts(self, look: int) -> dict[str, int]:
        """How many prompts each task has."""
        return {name: (*(task.options["n"],), *task.grown)[-1] for name, task in self.tasks[look].items()}
