"""Spec files as pytest collectors: file → claim → model → test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

from .errors import CircuitsError
from .spec.load import load_suite
from .spec.suite import ClaimCase


class ClaimFailed(AssertionError):
    """A claim's verdict is not the expected one. The text explains it."""


class SpecFile(pytest.Module):
    """A `*.circuits.yaml` file. It is a Module, so that fixtures of every scope and marks work as in a test module."""

    @classmethod
    def from_parent(cls, parent: Any, **kwargs: Any) -> Any:
        """As for every node; the module object is an empty one, since there is no Python file to import."""
        node = super().from_parent(parent, **kwargs)
        node.obj = ModuleType(node.path.name)
        return node

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """One collector for each claim. A wrong spec is a collection error: nothing of the session is run."""
        from .plugin import STATE

        state = self.config.stash[STATE]
        try:
            suite = load_suite(self.path)
            given = {name: path for name, path in state.overrides.items() if name in suite.models}
            if given:
                state.used_overrides |= set(given)
                suite = load_suite(self.path, models=given)
        except CircuitsError as problem:
            _annotate(problem)
            raise self.CollectError(str(problem)) from None
        cases: dict[str, list[ClaimCase]] = {}
        for case in suite.claims:
            cases.setdefault(case.name, []).append(case)
        for name, these in cases.items():
            yield Level.from_parent(self, name=name, cases=[(case.ids, case) for case in these])


class Level(pytest.Collector):
    """One part of the node id: a claim, a model, or a parameter."""

    def __init__(self, name: str, parent: Any, cases: list[tuple[tuple[str, ...], ClaimCase]], **kwargs: Any) -> None:
        super().__init__(name, parent, **kwargs)
        self.cases = cases

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Tests, or the next level."""
        deeper: dict[str, list[tuple[tuple[str, ...], ClaimCase]]] = {}
        for ids, case in self.cases:
            if len(ids) > 1:
                deeper.setdefault(ids[0], []).append((ids[1:], case))
            else:
                yield ClaimItem.of(self, ids[0] if ids else case.name, case)
        for name, these in deeper.items():
            yield Level.from_parent(self, name=name, cases=these)


class ClaimItem(pytest.Function):
    """One claim about one model."""

    case: ClaimCase

    @classmethod
    def of(cls, parent: pytest.Collector, name: str, case: ClaimCase) -> ClaimItem:
        """The test of a case, with its marks."""
        item: ClaimItem = cls.from_parent(parent, name=name, callobj=_call(case))
        item.case = case
        item.add_marker(pytest.mark.circuits)
        for mark, args, kwargs in case.marks:
            item.add_marker(getattr(pytest.mark, mark)(*args, **kwargs))
        return item

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Reports point to the claim's line in the YAML file."""
        return self.path, self.case.line - 1, "::".join((self.case.name, *self.case.ids))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """A failed claim explains itself in words; any other exception is shown with its traceback."""
        if isinstance(excinfo.value, ClaimFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)


def _call(case: ClaimCase) -> Callable[..., None]:
    def claim(request: pytest.FixtureRequest) -> None:
        __tracebackhide__ = True
        run(request.node, case)

    claim.__doc__ = case.description or None
    return claim


def facts_of(case: ClaimCase, file: str) -> dict[str, Any]:
    """What a record says about the claim itself."""
    parameters = case.parameters.model_dump(mode="json")
    for name in ("task", "tasks"):
        parameters.pop(name, None)
    return {
        "claim": case.name, "description": case.description, "property": case.property, "model": case.model.name,
        "tasks": list(case.tasks), "parameters": parameters, "bound": case.bound.as_dict(), "expect": case.expect,
        "file": file, "line": case.line,
    }  # fmt: skip


def run(item: pytest.Item, case: ClaimCase) -> None:
    """Judge a claim; raise `ClaimFailed` when the verdict is not the expected one."""
    __tracebackhide__ = True
    from .lab.judge import judge, measure
    from .plugin import STATE

    state = item.config.stash[STATE]
    outcome, cost, model = measure(state.lab, case.property, case.parameters, case.model, case.tasks)
    record = state.record(judge(outcome, case.bound, cost, model), facts_of(case, item.nodeid.split("::")[0]))
    settle(record, state.inconclusive)


def settle(record: dict[str, Any], inconclusive: str) -> None:
    """Pass, fail or skip by the record's verdict."""
    __tracebackhide__ = True
    if record["passed"]:
        return
    from .report.explain import explain

    if record["verdict"] == "inconclusive" and inconclusive != "fail":
        if inconclusive == "skip":
            pytest.skip(f"inconclusive: {record['reason']}")
        return
    raise ClaimFailed(explain(record))


def _annotate(problem: CircuitsError) -> None:
    """On GitHub, mark mistakes of a spec at their lines: collection errors carry no place of their own."""
    import os

    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for error in getattr(problem, "errors", ()):
        print(f"\n::error file={error.path},line={error.line},col={error.column}::{error.problem}")
