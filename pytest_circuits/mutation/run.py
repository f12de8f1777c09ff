"""Mutation testing at the end of a session: evaluates every claim on the mutants of its model, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..claims.outcome import Evaluation
from ..core.claim import Claim
from ..core.sources import ModelSource
from ..errors import CircuitsError, OptionError
from ..measurement.executor import Executor
from ..report.model import MutationReport
from .circuit import circuit_of
from .detection import MutantResult, evaluate_mutant
from .judged_claim import JudgedClaim
from .recipes import Recipe, UnmadeMutant, mutations, recipes
from .report import GroupResult, build_mutation_report

Tell = Callable[[str], object]


class MutationRun:
    """`--circuits-mutate` of one session. Raises `OptionError` for unknown mutants, and for a threshold outside [0, 1].

    `judged` are the evaluated claims in order; `result` is the report's `mutation` after `run`.
    """

    def __init__(self, wanted: str, threshold: float | None) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise OptionError(f"--circuits-mutate-score is a share from 0 to 1, got {threshold:g}")
        self.wanted, self.threshold = wanted, threshold
        self.recipes: list[Recipe] = recipes(wanted)
        self.judged: list[JudgedClaim] = []
        self.result: MutationReport | None = None

    def add(self, nodeid: str, claim: Claim, evaluation: Evaluation) -> None:
        """Remember a claim that was evaluated; a rerun of its test replaces it."""
        of_test = [judged for judged in self.judged if judged.nodeid == nodeid]
        same = next((judged for judged in of_test if judged.claim == claim), None)
        judged = JudgedClaim(nodeid, claim, evaluation, same.number if same else len(of_test) + 1)
        self.judged = [judged if known is same else known for known in self.judged] + ([] if same else [judged])

    @property
    def passed(self) -> bool:
        """Whether the threshold was reached and every mutant was measured; True before `run`."""
        return self.result is None or self.result.passed

    def run(self, executor: Executor, lenient: bool, tell: Tell, notes: Sequence[str] = ()) -> None:
        """Make all mutants and evaluate the claims on them; `tell` is called with a line about each.

        If interrupted, `result` stays None and measurements stay stored.
        """
        started = time.perf_counter()
        groups = [self._group(executor, group, lenient, tell) for group in grouped(self.judged, executor)]
        self.result = build_mutation_report(groups, self.wanted, self.threshold, time.perf_counter() - started, notes)

    def _group(self, executor: Executor, group: ClaimGroup, lenient: bool, tell: Tell) -> GroupResult:
        file, model, claims = group.file, group.model, group.claims
        if not claims:
            return GroupResult(file, model.name, claims, None, [], group.left_out, "no claim is as expected on the intact model")
        if all(judged.is_study for judged in claims):
            return GroupResult(file, model.name, claims, None, [], group.left_out, "all claims are studies, which expect no verdict")
        try:
            circuit = circuit_of(executor, model, claims)
        except CircuitsError as problem:
            return GroupResult(file, model.name, claims, None, [], group.left_out, str(problem))
        results: list[MutantResult | UnmadeMutant] = []
        mutants = mutations(self.recipes, circuit, group.donor)
        for i, mutant in enumerate(mutants):
            result = mutant if isinstance(mutant, UnmadeMutant) else evaluate_mutant(executor, model, claims, mutant, lenient)
            results.append(result)
            tell(f"mutant {i + 1} of {len(mutants)} of {model.name} ({file}): {mutant.name}: {_outcome_line(result)}")
        return GroupResult(file, model.name, claims, circuit, results, group.left_out)


def _outcome_line(result: MutantResult | UnmadeMutant) -> str:
    if isinstance(result, UnmadeMutant) or result.problem:
        return "not measured" if isinstance(result, MutantResult) and result.unmeasured else "not made"
    detections = [answer for answer in result.answers if answer.how]
    if detections:
        return f"noticed by {len(detections)} of {len(result.answers)} claims"
    return "equivalent" if result.equivalent else "survived"


@dataclass(frozen=True)
class ClaimGroup:
    """The claims of one spec about one model. `left_out`: excluded claims with reasons; `donor`: an earlier checkpoint, if any."""

    file: str
    model: ModelSource
    claims: list[JudgedClaim]
    left_out: list[tuple[JudgedClaim, str]]
    donor: ModelSource | None


def grouped(judged_claims: Iterable[JudgedClaim], executor: Executor) -> Iterator[ClaimGroup]:
    """Claims grouped by spec and model; for a series, those about the last checkpoint that ran, with the first as donor."""
    groups: dict[tuple[str, str, ModelSource | None], list[JudgedClaim]] = {}
    for judged in judged_claims:
        model = judged.claim.model
        groups.setdefault((judged.file, judged.claim.entry, model if model.at is None else None), []).append(judged)
    for (file, _, _), members in groups.items():
        model = max((judged.claim.model for judged in members), key=_place)
        every = {checkpoint for judged in members for checkpoint in (judged.claim.series or (judged.claim.model,))}
        first = min(every, key=_place)
        claims: list[JudgedClaim] = []
        left_out: list[tuple[JudgedClaim, str]] = []
        for judged in members:
            reason = judged.exclusion
            if judged.claim.model != model:
                reason = f"about an earlier checkpoint than {model.name}"
            elif executor.models.is_ready_made(model):
                reason = "the model comes from a fixture or a module, which is not changed after its test"
            if reason is None:
                claims.append(judged)
            else:
                left_out.append((judged, reason))
        donor = first if _place(first) < _place(model) and first.fixture is None else None
        yield ClaimGroup(file, model, claims, left_out, donor)


def _place(model: ModelSource) -> float:
    return float("-inf") if model.at is None else model.at
