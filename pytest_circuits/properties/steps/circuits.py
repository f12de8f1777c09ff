"""Per-example circuits of a task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core.shares import Size
from ...core.units import Universe
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..parameters import CircuitParameters
from ..protocol import Claim
from .attribution import attribute_examples
from .examples import CompetentTask, competent_task, describe_model

if TYPE_CHECKING:
    from ...core.results import Attribution, CircuitSet, Floats


def find_circuits(claim: Claim, task: str, parameters: CircuitParameters | None = None) -> Steps[CircuitSet]:
    """Per-example circuits of all examples of a task. Raises `Invalid` as `checked_circuits`."""
    chosen: CircuitParameters = claim.parameters if parameters is None else parameters
    scores = yield from attribute_examples(claim, task, chosen)
    return checked_circuits(scores, chosen, task)


def cut_circuits(scores: Attribution, parameters: CircuitParameters) -> CircuitSet:
    """The circuit of each row of scores, by `size` or `threshold`; contrastive scores count only where they are positive."""
    if parameters.contrast:
        scores = replace(scores, values=scores.values.clip(min=0))
    return (
        scores.circuits(parameters.size, parameters.rounding)
        if parameters.threshold is None
        else scores.circuits_above(parameters.threshold)
    )


def checked_circuits(scores: Attribution, parameters: CircuitParameters, task: str) -> CircuitSet:
    """`cut_circuits`; raises `Invalid` where a circuit would be all components, or no example has one."""
    units = len(scores.units)
    if parameters.threshold is None and Size.parse(parameters.size).of(units, parameters.rounding) == units:
        raise Invalid(
            f"a circuit of size {parameters.size} is all {units} components: nothing could fail to be in it",
            {"universe": units},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    circuits = cut_circuits(scores, parameters)
    if circuits.members.all():
        raise Invalid(
            f"threshold {parameters.threshold:g} puts all {units} components into the circuit of every example: nothing could fail to be "
            "in it; raise threshold",
            {"universe": units, "threshold": parameters.threshold},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    if not circuits.members.any():
        raise _no_circuits(scores, parameters, task)
    return circuits


def _no_circuits(attribution: Attribution, parameters: CircuitParameters, task: str) -> Invalid:
    scores = attribution.values.clip(min=0) if parameters.contrast else abs(attribution.values)
    if parameters.threshold is not None and scores.any():
        totals = scores.sum(1, keepdims=True)
        largest = float((scores / totals.clip(min=1e-30)).max())
        return Invalid(
            f"no component has {parameters.threshold:g} of the sum of scores on any example of task {task!r}: the largest share is "
            f"{largest:.3g}. Lower threshold",
            {"task": task, "threshold": parameters.threshold, "largest_share": largest},
            code=ReasonCode.NO_CIRCUIT,
        )
    if parameters.contrast:
        return Invalid(
            f"no component stands out on any example of task {task!r} against {', '.join(parameters.contrast)} "
            f"(by {parameters.contrast_by}), so no example has a contrastive circuit",
            {"task": task, "contrast": list(parameters.contrast)},
            code=ReasonCode.NO_CIRCUIT,
        )
    return Invalid(
        f"all {parameters.attribution} scores of task {task!r} are zero, so no example has a circuit",
        {"task": task},
        code=ReasonCode.NO_CIRCUIT,
    )


@dataclass(frozen=True)
class EvaluationCircuits:
    """The evaluation examples that have a circuit: scores [n, N], circuits [n], groups [n]; `without` counts the others."""

    task: CompetentTask
    universe: Universe
    scores: Floats
    circuits: CircuitSet
    groups: list[str]
    without: int

    @property
    def details(self) -> dict[str, Any]:
        """Details of every property of per-example circuits."""
        return {
            "universe": self.universe.components,
            "mean_circuit_size": float(self.circuits.members.sum(1).mean()),
            "examples_without_circuit": self.without,
            "accuracy": float(self.task.intact.accuracy),
            **self.task.examples.as_dict(),
        }


def find_evaluation_circuits(claim: Claim, name: str) -> Steps[EvaluationCircuits]:
    """The circuits of a task's evaluation examples. Raises `Invalid` below the accuracy gate, and when none has a circuit."""
    task = yield from competent_task(claim, name)
    universe = yield from describe_model(claim)
    scores = yield from attribute_examples(claim, name)
    circuits = checked_circuits(scores, claim.parameters, name)
    examples = task.examples
    rows = examples.evaluation[circuits.members[examples.evaluation].any(1)]
    without = len(examples.evaluation) - len(rows)
    if not len(rows):
        raise Invalid(
            f"none of the {without} evaluation examples of task {name!r} has a circuit",
            {"task": name, "evaluation": without},
            code=ReasonCode.NO_CIRCUIT,
        )
    return EvaluationCircuits(task, universe, scores.values[rows], circuits.take(rows), examples.groups(rows), without)
