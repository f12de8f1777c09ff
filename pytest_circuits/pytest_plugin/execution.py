"""A claim run as a test: measured, judged, recorded, and passed, failed or skipped by its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ..claims.replication import unchanged
from ..core.sources import ModelSource, TaskSource
from ..core.verdict import CERTIFIED, INCONCLUSIVE, INVALID, Bound
from ..errors import CircuitsError
from ..spec.suite import ClaimCase

if TYPE_CHECKING:
    from ..properties.parameters import AnyParameters
    from .session import Record, Session


class ClaimFailed(AssertionError):  # noqa: N818
    """A claim was judged, and the verdict is not the expected one. The text explains it."""

    is_explanation = True


class ClaimInvalid(AssertionError):  # noqa: N818
    """A claim could not be judged: not a failure that anybody can have expected, so `xfail` does not cover it. The text says why."""

    is_explanation = True


def run(request: pytest.FixtureRequest, case: ClaimCase) -> None:
    """Judge a claim of a spec file. Raises `ClaimFailed` or `ClaimInvalid` when the verdict is not the expected one."""
    __tracebackhide__ = True
    from ..baseline.entries import measured_on
    from ..claims.evaluation import decide_outcome, evaluate_claim
    from ..claims.preflight import forewarned
    from ..claims.question import Question
    from ..measurement.cost import Cost
    from .keys import STATE

    state = request.config.stash[STATE]
    facts = describe_case(case, request.node.nodeid)
    try:
        series, tasks, against = _handed_over(request, case, state)
        model, over = series[-1], series if case.series else ()
        question = Question(case.property, case.parameters, model, tasks, over)
        question = replace(question, against=against or state.recorded(request.node.nodeid, question, case.of))
    except CircuitsError as problem:
        judgement = decide_outcome(problem, case.bound, Cost(), None)
    else:
        judgement = evaluate_claim(state.lab(), question, case.bound)
        judgement = forewarned(judgement, state.lab(), question, case.bound, case.expect, unchanged(tasks, state.seed))
        facts["measured_on"] = measured_on(state.lab(), question)
        if state.stage is not None:
            name = "::".join((case.name, *case.ids[1:]))
            state.stage.keep(request.node.nodeid, name, question, case.bound, case.expect, judgement, case.entry)
    settle(state.record(judgement, facts), state)


Sources = tuple[tuple[ModelSource, ...], dict[str, TaskSource], ModelSource | None]


def _handed_over(request: pytest.FixtureRequest, case: ClaimCase, state: Session) -> Sources:
    """The sources of a case (all models of its series or the one, tasks, the model to compare with), with what user fixtures return
    in place of their names.
    """
    models, tasks = (*(case.series or (case.model,)), *((case.against,) if case.against else ())), dict(case.tasks)
    if any(model.fixture is not None for model in models) or any(task.kind == "fixture" for task in tasks.values()):
        from .api.adapters import model_source, task_source

        models = tuple(
            model if model.fixture is None
            else model_source(state, model, request.getfixturevalue(model.fixture), f"the fixture {model.fixture!r}")
            for model in models
        )  # fmt: skip
        for name, task in tasks.items():
            if task.kind == "fixture":
                tasks[name] = task_source(state, name, request.getfixturevalue(task.target), f"the fixture {task.target!r}")
    return (models[:-1], tasks, models[-1]) if case.against else (models, tasks, None)


def describe_case(case: ClaimCase, nodeid: str) -> dict[str, Any]:
    """What a record says about a claim of a spec file."""
    facts = describe(
        nodeid, case.line, case.name, case.property, case.parameters, case.about, case.tasks, case.bound, case.expect, case.description,
        case.series,
    )  # fmt: skip
    if not case.series and case.model.name != case.entry:
        facts["checkpoint"] = {"of": case.entry, "at": case.model.at}
    return facts


def describe(
    nodeid: str, line: int, claim: str, name: str, parameters: AnyParameters, model: str, tasks: Mapping[str, TaskSource],
    bound: Bound, expect: str, description: str = "", series: Sequence[ModelSource] = (),
) -> dict[str, Any]:  # fmt: skip
    """What a record says about a claim; `name` is the property's. Tasks have an entry of their own beside the parameters.

    Of a claim over a series, `model` is the series, and `series` says which models it has.
    """
    values = parameters.model_dump(mode="json")
    for key in ("task", "tasks"):
        values.pop(key, None)
    facts: dict[str, Any] = {
        "claim": claim, "description": description, "property": name, "model": model, "tasks": list(tasks), "parameters": values,
        "bound": bound.as_dict(), "expect": expect, "file": nodeid.split("::")[0], "line": line,
    }  # fmt: skip
    if series:
        facts["series"] = [{"model": one.name, "at": one.at} for one in series]
    return facts


def settle(record: Record, state: Session) -> None:
    """Pass, fail or skip by the record's verdict. A negative control passes when refuted and never because an option is lenient."""
    __tracebackhide__ = True
    if record["passed"]:
        return
    from ..report.explain import explain

    if record["verdict"] == INCONCLUSIVE and state.inconclusive == "skip":
        pytest.skip(f"inconclusive: {record['reason']}")
    if record["verdict"] == INCONCLUSIVE and state.inconclusive == "pass" and record["expect"] == CERTIFIED:
        return
    failure = ClaimInvalid if record["verdict"] == INVALID else ClaimFailed
    raise failure(state.shortened(explain(record, state.shown(record["nodeid"]))))
