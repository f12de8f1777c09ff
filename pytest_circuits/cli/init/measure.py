"""Measure the tasks, then the candidates, and set bounds on the estimates that are settled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ...claims.evaluation import measure
from ...core.claim import Claim
from ...core.results import Description
from ...core.shares import Size
from ...core.sources import ModelSource
from ...core.verdict import CERTIFIED, Bound, Estimate, decide
from ...errors import CircuitsError, Invalid, OptionError, TaskError
from ...measurement.executor import Executor
from ...properties import PROPERTIES
from ...properties.parameters import task_names
from .arguments import RequestedTask
from .bounds import MARGINS, around, safe_side
from .candidates import Candidate, CandidateSteps, Finding, candidates_for_pair, candidates_for_task

WIDE, NARROW, FEW = "10%", "20%", 5  # circuit size: 10%, or 20% if 10% is fewer than FEW components


@dataclass(frozen=True)
class Ability:
    """Whether the model can do a task: its accuracy on the evaluation examples, if measured. `reason` is empty if it can."""

    task: RequestedTask
    accuracy: Estimate | None
    reason: str = ""

    @property
    def chance(self) -> float:
        """The accuracy that guessing or one constant answer reaches."""
        return 0.0 if self.accuracy is None else float(self.accuracy.details["chance"])


@dataclass(frozen=True)
class Proposal:
    """All measurements: the model, the defaults of all claims, the tasks, and the findings of each task or pair of tasks."""

    model: ModelSource
    described: Description
    defaults: Mapping[str, Any]
    abilities: tuple[Ability, ...]
    findings: tuple[tuple[str, tuple[Finding, ...]], ...]
    slack: float

    @property
    def claims(self) -> list[Finding]:
        """The findings with a bound."""
        return [finding for _, findings in self.findings for finding in findings if finding.bound is not None]

    @property
    def fixed(self) -> list[str]:
        """The tasks with claims whose prompts do not depend on a seed."""
        return [ability.task.name for ability in self.abilities if ability.task.kind != "builtin" and not ability.reason]

    @property
    def redrawn(self) -> bool:
        """Whether a seed draws other prompts of at least one task with claims."""
        return any(ability.task.kind == "builtin" and not ability.reason for ability in self.abilities)

    @property
    def open(self) -> list[Finding]:
        """The findings without a bound."""
        return [finding for _, findings in self.findings for finding in findings if finding.bound is None]


@dataclass(frozen=True)
class Study:
    """Measures candidates on one model."""

    executor: Executor
    model: ModelSource
    tasks: Mapping[str, RequestedTask]
    defaults: Mapping[str, Any]
    slack: float = 0.0
    report: Callable[[str], None] = print

    def claim(self, name: str, written: Mapping[str, Any]) -> Claim:
        """The claim as a spec would state it: with the defaults that are parameters of the property."""
        model = PROPERTIES.get(name).parameters
        defaults = {key: value for key, value in self.defaults.items() if key in model.model_fields}
        parameters = model.model_validate_json(json.dumps({**defaults, **written}))
        return Claim(name, parameters, self.model, {task: self.tasks[task].source for task in task_names(parameters)})

    def ability(self, task: RequestedTask) -> Ability:
        """Measure the accuracy on a task. Raises the `CircuitsError` of a task that cannot be read or does not fit the model."""
        outcome = measure(self.executor, self.claim("accuracy", {"task": task.name})).outcome
        if isinstance(outcome, Invalid):
            return Ability(task, None, str(outcome))
        if isinstance(outcome, (TaskError, OptionError)) and task.name not in str(outcome):
            raise type(outcome)(f"task {task.name!r}: {outcome}")
        if isinstance(outcome, CircuitsError):
            raise outcome
        share, least = float(outcome.details["accuracy_over_examples"]), self.defaults["min_accuracy"]
        chance = float(outcome.details["chance"])
        if share < least:
            return Ability(task, outcome, f"below min_accuracy {least:g}: there is no behaviour to explain")
        if least > 0 and chance > 0 and outcome.interval[0] <= chance:
            return Ability(task, outcome, f"not clearly above {chance:.3g}, which guessing or one constant answer reaches")
        return Ability(task, outcome)

    def finding(self, candidate: Candidate) -> Finding:
        """Measure a candidate, and set the tightest readable bound unless that would be vacuous."""
        self.report(f"{candidate.property} of {' and '.join(candidate.tasks)}")
        claim = self.claim(candidate.property, candidate.parameters)
        outcome = measure(self.executor, claim).outcome
        if isinstance(outcome, CircuitsError):
            return Finding(candidate, outcome, None, str(outcome))
        if outcome.unsettled:
            return Finding(candidate, outcome, None, outcome.unsettled)
        bound = self._bound(candidate, outcome)
        if bound is None:
            reason = f"not clearly within {MARGINS[-1]:g} of {candidate.target:g}"
            return Finding(candidate, outcome, None, reason)
        vacuous = candidate.empty(outcome, bound) or bound.vacuous(*PROPERTIES.get(candidate.property).range(claim.parameters))
        if vacuous is None and decide(outcome, bound).kind != CERTIFIED:
            raise AssertionError(f"{candidate.name}: {outcome} does not meet its own bound '{bound}'")
        return Finding(candidate, outcome, None if vacuous else bound, vacuous or "")

    def _bound(self, candidate: Candidate, outcome: Estimate) -> Bound | None:
        if candidate.target is not None:
            return around(outcome, candidate.target, self.slack)
        return safe_side(outcome, candidate.side, self.slack, candidate.count)


def circuit_size(described: Description) -> str:
    """10% of the components, or 20% if 10% is fewer than five."""
    return WIDE if Size.parse(WIDE).of(described.universe.components, "floor") >= FEW else NARROW


def propose(study: Study, described: Description, wanted: Sequence[str]) -> Proposal:
    """Measure all tasks and candidates. Raises `OptionError` if the model can do none of the tasks, with the accuracy of each."""
    abilities = []
    for task in study.tasks.values():
        study.report(f"accuracy of {task.name}")
        abilities.append(study.ability(task))
    able = {ability.task.name: ability for ability in abilities if not ability.reason}
    if not able:
        each = "; ".join(f"{ability.task.name}: {shown_accuracy(ability)}, {ability.reason}" for ability in abilities)
        raise OptionError(f"the model can do none of these tasks, so there is no behaviour to claim anything about ({each})")
    findings = []
    for name, ability in able.items():
        others = [other for other in able if other != name]
        findings.append((name, tuple(_measure_all(study, candidates_for_task(name, others, ability.chance, wanted), wanted))))
    for a, b in combinations(able, 2) if "jaccard" in wanted else ():
        findings.append((f"{a} and {b}", tuple(_measure_all(study, candidates_for_pair(a, b, wanted), wanted))))
    return Proposal(study.model, described, study.defaults, tuple(abilities), tuple(findings), study.slack)


def shown_accuracy(ability: Ability) -> str:
    """`accuracy 0.43 [0.31, 0.55]`."""
    if ability.accuracy is None:
        return "accuracy not measured"
    low, high = ability.accuracy.interval
    return f"accuracy {ability.accuracy.value:.3f} [{low:.3f}, {high:.3f}]"


def _measure_all(study: Study, steps: CandidateSteps, wanted: Sequence[str]) -> Iterator[Finding]:
    try:
        candidate = next(steps)
        while True:
            finding = study.finding(candidate)
            if candidate.property in wanted:
                yield finding
            candidate = steps.send(finding)
    except StopIteration:
        return
