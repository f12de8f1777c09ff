"""A claim run as a test: evaluated, recorded, and passed, failed or skipped by its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ..core.claim import Claim
from ..core.sources import ModelSource
from ..core.verdict import CERTIFIED, INCONCLUSIVE, INVALID
from ..errors import CircuitsError
from .keys import STATE

if TYPE_CHECKING:
    from ..claims.outcome import Evaluation
    from ..report.model import ClaimRecord
    from .session import Session


class ClaimFailed(AssertionError):  # noqa: N818
    """The verdict on a claim is not the expected one. The text explains it."""

    is_explanation = True


class ClaimInvalid(AssertionError):  # noqa: N818
    """A claim could not be evaluated. `xfail` does not cover it, since nobody can expect this failure. The text says why."""

    is_explanation = True


def run(request: pytest.FixtureRequest, claim: Claim) -> None:
    """Evaluate a claim of a spec file. Raises `ClaimFailed` or `ClaimInvalid` when the verdict is not the expected one."""
    __tracebackhide__ = True
    from ..claims.outcome import decide_outcome
    from ..measurement.cost import Cost

    session, nodeid = request.config.stash[STATE], request.node.nodeid
    provenance = None
    try:
        claim = _with_fixtures(request, claim, session)
        claim = replace(claim, against=claim.against or session.baseline_reference(nodeid, claim))
    except CircuitsError as problem:
        evaluation = decide_outcome(problem, claim.required_bound(), Cost(), None)
    else:
        evaluation, provenance = _evaluated(claim, session)
        if session.mutation is not None:
            session.mutation.add(nodeid, claim, evaluation)
    settle(session.record(evaluation, claim, measured_on=provenance), session)


def _evaluated(claim: Claim, session: Session) -> tuple[Evaluation, Mapping[str, Any]]:
    """The evaluation of a claim and what it was measured on, as it was stored, or made now and stored."""
    stored = session.stored_evaluations()
    key = None if stored is None else stored.key(claim)
    known = None if stored is None else stored.get(key)
    if known is not None:
        return known
    from ..baseline.entries import measured_on
    from ..claims.evaluation import evaluate_claim
    from ..claims.preflight import with_warnings
    from ..claims.replication import replication_warnings

    executor = session.executor()
    with executor.traced() as trace:
        evaluation = evaluate_claim(executor, claim)
        evaluation = with_warnings(evaluation, executor, claim, replication_warnings(claim.tasks, session.seed))
        provenance = measured_on(executor, claim)
    if stored is not None:
        stored.put(key, evaluation, provenance, trace)
    return evaluation, provenance


def _with_fixtures(request: pytest.FixtureRequest, claim: Claim, session: Session) -> Claim:
    """The claim with what user fixtures return in place of their names: models of its series, tasks, the model to compare with."""
    against = claim.against if isinstance(claim.against, ModelSource) else None
    models = (*(claim.series or (claim.model,)), *((against,) if against else ()))
    if all(model.fixture is None for model in models) and all(task.kind != "fixture" for task in claim.tasks.values()):
        return claim
    from .api.adapters import model_source, task_source

    def opened(model: ModelSource) -> ModelSource:
        if model.fixture is None:
            return model
        return model_source(session, model, request.getfixturevalue(model.fixture), f"the fixture {model.fixture!r}")

    series = tuple(opened(model) for model in claim.series or (claim.model,))
    compared = opened(against) if against else claim.against
    tasks = {
        name: task_source(session, name, request.getfixturevalue(task.target), f"the fixture {task.target!r}")
        if task.kind == "fixture" else task
        for name, task in claim.tasks.items()
    }  # fmt: skip
    return replace(claim, model=series[-1], series=series if claim.series else (), tasks=tasks, against=compared)


def settle(record: ClaimRecord, session: Session) -> None:
    """Pass, fail or skip by the record's verdict. A negative control passes only when refuted, whatever `--circuits-inconclusive` says."""
    __tracebackhide__ = True
    if record.passed:
        return
    from ..report.messages.claims import skipped
    from ..report.renderers import RENDERERS

    if record.verdict == INCONCLUSIVE and session.inconclusive == "skip":
        pytest.skip(skipped(record))
    if record.verdict == INCONCLUSIVE and session.inconclusive == "pass" and record.expect == CERTIFIED:
        return
    failure = ClaimInvalid if record.verdict == INVALID else ClaimFailed
    raise failure(session.shortened(RENDERERS.get("explanation")().explain(record, session.shown(record.nodeid))))
