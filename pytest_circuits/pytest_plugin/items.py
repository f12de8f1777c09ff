"""Spec files as pytest collectors: file → claim → model → test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from ..claims.replication import reseeded_case
from ..errors import CircuitsError, SpecError
from ..spec.load import load_suite
from ..spec.suite import ClaimCase, MarkSpec
from .execution import ClaimFailed, ClaimInvalid, describe_case, run
from .keys import STATE

Place = tuple[tuple[str, ...], ClaimCase]


class SpecFile(pytest.Module):
    """A `*.circuits.yaml` file. It is a Module, so that fixtures of every scope and marks work as in a test module."""

    circuits_errors: list[dict[str, Any]]

    @classmethod
    def from_parent(cls, parent: Any, **kwargs: Any) -> Any:
        """As for every node; the module object is an empty one, since there is no Python file to import."""
        node = super().from_parent(parent, **kwargs)
        node.obj = ModuleType(node.path.name)
        node.circuits_errors = []
        return node

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """One collector for each claim. A wrong spec is a collection error: nothing of the session is run."""
        state = self.config.stash[STATE]
        try:
            suite = load_suite(self.path, models=state.overrides, unknown="ignore")
            state.used_overrides |= suite.replaced
            claims = [reseeded_case(case, state.seed) for case in suite.claims]
        except CircuitsError as problem:
            self._refuse(getattr(problem, "errors", ()))
            raise self.CollectError(str(problem)) from None
        cases: dict[str, list[ClaimCase]] = {}
        for case in claims:
            cases.setdefault(case.name, []).append(case)
        self._check_marks(cases)
        return [Level.from_parent(self, name=name, cases=[(case.ids, case) for case in these]) for name, these in cases.items()]

    def _check_marks(self, cases: Mapping[str, list[ClaimCase]]) -> None:
        """What only pytest can tell of marks: unknown ones under `--strict-markers`, and those that mean nothing in a spec."""
        found, shown = [], self.config.stash[STATE].shown(self.nodeid)
        for name, (case, *_) in cases.items():
            for mark, _, kwargs in case.marks:
                try:
                    getattr(pytest.mark, mark)
                    problem = "xfail takes no 'raises' here; leave it out" if mark == "xfail" and "raises" in kwargs else None
                except (AttributeError, pytest.fail.Exception) as refusal:
                    problem = str(refusal)
                if problem:
                    found.append(SpecError(shown, case.line, case.column, f"claims.{name}.marks: {problem}"))
        if found:
            self._refuse(found)
            raise self.CollectError("\n".join(map(str, found)))

    def _refuse(self, errors: Iterable[SpecError]) -> None:
        self.circuits_errors += [{"file": self.nodeid, "line": e.line, "column": e.column, "problem": e.problem} for e in errors]


class Level(pytest.Collector):
    """One part of the node id: a claim, a model, or a parameter."""

    def __init__(self, name: str, parent: Any, cases: list[Place], **kwargs: Any) -> None:
        super().__init__(name, parent, **kwargs)
        self.cases = cases

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Tests, or the next level."""
        deeper: dict[str, list[Place]] = {}
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
        """The test of a case. Marks are put on its function, before pytest looks for fixtures: `usefixtures` is one of them."""
        item: ClaimItem = cls.from_parent(parent, name=name, callobj=_function(case))
        item.case = case
        return item

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Reports point to the claim's line in the YAML file."""
        return self.path, self.case.line - 1, "::".join((self.case.name, *self.case.ids))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """A failed claim explains itself in words; any other exception is shown with its traceback."""
        if isinstance(excinfo.value, (ClaimFailed, ClaimInvalid)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def circuits_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> list[dict[str, Any]]:
        """The record of a claim that was stopped by an exception nobody expected: it is invalid, and no `expect` makes that right."""
        text = excinfo.exconly(tryshort=True).strip().split("\n")[0]
        facts = describe_case(self.case, self.nodeid)
        return [self.config.stash[STATE].record_failure(self.nodeid, facts, f"internal error: {text}", excinfo.typename)]


def _function(case: ClaimCase) -> Callable[..., None]:
    def claim(request: pytest.FixtureRequest) -> None:
        __tracebackhide__ = True
        run(request, case)

    claim.__doc__ = case.description or None
    marked: Any = claim
    for name, args, kwargs in _marks(case):
        marked = getattr(pytest.mark, name).with_args(*args, **kwargs)(marked)
    return marked  # type: ignore[no-any-return]


def _marks(case: ClaimCase) -> Iterator[MarkSpec]:
    """The marks of a case. `xfail` covers a claim that was measured and failed; one that could not be measured is no expected failure."""
    yield "circuits", (), {}
    sources = (case.model, case.against, *case.tasks.values())
    fixtures = tuple(dict.fromkeys(f for f in (getattr(s, "fixture", None) for s in sources) if f))
    if fixtures:
        yield "usefixtures", fixtures, {}
    for name, args, kwargs in case.marks:
        yield name, args, {"raises": ClaimFailed, **kwargs} if name == "xfail" else kwargs
