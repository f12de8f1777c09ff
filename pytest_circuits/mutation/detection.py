"""Claims evaluated on one mutant: which of them notice it, and how the model's answers changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..claims.evaluation import evaluate_claim
from ..claims.outcome import Evaluation, decide_outcome
from ..core.claim import Claim
from ..core.sources import ModelSource, TaskSource
from ..core.verdict import INCONCLUSIVE, as_expected
from ..errors import CircuitsError, MeasurementError, MutationError, Offline
from ..measurement.cost import Cost
from ..measurement.executor import Executor
from ..measurement.requests import Ablate
from ..mutants.base import Mutation
from ..properties.parameters import AnyParameters, Parameters
from ..properties.steps.examples import part
from ..report.messages.verdicts import reason
from .judged_claim import JudgedClaim

ROUNDING = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 0.05, "float16": 0.01}
"""Changes of the metric, as a share of its largest value (at least 1), up to which answers count as unchanged."""


@dataclass(frozen=True)
class Detection:
    """The result of a claim on a mutant. `how` is the verdict that detected it, or None if the claim did not."""

    judged: JudgedClaim
    evaluation: Evaluation
    how: str | None


@dataclass(frozen=True)
class Behaviour:
    """One task on the intact model and on the mutant: accuracies, largest changes on an example, whether they are more than rounding."""

    accuracy: tuple[float, float]
    metric: float
    log_prob: float
    changed: bool


@dataclass(frozen=True)
class MutantResult:
    """The results on one mutant. `problem`: why it was not made or, if `unmeasured`, not measured."""

    mutation: Mutation
    answers: tuple[Detection, ...] = ()
    behaviour: Mapping[str, Behaviour] = field(default_factory=dict)
    fingerprint: str | None = None
    problem: str = ""
    unmeasured: bool = False

    @property
    def noticed(self) -> bool:
        """Whether a claim detects it."""
        return any(answer.how for answer in self.answers)

    @property
    def equivalent(self) -> bool:
        """Whether it does not count in the score: equivalent by definition, or no answer changed and no claim detected it."""
        unchanged = bool(self.behaviour) and not any(b.changed for b in self.behaviour.values())
        return self.mutation.equivalent or (unchanged and not self.noticed)


def mutated(claim: Claim, mutation: Mutation) -> Claim:
    """The same claim about the mutant: the model (of a series, the last one) or the labels of the tasks are replaced."""
    if mutation.of_labels:
        return replace(claim, tasks={name: relabelled(task, mutation) for name, task in claim.tasks.items()})
    model = changed(claim.model, mutation)
    return replace(claim, model=model, series=(*claim.series[:-1], model) if claim.series else ())


def changed(model: ModelSource, mutation: Mutation) -> ModelSource:
    """The source of a mutated model; the model itself if the mutation changes labels."""
    return model if mutation.of_labels else replace(model, mutation=mutation.text)


def relabelled(task: TaskSource, mutation: Mutation) -> TaskSource:
    """The source of a task with other labels."""
    return replace(task, mutation=mutation.text)


def evaluate_mutant(
    executor: Executor, model: ModelSource, claims: Sequence[JudgedClaim], mutation: Mutation, lenient: bool
) -> MutantResult:
    """Make a mutant and evaluate every claim on it. `lenient`: an inconclusive claim fails no test, so it is not a detection.

    A mutant that cannot be made, or not be measured offline, is not a failure of any claim: `problem` says why.
    """
    try:
        if mutation.of_labels:
            for task in {task for judged in claims for task in judged.claim.tasks.values()}:
                executor.task(relabelled(task, mutation))
            fingerprint = None
        else:
            fingerprint = executor.describe(changed(model, mutation)).fingerprint
        behaviour = behaviours(executor, model, claims, mutation)
        answers = tuple(_answer(executor, judged, mutation, lenient) for judged in claims)
    except MutationError as problem:
        return MutantResult(mutation, problem=str(problem))
    except Offline as problem:
        return MutantResult(mutation, problem=str(problem), unmeasured=True)
    return MutantResult(mutation, answers, behaviour, fingerprint)


def _answer(executor: Executor, judged: JudgedClaim, mutation: Mutation, lenient: bool) -> Detection:
    try:
        evaluation = evaluate_claim(executor, mutated(judged.claim, mutation), strength=False)
    except CircuitsError:
        raise
    except Exception as problem:  # a property of a third party that did not expect such a model: its test would fail, and no other
        error = MeasurementError(f"the property {judged.claim.property} raised {type(problem).__name__}: {problem}")
        evaluation = decide_outcome(error, judged.claim.required_bound(), Cost(), None)
    if evaluation.details.get("error") == "Offline":
        raise Offline(reason(evaluation.verdict))
    verdict = evaluation.verdict.kind
    quiet = as_expected(verdict, judged.claim.expect) or (lenient and verdict == INCONCLUSIVE)
    return Detection(judged, evaluation, None if quiet else verdict)


def behaviours(executor: Executor, model: ModelSource, claims: Iterable[JudgedClaim], mutation: Mutation) -> dict[str, Behaviour]:
    """Answers of both models on each task: on the evaluation examples of the first claim about it, as its competence gate measures."""
    by_task: dict[str, Behaviour] = {}
    for judged in claims:
        for name, task in judged.claim.tasks.items():
            if name not in by_task:
                by_task[name] = _behaviour(executor, model, task, gate_of(judged.claim.parameters), mutation)
    return by_task


def gate_of(parameters: AnyParameters) -> Parameters:
    """The parameters by which a claim's competence gate measures: its own, those of the claim inside it, or the defaults."""
    inner: Any = getattr(getattr(parameters, "of", None), "parameters", None)
    return next((p for p in (parameters, inner) if isinstance(p, Parameters)), Parameters())


def gates(model: ModelSource, task: TaskSource, p: Parameters, mutation: Mutation) -> tuple[Ablate, Ablate]:
    """The intact model's answers, and the mutant's, as a claim's competence gate asks for them."""
    intact = Ablate(model, task, ((),), metric=p.metric, part=part(p, "evaluation"))
    there = relabelled(task, mutation) if mutation.of_labels else task
    return intact, replace(intact, model=changed(model, mutation), task=there)


def _behaviour(executor: Executor, model: ModelSource, task: TaskSource, p: Parameters, mutation: Mutation) -> Behaviour:
    import numpy as np

    before, after = gates(model, task, p, mutation)
    try:
        then, now = executor.result(before), executor.result(after)
    except (Offline, MutationError):
        raise
    except CircuitsError:  # answers that are not finite numbers
        return Behaviour((float("nan"), float("nan")), float("inf"), float("inf"), True)
    metric, log_prob = (float(np.abs(getattr(now, k).astype(float) - getattr(then, k)).max()) for k in ("metric", "log_prob"))
    limit = ROUNDING.get(executor.describe(model).dtype, 1e-4)
    size = max(1.0, float(np.abs(then.metric).max()))
    other = (
        bool((now.correct != then.correct).any())
        or metric > limit * size
        or log_prob > limit * max(1.0, float(np.abs(then.log_prob).max()))
    )
    return Behaviour((float(then.correct.mean()), float(now.correct.mean())), metric, log_prob, other)
