"""`--circuits-plan`: what a run would measure, without loading a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ..core.claim import BaselineReference
from ..core.counted import counted

if TYPE_CHECKING:
    from ..measurement.planner import Planner
    from .items import ClaimItem


def show(session: pytest.Session) -> None:
    """Print a forecast for each collected claim, and the sum; measurements that claims share count once."""
    from ..measurement.planner import Planner
    from .items import ClaimItem
    from .keys import STATE

    planner = Planner(session.config.stash[STATE].executor())
    claims = [item for item in session.items if isinstance(item, ClaimItem)]
    lines = [line for item in claims for line in _forecast(planner, item)]
    others = len(session.items) - len(claims)
    total = planner.total
    lines += ["", *_mutants(session, planner, claims)]
    lines += [f"{counted(len(claims), 'claim')}; {total}", "Forwards and backwards are an estimate of batched model calls."]
    lines += [f"Not in this plan: {others} other tests, which may measure too."] if others else []
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.section("plan")
        for line in lines:
            reporter.write_line(line)


def _mutants(session: pytest.Session, planner: Planner, claims: list[ClaimItem]) -> list[str]:
    """What `--circuits-mutate` would add."""
    from .keys import STATE

    state = session.config.stash[STATE]
    if state.mutation is None:
        return []
    from ..measurement.executor import Executor
    from ..measurement.planner import Planner as Fresh
    from ..mutation.forecast import forecast

    executor = planner.executor
    offline = Executor(
        executor.store,
        device=executor.models.device_option,
        dtype=executor.models.dtype_option,
        batch_size=executor.batch_size,
        offline=True,
    )
    mutant_planner = Fresh(executor)
    lines = list(forecast(state.mutation, mutant_planner, offline, [(item.nodeid, item.claim) for item in claims]))
    return [*lines, f"mutants: {mutant_planner.total}", ""]


def _forecast(planner: Planner, item: ClaimItem) -> Iterator[str]:
    from ..claims.evaluation import estimation
    from ..claims.preflight import warnings
    from ..claims.sequential import LookPlan

    yield item.nodeid
    claim = item.claim
    unknown = [f"model {claim.model.name!r}"] if claim.model.fixture else []
    unknown += [f"task {name!r}" for name, task in claim.tasks.items() if task.kind == "fixture"]
    if unknown:
        yield f"    note: not planned, since {' and '.join(unknown)} come from fixtures, which a plan does not run"
        return
    if claim.property == "drift" and claim.against is None:
        claim = replace(claim, against=_UNKNOWN)
    problems = warnings(planner.executor, claim, planner.shape(claim.model))
    plan = LookPlan.of(claim)
    for look in range(len(plan)):
        try:
            forecast = planner.add(estimation(plan.at(look)))
        except Exception as problem:  # a third party's property that synthetic results do not satisfy must not end the plan
            yield f"    note: cannot be planned: {claim.property} raised {type(problem).__name__}: {problem}"
            return
        prompts = ", ".join(f"{n} prompts of {name}" for name, n in plan.prompts(look).items()) if look else ""
        yield f"    if still open, {prompts}: {forecast}" if look else f"    {forecast}"
        yield from (f"    note: {note}" for note in forecast.notes)
    yield from (f"    warning: {warning}" for warning in problems)


_UNKNOWN = BaselineReference(None, writes=True)  # what a baseline holds decides nothing about what is measured
