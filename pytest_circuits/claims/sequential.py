"""Sequential sampling: a claim that the first examples leave inconclusive is evaluated again with more, up to `max_n`.

The numbers of examples are fixed before anything is measured: n, 2n, 4n …, max_n. The error is spent in equal parts over these planned
looks (Bonferroni: each interval has confidence 1 − (1 − confidence)/looks), so that all of them hold together, whether sampling stops
at the first look that settles the claim or goes on. With few looks this is cheaper than confidence sequences, which hold at every single
example: for betting intervals of 64 to 1024 examples it costs 11–24% of width, a sequence 30–100% for means between 0.5 and 0.8 (less
than this only for means within 0.05 of the range's ends).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.claim import Claim
from ..core.sources import TaskSource
from ..core.verdict import Estimate
from ..errors import CircuitsError, Invalid, ReasonCode
from ..properties import PROPERTIES
from ..properties.parameters import in_sample
from ..properties.protocol import Property

Tasks = Mapping[str, TaskSource]


def look_sizes(n: int, max_n: int) -> list[int]:
    """n, 2n, 4n … and max_n; n alone where max_n is no more."""
    steps = [n]
    while steps[-1] < max_n:
        steps.append(min(2 * steps[-1], max_n))
    return steps


def tasks_of_looks(prop: Property, parameters: Any, tasks: Tasks) -> list[Tasks]:
    """The tasks of each look, those as they are first; a task that has reached `max_n` stays what it is."""
    if getattr(parameters, "max_n", None) is None or problem_with_max_n(prop, parameters, tasks):
        return [tasks]
    steps = {name: look_sizes(task.options["n"], parameters.max_n)[1:] for name, task in tasks.items()}
    count = max((len(counts) for counts in steps.values()), default=0)
    return [{name: replace(task, grown=tuple(steps[name][:k])) for name, task in tasks.items()} for k in range(count + 1)]


def confidence_per_look(confidence: float, looks: int) -> float:
    """The confidence of the interval at each look, for all of them to hold with `confidence`."""
    return confidence if looks == 1 else 1 - (1 - confidence) / looks


def problem_with_max_n(prop: Property, parameters: Any, tasks: Tasks) -> str | None:
    """Why `max_n` has no effect on this claim; None if it has one, or is not set."""
    if getattr(parameters, "max_n", None) is None:
        return None
    if not prop.grows:
        return f"{prop.name} is estimated on discovery examples, and max_n adds evaluation examples only: raise the tasks' own n"
    wrong = in_sample(parameters) if prop.growth is None else prop.growth(parameters)
    if wrong:
        return wrong
    fixed = [task for task in tasks.values() if task.kind != "builtin" or not isinstance(task.options.get("n"), int)]
    if not fixed:
        return None
    names = ", ".join(repr(task.name) for task in fixed)
    of = {"file": "from a file", "loader": "from a loader", "fixture": "handed over ready-made"}.get(fixed[0].kind, "without a number n")
    return f"max_n needs tasks that make more prompts on demand, as built-in ones do, and {names} is {of}: leave max_n out"


@dataclass(frozen=True)
class LookPlan:
    """A claim as it is estimated at each planned look: with more and more examples, each time at the same share of the error."""

    claim: Claim
    tasks: list[Tasks]

    @classmethod
    def of(cls, claim: Claim) -> LookPlan:
        """One look, unless the parameters give a `max_n` that is of use."""
        return cls(claim, tasks_of_looks(property_of(claim), claim.parameters, claim.tasks))

    def __len__(self) -> int:
        return len(self.tasks)

    def at(self, look: int, confidence: float | None = None) -> Claim:
        """The claim at a look (from 0), for all looks together to have this confidence, by default that of the parameters."""
        confidence = self.claim.parameters.confidence if confidence is None else confidence
        each = confidence_per_look(confidence, len(self))
        return replace(self.claim, tasks=self.tasks[look]).with_confidence(each)

    def combine(self, outcome: Estimate | CircuitsError, look: int) -> Estimate | CircuitsError:
        """An outcome of one look as an outcome of all: its interval holds together with the others, with the confidence asked for."""
        if len(self) == 1:
            return outcome
        if isinstance(outcome, Estimate):
            kind = f"{outcome.kind}; for {len(self)} looks, {outcome.confidence:.4g} at each"
            return replace(outcome, confidence=self.claim.parameters.confidence, kind=kind)
        prompts = " and ".join(f"{n} prompts of {name!r}" for name, n in self.prompts(look).items())
        details = outcome.details if isinstance(outcome, Invalid) else {"error": type(outcome).__name__}
        code = outcome.code if isinstance(outcome, Invalid) else ReasonCode.INVALID
        return Invalid(f"at look {look + 1} of {len(self)} ({prompts}): {outcome}", details, code=code)

    def prompts(self, look: int) -> dict[str, int]:
        """How many prompts each task has."""
        return {name: (*(task.options["n"],), *task.grown)[-1] for name, task in self.tasks[look].items()}


def property_of(claim: Claim) -> Property:
    """The property that a claim is about."""
    return PROPERTIES.get(claim.property)  # type: ignore[no-any-return]
