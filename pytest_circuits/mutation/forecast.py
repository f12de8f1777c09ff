"""What `--circuits-mutate` would cost, for `--circuits-plan`. No model is opened."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

from ..claims.evaluation import evaluate_claim
from ..claims.question import Looks, Question
from ..errors import CircuitsError
from ..measurement.executor import Executor
from ..measurement.planner import Forecast, Planner
from ..measurement.requests import AnyRequest
from ..mutants.base import Mutation
from ..spec.suite import ClaimCase
from .circuit import circuit_of
from .detection import gate_of, gates, mutated
from .judged_claim import JudgedClaim
from .recipes import NotMade, mutations
from .run import MutationRun, grouped


def forecast(stage: MutationRun, planner: Planner, offline: Executor, cases: Sequence[tuple[str, ClaimCase]]) -> Iterator[str]:
    """Lines about the mutants of each spec and model, by node id and case.

    Where all claims are stored, the very mutants are planned; else as many as the recipes give if the circuit has what they ask for.
    `offline` is a lab that measures nothing.
    """
    for nodeid, case in cases:
        if case.model.fixture is None and all(task.kind != "fixture" for task in case.tasks.values()):
            question = Question(case.property, case.parameters, case.model, case.tasks, case.series, case.against)
            judgement = evaluate_claim(offline, question, case.bound, strength=False)
            stage.keep(nodeid, case.name, question, case.bound, case.expect, judgement, case.entry)
    for these in grouped(stage.asked, offline):
        model, claims = these.model, these.claims
        open_ones = [one for one, _ in these.left_out if one.model == model and one.judgement.details.get("error") == "Offline"]
        found, exact = [*claims, *open_ones], not open_ones
        if found and all(one.study for one in found):
            yield f"{these.file}, model {model.name}: all claims are studies, which expect no verdict: no mutants"
            continue
        made: list[Mutation] = []
        if exact and claims:
            try:
                every = mutations(stage.recipes, circuit_of(offline, model, claims), these.donor)
                made = [one for one in every if not isinstance(one, NotMade)]
            except CircuitsError:
                exact = False
        if not exact:
            made = [Mutation(recipe.operator, (f"{recipe.place} {i}",)) for i, recipe in enumerate(stage.recipes)]
        total = Forecast()
        for mutation in made:
            total += _of(planner, mutation, found)
        guess = "" if exact else " (which ones is known once the claims are measured)"
        yield f"{these.file}, model {model.name}: {len(made)} mutants{guess} × {len(found)} claims"
        yield f"    {total}"
        yield from (f"    note: {note}" for note in total.notes)


def _of(planner: Planner, mutation: Mutation, claims: Sequence[JudgedClaim]) -> Forecast:
    found, tasks = Forecast(), set()
    for asked in claims:
        for task in asked.question.tasks.values():
            if task not in tasks:
                found += planner.add(_asking(gates(asked.model, task, gate_of(asked.question.parameters), mutation)))
                tasks.add(task)
        prop, claim = Looks.of(mutated(asked.question, mutation)).at(0).claim()
        try:
            found += planner.add(prop.estimate(claim))
        except Exception as problem:  # a third party's property that made-up results do not satisfy must not end the plan
            found += Forecast(notes=(f"cannot be planned: {asked.question.property} raised {type(problem).__name__}: {problem}",))
    return found


def _asking(requests: tuple[AnyRequest, AnyRequest]) -> Generator[Any, Any, None]:
    """Steps that ask for these and do nothing."""
    yield list(requests)
