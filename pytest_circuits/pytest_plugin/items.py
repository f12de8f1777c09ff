"""Spec files as pytest collectors: file → claim → model → test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from ..core.claim import Claim, MarkSpec
from ..errors import CircuitsError, SpecError
from .execution import ClaimFailed, ClaimInvalid, run
from .keys import STATE

if TYPE_CHECKING:
    from ..report.record import RecordedClaim

Placed = tuple[tuple[str, ...], Claim]
"""The rest of the node id below a collector, and the claim."""


class SpecFile(pytest.Module):
    """A `*.circuits.yaml` file. It is a Module, so that fixtures of every scope and marks work as in a test module."""

    circuits_errors: list[dict[str, Any]]

    @classmethod
    def from_parent(cls, parent: Any, **kwargs: Any) -> Any:
        """As for every node. The module object is empty, since there is no Python file to import."""
        node = super().from_parent(parent, **kwargs)
        node.obj = ModuleType(node.path.name)
        node.circuits_errors = []
        return node

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """One collector for each claim. A wrong spec is a collection error: nothing of the session is run."""
        from ..claims.replication import reseed_claim  # here, so that a spec next to the tests that run costs nothing
        from ..spec.load import load_suite

        state = self.config.stash[STATE]
        try:
            suite = load_suite(self.path, models=state.overrides, unknown="ignore")
            state.used_overrides |= suite.replaced
            claims = [reseed_claim(claim, state.seed) for claim in suite.claims]
        except CircuitsError as problem:
            self._refuse(getattr(problem, "errors", ()))
            raise self.CollectError(str(problem)) from None
        by_name: dict[str, list[Claim]] = {}
        for claim in claims:
            by_name.setdefault(claim.name, []).append(claim)
        self._check_marks(by_name)
        return [Level.from_parent(self, name=name, claims=[(claim.ids, claim) for claim in group]) for name, group in by_name.items()]

    def _check_marks(self, by_name: Mapping[str, list[Claim]]) -> None:
        """Refuse marks that only pytest can check: unknown ones under `--strict-markers`, and those that mean nothing in a spec."""
        errors, shown = [], self.config.stash[STATE].shown(self.nodeid)
        for name, (claim, *_) in by_name.items():
            for mark, _, kwargs in claim.marks:
                try:
                    getattr(pytest.mark, mark)
                    problem = "xfail takes no 'raises' here; leave it out" if mark == "xfail" and "raises" in kwargs else None
                except (AttributeError, pytest.fail.Exception) as refusal:
                    problem = str(refusal)
                if problem:
                    errors.append(SpecError(shown, claim.line, claim.column, f"claims.{name}.marks: {problem}"))
        if errors:
            self._refuse(errors)
            raise self.CollectError("\n".join(map(str, errors)))

    def _refuse(self, errors: Iterable[SpecError]) -> None:
        self.circuits_errors += [{"file": self.nodeid, "line": e.line, "column": e.column, "problem": e.problem} for e in errors]


class Level(pytest.Collector):
    """One part of the node id: a claim, a model, or a parameter."""

    def __init__(self, name: str, parent: Any, claims: list[Placed], **kwargs: Any) -> None:
        super().__init__(name, parent, **kwargs)
        self.claims = claims

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Tests, or the next level."""
        deeper: dict[str, list[Placed]] = {}
        for ids, claim in self.claims:
            if len(ids) > 1:
                deeper.setdefault(ids[0], []).append((ids[1:], claim))
            else:
                yield ClaimItem.of(self, ids[0] if ids else claim.name, claim)
        for name, claims in deeper.items():
            yield Level.from_parent(self, name=name, claims=claims)


class ClaimItem(pytest.Function):
    """One claim about one model."""

    claim: Claim

    @classmethod
    def of(cls, parent: pytest.Collector, name: str, claim: Claim) -> ClaimItem:
        """The test of a claim. Marks are put on its function, before pytest looks for fixtures: `usefixtures` is one of them."""
        item: ClaimItem = cls.from_parent(parent, name=name, callobj=_function(claim))
        item.claim = claim
        return item

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Reports point to the claim's line in the YAML file."""
        return self.path, self.claim.line - 1, "::".join((self.claim.name, *self.claim.ids))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """A failed claim explains itself in words; any other exception is shown with its traceback."""
        if isinstance(excinfo.value, (ClaimFailed, ClaimInvalid)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *args, **kwargs)

    def circuits_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> list[RecordedClaim]:
        """The record of a claim that an unexpected exception stopped: it is invalid, and its test fails whatever it expects."""
        text = excinfo.exconly(tryshort=True).strip().split("\n")[0]
        return [self.config.stash[STATE].record_failure(self.nodeid, self.claim, f"internal error: {text}", excinfo.typename)]


def _function(claim: Claim) -> Callable[..., None]:
    def test(request: pytest.FixtureRequest) -> None:
        __tracebackhide__ = True
        run(request, claim)

    test.__doc__ = claim.description or None
    marked: Any = test
    for name, args, kwargs in _marks(claim):
        marked = getattr(pytest.mark, name).with_args(*args, **kwargs)(marked)
    return marked  # type: ignore[no-any-return]


def _marks(claim: Claim) -> Iterator[MarkSpec]:
    """The marks of a claim. `xfail` covers a claim that was measured and failed, not one that could not be measured."""
    yield "circuits", (), {}
    sources = (claim.model, claim.against, *claim.tasks.values())
    fixtures = tuple(dict.fromkeys(f for f in (getattr(s, "fixture", None) for s in sources) if f))
    if fixtures:
        yield "usefixtures", fixtures, {}
    for name, args, kwargs in claim.marks:
        yield name, args, {"raises": ClaimFailed, **kwargs} if name == "xfail" else kwargs
