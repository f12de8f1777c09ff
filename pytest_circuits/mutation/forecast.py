"""The cost of `--circuits-mutate`, for `--circuits-plan`; no model is opened."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from ..claims.evaluation import estimation, evaluate_claim
from ..claims.sequential import LookPlan
from ..core.claim import Claim
from ..core.counted import counted
from ..errors import CircuitsError
from ..measurement.executor import Executor
from ..measurement.planner import Forecast, Planner
from ..measurement.requests import Ablate
from ..mutants.base import Mutation
from .circuit import circuit_of
from .detection import gate_of, gates, mutated
from .judged_claim import JudgedClaim
from .recipes import UnmadeMutant, mutations
from .run import MutationRun, grouped


def forecast(run: MutationRun, planner: Planner, offline: Executor, claims: Sequence[tuple[str, Claim]]) -> Iterator[str]:
    """Lines about the mutants of each spec and model; `claims` come with their node ids.

    If all claims are stored, the exact mutants are planned; otherwise one mutant for each recipe.
    `offline` is an executor that measures nothing.
    """
    for nodeid, claim in claims:
        if claim.model.fixture is None and all(task.kind != "fixture" for task in claim.tasks.values()):
            run.add(nodeid, claim, evaluate_claim(offline, claim, strength=False))
    for group in grouped(run.judged, offline):
        model = group.model
        unmeasured = [
            judged for judged, _ in group.left_out if judged.claim.model == model and judged.evaluation.details.get("error") == "Offline"
        ]
        planned, is_exact = [*group.claims, *unmeasured], not unmeasured
        if planned and all(judged.is_study for judged in planned):
            yield f"{group.file}, model {model.name}: all claims are studies, which expect no verdict: no mutants"
            continue
        mutants: list[Mutation] = []
        if is_exact and group.claims:
            try:
                every = mutations(run.recipes, circuit_of(offline, model, group.claims), group.donor)
                mutants = [mutant for mutant in every if not isinstance(mutant, UnmadeMutant)]
            except CircuitsError:
                is_exact = False
        if not is_exact:
            mutants = [Mutation(recipe.operator, (f"{recipe.place} {i}",)) for i, recipe in enumerate(run.recipes)]
        total = Forecast()
        for mutation in mutants:
            total += _forecast_mutant(planner, mutation, planned)
        guess = "" if is_exact else " (which ones is known once the claims are measured)"
        yield f"{group.file}, model {model.name}: {counted(len(mutants), 'mutant')}{guess} × {counted(len(planned), 'claim')}"
        yield f"    {total}"
        yield from (f"    note: {note}" for note in total.notes)


def _forecast_mutant(planner: Planner, mutation: Mutation, claims: Sequence[JudgedClaim]) -> Forecast:
    total, tasks = Forecast(), set()
    for judged in claims:
        claim = judged.claim
        for task in claim.tasks.values():
            if task not in tasks:
                total += planner.add(_request_steps(gates(claim.model, task, gate_of(claim.parameters), mutation)))
                tasks.add(task)
        try:
            total += planner.add(estimation(LookPlan.of(mutated(claim, mutation)).at(0)))
        except Exception as problem:  # a third party's property that synthetic results do not satisfy must not end the plan
            total += Forecast(notes=(f"cannot be planned: {claim.property} raised {type(problem).__name__}: {problem}",))
    return total


def _request_steps(requests: tuple[Ablate, Ablate]) -> Generator[Any, Any, None]:
    """A generator that requests measurements and discards the results."""
    yield list(requests)
