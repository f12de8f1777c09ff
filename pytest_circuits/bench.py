"""Claims in Python: what the `circuits` fixture gives.

```python
def test_shared_core(circuits):
    subject = circuits.model("models/multitask-llama")
    addition = circuits.task("addition", digits=2, n=256)
    found = subject.circuits(addition, attribution="eap", size="10%")
    circuits.check(found.reuse(p=0.95), at_least=0.4)
```
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import CircuitsError, OptionError, suggestion
from .given import model_source, parts, task_source
from .lab.cost import Cost
from .properties import PROPERTIES
from .properties.base import Parameters, Property
from .results import Description
from .sources import ModelSource, TaskSource
from .tasks import TASKS
from .verdict import CERTIFIED, VERDICTS, Bound, Estimate

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .session import Session
    from .tasks.base import PromptPair, Task

    Pairs = Iterable[PromptPair | Mapping[str, Any]]

B = TypeVar("B", bound="BaseModel")


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
    charged: list[bool] = field(default_factory=list, repr=False, compare=False)

    @builtins.property
    def estimate(self) -> Estimate:
        """The estimate. Raises `Invalid` (or the error that stopped the measurement) when there is none."""
        if isinstance(self.outcome, CircuitsError):
            raise self.outcome
        return self.outcome

    @builtins.property
    def value(self) -> float:
        """The estimated number."""
        return self.estimate.value

    @builtins.property
    def interval(self) -> tuple[float, float]:
        """Its interval."""
        return self.estimate.interval

    @builtins.property
    def n(self) -> int:
        """The number of examples."""
        return self.estimate.n

    @builtins.property
    def details(self) -> Mapping[str, Any]:
        """What a reader needs to believe it."""
        return self.estimate.details

    def __str__(self) -> str:
        return f"invalid: {self.outcome}" if isinstance(self.outcome, CircuitsError) else str(self.outcome)


class Bench:
    """Models and tasks of a test session, and claims about them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def model(self, model: Any, *, name: str | None = None, revision: str | None = None, tokenizer: Any = None) -> BenchModel:
        """A directory (relative to pytest's root directory), a hub id, a Hugging Face module in memory with its tokenizer, or a `Subject`.

        `name` is for reports. Raises `ModelError` for anything else; a directory that cannot be opened makes the claims about it invalid.
        """
        called = name or (Path(str(model)).name if isinstance(model, (str, Path)) else type(parts(model)[0]).__name__)
        made = BenchModel(self, called, model if tokenizer is None else (model, tokenizer), revision)
        _ = made.source  # a value that can be no model is refused here
        return made

    def task(self, task: str | Path | Task | Pairs, *, name: str | None = None, **parameters: Any) -> TaskSource:
        """A built-in task, a JSONL file (relative to pytest's root directory), a callable "pkg.mod:function", a `Task`, or prompt pairs.

        `parameters` are the task's, `name` is for reports. Raises `OptionError` for unknown tasks and parameters, `TaskError` for
        prompt pairs that are none; what is wrong inside a file makes the claims about it invalid.
        """
        if not isinstance(task, (str, Path)):
            if parameters:
                raise OptionError(f"a task that is given as an object has no parameters; got {', '.join(parameters)}")
            return task_source(self._session, name or str(getattr(task, "name", "task")), task, "what was given to circuits.task")
        text = str(task)
        local = Path(self._session.config.rootpath, text)
        if text in TASKS:
            return self._parsed(name or text, "builtin", text, parameters)
        if text.endswith(".jsonl") or local.is_file():
            return self._parsed(name or local.stem, "file", str(local), parameters)
        if ":" in text:
            return TaskSource.make(name or text.partition(":")[2], "loader", text, parameters)
        raise OptionError(f"unknown task {text!r}: no .jsonl file, no reference 'pkg.mod:function', no built-in; {suggestion(text, TASKS)}")

    def _parsed(self, name: str, kind: str, target: str, parameters: Mapping[str, Any]) -> TaskSource:
        from .tasks.load import task_parameters

        model = task_parameters(kind, target)
        assert model is not None
        checked = _validated(model, parameters, f"task {name!r}")
        return TaskSource.make(name, kind, target, checked.model_dump(mode="json", exclude_none=kind == "file"))

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
        checked: Parameters = _validated(prop.parameters, given, prop.name)
        source = model.source
        outcome, cost, description = measure(self._session.lab(), name, checked, source, tasks)
        return Measured(name, source, tasks, checked, outcome, cost, description)

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
        from .lab.judge import judge
        from .running import describe, settle

        if not isinstance(measured, Measured):
            raise OptionError(f"check needs what a measurement returned, such as found.reuse(p=0.95); got {type(measured).__name__}")
        bound = _bound(measured.property, at_least, at_most, within)
        if expect not in VERDICTS:
            raise OptionError(f"unknown verdict {expect!r}; {suggestion(expect, VERDICTS)}")
        item = self._session.item
        assert item is not None
        facts = describe(
            item.nodeid, (item.reportinfo()[1] or 0) + 1, claim or item.name.partition("[")[0], measured.property, measured.parameters,
            measured.model.name, measured.tasks, bound, expect,
        )  # fmt: skip
        record = self._session.record(judge(measured.outcome, bound, self._cost(measured), measured.description), facts)
        settle(record, self._session)
        return measured

    @staticmethod
    def _cost(measured: Measured) -> Cost:
        """What it cost, for the first claim about it; further claims about the same measurement cost nothing."""
        already, measured.charged[:] = bool(measured.charged), [True]
        return Cost() if already else measured.cost


@dataclass(frozen=True)
class BenchModel:
    """A model of the session: `value` is the path, hub id, module, (module, tokenizer) or `Subject` that was given."""

    bench: Bench
    name: str
    value: Any
    revision: str | None = None

    @property
    def source(self) -> ModelSource:
        """Which model this is now: a module whose weights were changed since is another one."""
        named = ModelSource(self.name, revision=self.revision)
        return model_source(self.bench._session, named, self.value, "what was given to circuits.model")

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


def _validated(model: type[B], given: Mapping[str, Any], what: str) -> B:
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(given))
    except ValidationError as problem:
        lines = []
        for error in problem.errors():
            where = ".".join(map(str, error["loc"]))
            if error["type"] == "extra_forbidden":
                lines.append(f"{what} has no parameter {where!r}; {suggestion(where, model.model_fields)}")
            else:
                lines.append(f"{what}{f', {where}' if where else ''}: {error['msg'].removeprefix('Value error, ')}")
        raise OptionError("; ".join(lines)) from None


def _bound(name: str, at_least: float | None, at_most: float | None, within: Sequence[float] | None) -> Bound:
    if sum(x is not None for x in (at_least, at_most, within)) != 1:
        raise OptionError("a check needs exactly one bound: at_least, at_most or within")
    if within is not None and (isinstance(within, str) or len(within) != 2):
        raise OptionError(f"within needs two numbers [low, high], got {within!r}")
    low, high = within if within is not None else (at_least, at_most)
    for edge in (low, high):
        if edge is not None and (isinstance(edge, (bool, str)) or not isfinite(edge)):
            raise OptionError(f"a bound is a finite number, got {edge!r}")
    if low is not None and high is not None and not low < high:
        raise OptionError(f"the lower end of within must be below the upper one, got [{low:g}, {high:g}]")
    bound = Bound(low, high)
    prop: Property = PROPERTIES.get(name)
    problem = bound.vacuous(prop.lowest, prop.highest)
    if problem:
        raise OptionError(f"the bound says nothing: {problem}")
    return bound
