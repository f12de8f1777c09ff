"""What a run would measure, and about what it would cost, without loading a model (`--circuits-plan`).

A property is driven with the results that are already stored and, for the rest, with synthetic ones. Its estimate is thrown away; the
forecast is a count of requests and model calls.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..core.counted import counted
from ..core.results import Encoded
from ..core.sources import ModelSource, TaskSource
from ..core.units import Universe
from ..errors import CircuitsError, ModelError
from ..model.config_sizes import config_universe
from ..tasks.base import Task
from . import synthetic
from .driver import drive
from .executor import Executor, checked_request
from .fingerprints import cached_config
from .requests import Describe, Encode, MeasuredRequest, Request, Steps, UnmeasuredRequest

R = TypeVar("R")


@dataclass(frozen=True)
class Forecast:
    """An estimate of what would be measured: requests by kind, batched model calls, results that are stored already.

    `notes` says where the forecast had to stop, because what would be asked for next depends on real results.
    """

    requests: Counter[str] = field(default_factory=Counter)
    forwards: int = 0
    backwards: int = 0
    cached: int = 0
    notes: tuple[str, ...] = ()

    def __add__(self, other: Forecast) -> Forecast:
        notes = tuple(dict.fromkeys(self.notes + other.notes))
        return Forecast(
            self.requests + other.requests,
            self.forwards + other.forwards,
            self.backwards + other.backwards,
            self.cached + other.cached,
            notes,
        )

    def __str__(self) -> str:
        if not self.requests:
            return f"nothing to measure ({self.cached} stored)"
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.requests.items()))
        calls = f"about {counted(self.forwards, 'forward')} and {counted(self.backwards, 'backward')}"
        return f"to measure: {kinds}; {calls}; {self.cached} stored"


class _PlanEndError(Exception):
    """What is asked for next cannot be known; not an error of measuring, which a property might handle."""


class Planner:
    """Forecasts for the claims of one run; what several claims share counts for the first that asks.

    `total` is the forecast for all claims added so far.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._seen: set[Request[Any]] = set()
        self._universes: dict[ModelSource, Universe] = {}
        self.total = Forecast()

    @property
    def batch_size(self) -> int | None:
        """Examples a model call, as the executor has it."""
        return self.executor.batch_size

    def shape(self, model: ModelSource) -> Universe | None:
        """The model's universe, where it can be known without the model."""
        try:
            return self.universe(model)
        except CircuitsError:
            return None

    def add(self, steps: Steps[Any]) -> Forecast:
        """What this claim would add. Raises no `CircuitsError`: what is wrong with its model or task is a note."""
        forecasts: list[Forecast] = []

        def answer(request: Request[Any]) -> Any:
            try:
                return self._answer(checked_request(request), forecasts)
            except CircuitsError as problem:
                raise _PlanEndError(str(problem)) from problem

        try:
            drive(steps, answer)
        except (CircuitsError, _PlanEndError) as problem:
            forecasts.append(Forecast(notes=(str(problem),)))
        forecast = sum(forecasts, Forecast())
        self.total += forecast
        return forecast

    def task(self, source: TaskSource) -> Task:
        """The task's prompt pairs. Raises `TaskError`."""
        return self.executor.task(source)

    def encoded(self, model: ModelSource, source: TaskSource) -> Encoded:
        """The stored encoding of a task, else one as if all its pairs fitted the tokenizer."""
        request = Encode(model, source)
        return self.executor.stored(request) or request.finish(synthetic.encoded_task(self.task(source)), self)

    def universe(self, model: ModelSource) -> Universe:
        """The model's units, as stored or from its config.json. Raises `ModelError`."""
        if model not in self._universes:
            description = self.executor.stored(Describe(model))
            self._universes[model] = description.universe if description is not None else universe_of(model)
        return self._universes[model]

    def _answer(self, request: Request[R], forecasts: list[Forecast]) -> R:
        if isinstance(request, UnmeasuredRequest):
            answer: R = request.answer_plan(self)
            return answer
        assert isinstance(request, MeasuredRequest)
        pieces = request.pieces(self)
        if pieces == [request]:
            result: R = self._result(request, forecasts)
            return result
        results = [self._answer(piece, forecasts) for piece in pieces]
        joined: R = results[0] if len(results) == 1 else request.join(results)
        return joined

    def _result(self, request: MeasuredRequest[R], forecasts: list[Forecast]) -> R:
        anonymous = request.without_names()
        stored = self.executor.stored(request)
        is_new = anonymous not in self._seen
        self._seen.add(anonymous)
        if stored is not None:
            forecasts.append(Forecast(cached=int(is_new)))
            return stored
        result, passes = request.plan(self)
        if is_new:
            forecasts.append(Forecast(Counter([type(request).__name__]), *passes))
        return result


def universe_of(model: ModelSource) -> Universe:
    """The universe of a model, from its config.json alone. Raises `ModelError` where there is none, or it does not say."""
    path = cached_config(model)
    if path is None:
        raise ModelError(f"model {model.describe()} cannot be planned for: its config.json is not here, and a plan loads nothing")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ModelError(f"model {model.describe()}: {path} cannot be read ({problem})") from None
    if not isinstance(config, dict):
        raise ModelError(f"model {model.describe()}: {path} is not a JSON object")
    try:
        return config_universe(config)
    except ModelError as problem:
        raise ModelError(f"model {model.describe()} cannot be planned for: {problem} ({path})") from None
