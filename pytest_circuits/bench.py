"""Claims in Python: what the `circuits` fixture gives.

    def test_shared_core(circuits):
        subject = circuits.model("models/multitask-llama")
        addition = circuits.task("addition", digits=2, n=256)
        found = subject.circuits(addition, attribution="eap", size="10%")
        circuits.check(found.reuse(p=0.95), at_least=0.4)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CircuitsError, OptionError, suggestion
from .properties import PROPERTIES
from .properties.base import Parameters, Property
from .results import Description
from .sources import ModelSource, TaskSource
from .tasks import TASKS
from .verdict import CERTIFIED, VERDICTS, Bound, Estimate

if TYPE_CHECKING:
    from .lab.cost import Cost
    from .session import Session


@dataclass(frozen=True)
class Measured:
    """A property as it was measured: an estimate, or the reason why there is none. Prints as value, interval and n."""

    property: str
    model: ModelSource
    tasks: Mapping[str, TaskSource]
    parameters: Parameters
    outcome: Estimate | CircuitsError
    cost: Cost
    description: Description | None

    @property
    def estimate(self) -> Estimate:
        """The estimate. Raises `Invalid` (or the error that stopped the measurement) when there is none."""
        if isinstance(self.outcome, CircuitsError):
            raise self.outcome
        return self.outcome

    @property
    def value(self) -> float:
        """The estimated number."""
        return self.estimate.value

    @property
    def interval(self) -> tuple[float, float]:
        """Its interval."""
        return self.estimate.interval

    @property
    def n(self) -> int:
        """The number of examples."""
        return self.estimate.n

    @property
    def details(self) -> Mapping[str, Any]:
        """What a reader needs to believe it."""
        return self.estimate.details

    def __str__(self) -> str:
        return f"invalid: {self.outcome}" if isinstance(self.outcome, CircuitsError) else str(self.outcome)


class Bench:
    """Models and tasks of a test session, and claims about them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def model(self, path: Any, *, name: str | None = None, revision: str | None = None, tokenizer: Any = None) -> BenchModel:
        """A directory (relative to pytest's root directory), a hub id, or a Hugging Face module in memory with its tokenizer."""
        if isinstance(path, (str, Path)):
            local = Path(self._session.config.rootpath, str(path))
            where = str(local) if local.exists() else str(path)
            return BenchModel(self, ModelSource(name or Path(str(path)).name, where, revision))
        source = ModelSource(name or type(path).__name__, loader=f"memory:{id(path)}")
        self._session.lab.models.provide(source, lambda: (path, tokenizer))
        return BenchModel(self, source)

    def task(self, target: str | Path, *, name: str | None = None, **parameters: Any) -> TaskSource:
        """A built-in task, a JSONL file (relative to pytest's root directory), or a callable "pkg.mod:function"; parameters are the task's."""
        text = str(target)
        if text in TASKS:
            return TaskSource.make(name or text, "builtin", text, parameters)
        local = Path(self._session.config.rootpath, text)
        if text.endswith(".jsonl") or local.is_file():
            return TaskSource.make(name or Path(text).stem, "file", str(local), parameters)
        if ":" in text:
            return TaskSource.make(name or text.partition(":")[2], "loader", text, parameters)
        raise OptionError(f"unknown task {text!r}: no .jsonl file, no reference 'pkg.mod:function', no built-in; {suggestion(text, TASKS)}")

    def measure(self, name: str, model: BenchModel, **parameters: Any) -> Measured:
        """Measure a property of a model. `task=` or `tasks=` take what `task(…)` returned; all else are the property's parameters.

        Raises `OptionError` for parameters that the property does not have or does not allow.
        """
        from .lab.judge import measure

        if name not in PROPERTIES:
            raise OptionError(f"unknown property {name!r}; {suggestion(name, PROPERTIES)}")
        prop: Property = PROPERTIES.get(name)
        tasks: dict[str, TaskSource] = {}
        given = {key: _named(value, tasks) for key, value in parameters.items()}
        checked = _validate(prop, given)
        outcome, cost, description = measure(self._session.lab, name, checked, model.source, tasks)
        return Measured(name, model.source, tasks, checked, outcome, cost, description)

    def check(
        self,
        measured: Measured,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        within: Sequence[float] | None = None,
        expect: str = CERTIFIED,
        claim: str | None = None,
    ) -> Measured:
        """Hold a measurement against a bound; raises `AssertionError` with the full explanation unless the verdict is `expect`.

        Give exactly one of at_least, at_most and within. Raises `OptionError` for a bound that says nothing. Returns what was measured.
        """
        __tracebackhide__ = True
        from .collect import settle
        from .lab.judge import judge

        bound = _bound(measured.property, at_least, at_most, within)
        if expect not in VERDICTS:
            raise OptionError(f"unknown verdict {expect!r}; {suggestion(expect, VERDICTS)}")
        item = self._session.item
        assert item is not None
        parameters = measured.parameters.model_dump(mode="json")
        for name in ("task", "tasks"):
            parameters.pop(name, None)
        facts = {
            "claim": claim or item.name.partition("[")[0], "description": "", "property": measured.property, "model": measured.model.name,
            "tasks": list(measured.tasks), "parameters": parameters, "bound": bound.as_dict(), "expect": expect,
            "file": item.nodeid.split("::")[0], "line": (item.reportinfo()[1] or 0) + 1,
        }  # fmt: skip
        record = self._session.record(judge(measured.outcome, bound, measured.cost, measured.description), facts)
        settle(record, self._session.inconclusive)
        return measured


@dataclass(frozen=True)
class BenchModel:
    """A model of the session."""

    bench: Bench
    source: ModelSource

    def measure(self, name: str, **parameters: Any) -> Measured:
        """Any registered property of this model."""
        return self.bench.measure(name, self, **parameters)

    def circuits(self, task: TaskSource, **parameters: Any) -> Circuits:
        """The per-example circuits of a task (`attribution`, `size`, `rounding` …), to ask properties of."""
        return Circuits(self, task, parameters)


@dataclass(frozen=True)
class Circuits:
    """Circuits of one task under one choice of attribution and size; properties are measured when asked for."""

    model: BenchModel
    task: TaskSource
    parameters: Mapping[str, Any]

    def measure(self, name: str, **more: Any) -> Measured:
        """Any property that takes one task and circuits."""
        return self.model.measure(name, task=self.task, **self.parameters, **more)

    def reuse(self, p: float = 0.95, **more: Any) -> Measured:
        """reuse@P."""
        return self.measure("reuse", p=p, **more)

    def necessity(self, p: float = 0.95, **more: Any) -> Measured:
        """What removing the shared set costs, over a random set of the same capacity."""
        return self.measure("necessity", p=p, **more)

    def jaccard(self, other: TaskSource, p: float = 0.95, **more: Any) -> Measured:
        """Overlap of the shared sets of this task and another."""
        return self.model.measure("jaccard", tasks=[self.task, other], p=p, **self.parameters, **more)


def _named(value: Any, tasks: dict[str, TaskSource]) -> Any:
    """Tasks are handed to properties by name."""
    if isinstance(value, TaskSource):
        if tasks.setdefault(value.name, value) != value:
            raise OptionError(f"two different tasks are called {value.name!r}; give one of them another name=")
        return value.name
    if isinstance(value, Mapping):
        return {key: _named(v, tasks) for key, v in value.items()}
    return [_named(v, tasks) for v in value] if isinstance(value, (list, tuple)) else value


def _validate(prop: Property, given: Mapping[str, Any]) -> Parameters:
    from pydantic import ValidationError

    try:
        return prop.parameters.model_validate(dict(given))
    except ValidationError as problem:
        lines = []
        for error in problem.errors():
            where = ".".join(map(str, error["loc"]))
            if error["type"] == "extra_forbidden":
                lines.append(f"{prop.name} has no parameter {where!r}; {suggestion(where, prop.parameters.model_fields)}")
            else:
                lines.append(f"{prop.name}{f', {where}' if where else ''}: {error['msg'].removeprefix('Value error, ')}")
        raise OptionError("; ".join(lines)) from None


def _bound(name: str, at_least: float | None, at_most: float | None, within: Sequence[float] | None) -> Bound:
    if sum(x is not None for x in (at_least, at_most, within)) != 1:
        raise OptionError("a check needs exactly one bound: at_least, at_most or within")
    if within is not None and len(within) != 2:
        raise OptionError(f"within needs two numbers [low, high], got {within!r}")
    bound = Bound(*within) if within is not None else Bound(at_least, at_most)
    prop: Property = PROPERTIES.get(name)
    problem = bound.vacuous(prop.lowest, prop.highest)
    if problem:
        raise OptionError(f"the bound says nothing: {problem}")
    return bound

