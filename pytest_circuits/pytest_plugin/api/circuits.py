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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...claims.replication import replication_warnings, reseed_parameters, reseed_task
from ...claims.sequential import problem_with_max_n
from ...core.claim import Claim
from ...core.sources import ModelSource, TaskSource
from ...core.unique_names import unique_names
from ...core.verdict import CERTIFIED, EXPECTATIONS
from ...errors import OptionError, suggestion
from ...properties import PROPERTIES
from ...properties.parameters import AnyParameters, task_names
from ...properties.protocol import Property
from ...tasks import TASKS
from .adapters import model_source, parts, task_source
from .bounds import stated_bound
from .drift import check_other, name_against
from .measured import Measured
from .validation import name_tasks, validate

if TYPE_CHECKING:
    from ...ablation.trial import TrialAnswer
    from ...tasks.base import PromptPair, Task
    from ..session import Session

    Pairs = Iterable[PromptPair | Mapping[str, Any]]


class CircuitsFixture:
    """Models and tasks of a test session, and claims about them."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def model(self, model: Any, *, name: str | None = None, revision: str | None = None, tokenizer: Any = None) -> CircuitsModel:
        """A directory (relative to pytest's root directory), a hub id, a Hugging Face module in memory with its tokenizer, or a `Subject`.

        `name` is for reports. Raises `ModelError` for anything else; a directory that cannot be opened makes the claims about it invalid.
        """
        label = name or (Path(str(model)).name if isinstance(model, (str, Path)) else type(parts(model)[0]).__name__)
        opened = CircuitsModel(self, label, model if tokenizer is None else (model, tokenizer), revision)
        _ = opened.source  # refuses a value that cannot be a model
        return opened

    def series(self, models: Any, *, at: Sequence[float] | None = None, name: str | None = None) -> ModelSeries:
        """Several models in order, such as the checkpoints of a training run: a list of what `model` takes, or of what it returned, or a
        pattern of directories such as "run/step-*".

        `at` says where each stands, such as its step: by default a number of its name, else its place; models are put in the order of `at`.
        Raises `OptionError` for an empty series or places that are not all different, `ModelError` as `model`.
        """
        from ...spec.checkpoints import directories, numbers

        label = name or "series"
        if isinstance(models, (str, Path)):
            pattern = str(models)
            models = directories(self._session.config.rootpath, pattern)
            if not models:
                raise OptionError(f"no directory matches {pattern!r}, relative to {self._session.config.rootpath}")
        members = [model if isinstance(model, CircuitsModel) else self.model(model) for model in models]
        if not members:
            raise OptionError("a series needs at least one model, got none")
        places = [float(a) for a in at] if at is not None else numbers([member.name for member in members])
        places = [float(i) for i in range(len(members))] if places is None else places
        if len(places) != len(members):
            raise OptionError(f"`at` has {len(places)} places for {len(members)} models")
        if not all(map(isfinite, places)) or len(set(places)) < len(places):
            raise OptionError(f"`at` must be different finite numbers, got {', '.join(f'{a:g}' for a in places)}")
        order = sorted(range(len(members)), key=lambda i: places[i])
        names = unique_names([f"{label}@{members[i].name}" for i in order])
        return ModelSeries(
            self, label, tuple(replace(members[i], name=unique, at=places[i]) for i, unique in zip(order, names, strict=True))
        )

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
        from ...tasks.load import task_parameters

        model = task_parameters(kind, target)
        assert model is not None
        checked = validate(model, parameters, f"task {name!r}")
        source = TaskSource.make(name, kind, target, checked.model_dump(mode="json", exclude_none=kind == "file"))
        return reseed_task(source, self._session.seed)

    def measure(self, name: str, model: CircuitsModel | ModelSeries, **parameters: Any) -> Measured:
        """Measure a property of a model, or one over a series. `task=` or `tasks=` take what `task(…)` returned; all else are the
        property's parameters; `against=` of a drift is another model.

        Raises `OptionError` for parameters that the property does not have or does not allow, and for a series where a model is needed.
        """
        from ...claims.evaluation import measure

        if name not in PROPERTIES:
            raise OptionError(f"unknown property {name!r}; {suggestion(name, PROPERTIES)}")
        prop: Property = PROPERTIES.get(name)
        tasks: dict[str, TaskSource] = {}
        parameters, against = name_against(name, parameters, self._opened)
        arguments = {key: name_tasks(value, tasks) for key, value in parameters.items()}
        checked: AnyParameters = reseed_parameters(validate(prop.parameters, arguments, prop.name), self._session.seed)
        unknown = sorted(set(task_names(checked)) - set(tasks))
        if unknown:
            raise OptionError(f"{name}: task {unknown[0]!r} is given by name; pass circuits.task({unknown[0]!r})")
        problem = problem_with_max_n(prop, checked, tasks)
        if problem:
            raise OptionError(problem)
        if isinstance(model, ModelSeries) and not prop.over_series:
            raise OptionError(f"{name} is about one model: measure it on each (`for model in series`), or ask for its trajectory")
        sources = tuple(each.source for each in model) if isinstance(model, ModelSeries) else (model.source,)
        check_other(name, sources[-1], against)
        series = sources if prop.over_series else ()
        claim = Claim(name, checked, sources[-1], tasks, series, against, entry=model.name)
        return Measured(claim, measure(self._session.executor(), claim))

    def _opened(self, model: Any) -> CircuitsModel:
        return model if isinstance(model, CircuitsModel) else self.model(model)

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

        Give exactly one of at_least, at_most and within; none for a search, which asks all examples to hold. Raises `OptionError` for a
        bound that says nothing. Returns what was measured.
        """
        __tracebackhide__ = True
        from ...claims.evaluation import evaluate_claim
        from ...claims.preflight import with_warnings
        from ..execution import settle

        if not isinstance(measured, Measured):
            raise OptionError(f"check needs what a measurement returned, such as found.reuse(p=0.95); got {type(measured).__name__}")
        about = measured.claim
        bound = stated_bound(PROPERTIES.get(about.property), about.parameters, at_least, at_most, within)
        if expect not in EXPECTATIONS:
            raise OptionError(f"unknown verdict {expect!r}; {suggestion(expect, EXPECTATIONS)}")
        session, item = self._session, self._session.item
        assert item is not None
        about = replace(about, bound=bound, expect=expect, name=claim or item.name.partition("[")[0])
        evaluation = evaluate_claim(session.executor(), about, replace(measured.measured, cost=measured.charge()))
        evaluation = with_warnings(evaluation, session.executor(), about, replication_warnings(about.tasks, session.seed))
        if session.mutation is not None:
            session.mutation.add(item.nodeid, about, evaluation)
        record = session.record(evaluation, about, line=(item.reportinfo()[1] or 0) + 1)
        settle(record, session)
        return measured


@dataclass(frozen=True)
class CircuitsModel:
    """A model of the session: `value` is the path, hub id, module, (module, tokenizer) or `Subject` that was given."""

    fixture: CircuitsFixture
    name: str
    value: Any
    revision: str | None = None
    at: float | None = None

    @property
    def source(self) -> ModelSource:
        """Which model this is now: a module whose weights were changed since is another one."""
        named = ModelSource(self.name, revision=self.revision, at=self.at)
        return model_source(self.fixture._session, named, self.value, "what was given to circuits.model")

    def measure(self, name: str, **parameters: Any) -> Measured:
        """Any registered property of this model."""
        return self.fixture.measure(name, self, **parameters)

    def drift(self, of: Mapping[str, Any], against: Any, **parameters: Any) -> Measured:
        """How far it is from a release: `of={"reuse": {"task": task, "p": 0.8}}`, `against` another model or what `model` takes."""
        return self.measure("drift", of=of, against=against, **parameters)

    def answer(
        self,
        pair: PromptPair,
        *,
        remove: Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
        like: TaskSource | None = None,
        kind: str = "zero",
        metric: str = "logit_diff",
        **options: Any,
    ) -> TrialAnswer:
        """What the model answers to one pair with some components removed, or all others; `.intact` is the model as it is.

        Measured through the cache, and under `strategies.for_all` together with those of the other examples. `like`: the task whose way of
        scoring applies; without it the answer is compared with the foils if there are any, else with the whole vocabulary. `kind`:
        zero, scale or counterfactual, with its `options`. Raises `TaskError` for a pair that does not fit the tokenizer, which
        hypothesis takes as a failed `assume`; `OptionError`, `UnitError` for what the model cannot do.
        """
        from ...ablation.trial import trial_of
        from ...measurement.trial_ledger import answer_trial

        executor = self.fixture._session.executor()
        task = None if like is None else executor.task(like)
        return answer_trial(executor, self.source, trial_of(pair, remove, keep, kind, metric, options, task))

    def circuits(self, task: TaskSource, **parameters: Any) -> TaskCircuits:
        """The per-example circuits of a task (`attribution`, `size`, `rounding` …), to ask properties of."""
        return TaskCircuits(self, task, parameters)


@dataclass(frozen=True)
class ModelSeries:
    """Models in the order of their `at`; iterating gives each."""

    fixture: CircuitsFixture
    name: str
    models: tuple[CircuitsModel, ...]

    def __iter__(self) -> Iterator[CircuitsModel]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def measure(self, name: str, **parameters: Any) -> Measured:
        """Any registered property over a series."""
        return self.fixture.measure(name, self, **parameters)

    def trajectory(self, of: Mapping[str, Any], shape: str, **parameters: Any) -> Measured:
        """How a property moves over the series: `of={"reuse": {"task": task, "p": 0.8}}`, `shape="no_drop"`."""
        return self.measure("trajectory", of=of, shape=shape, **parameters)


@dataclass(frozen=True)
class TaskCircuits:
    """Circuits of one task under one choice of attribution and size; properties are measured when asked for."""

    model: CircuitsModel
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
