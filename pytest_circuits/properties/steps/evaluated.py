"""What properties of per-example circuits have in common: the evaluation examples that have one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.units import Universe
from ...errors import Invalid
from ...measurement.requests import Steps
from ..protocol import Claim
from .examples import Examples, attributed, describe, examples, intact, selected

if TYPE_CHECKING:
    from ...core.results import CircuitSet, Floats


@dataclass(frozen=True)
class EvaluatedCircuits:
    """The evaluation examples that have a circuit: scores [n, N], circuits [n], groups; `without` counts the others."""

    scores: Floats
    circuits: CircuitSet
    groups: list[str]
    without: int
    examples: Examples
    accuracy: float
    universe: Universe

    @property
    def common(self) -> dict[str, Any]:
        """Details of every property of per-example circuits."""
        return {
            "universe": self.universe.components,
            "mean_circuit_size": float(self.circuits.members.sum(1).mean()),
            "examples_without_circuit": self.without,
            "accuracy": self.accuracy,
            **self.examples.as_dict(),
        }


def evaluated(claim: Claim, task: str) -> Steps[EvaluatedCircuits]:
    """The evaluation examples' circuits. Raises `Invalid` below the accuracy gate, and when none has a circuit."""
    found = yield from examples(claim, task)
    outcome = yield from intact(claim, task, found)
    universe = yield from describe(claim)
    scores = yield from attributed(claim, task)
    every = selected(scores, claim.parameters, task)
    rows = found.evaluation[every.members[found.evaluation].any(1)]
    without = len(found.evaluation) - len(rows)
    if not len(rows):
        raise Invalid(f"none of the {without} evaluation examples of task {task!r} has a circuit", {"task": task, "evaluation": without})
    return EvaluatedCircuits(scores.values[rows], every.take(rows), found.groups(rows), without, found, float(outcome.accuracy), universe)
