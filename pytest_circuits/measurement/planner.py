"""What a run would measure, and about what it would cost, without loading a model (`--circuits-plan`).

A property is driven with what is already stored and, for the rest, with invented results. Its estimate is thrown away; what comes
out is a count of requests and model calls.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.results import Description, Encoded
from ..core.sources import ModelSource, TaskSource
from ..core.units import Universe
from ..errors import CircuitsError, Invalid, ModelError
from ..model.config_sizes import config_universe
from . import synthetic as invented
from .cost_model import passes
from .example_selection import examples_of
from .executor import Executor
from .fingerprints import cached_config
from .incremental import joined, pieces, unextended
from .requests import Ablate, AnyRequest, Describe, Encode, LoadTask, Part, PlanBoundary, Sweep


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
        return f"to measure: {kinds}; about {self.forwards} forwards and {self.backwards} backwards; {self.cached} stored"


class Planner:
    """Forecasts for the claims of one run; what several claims share counts for the first that asks.

    `total` is the forecast for all claims added so far.
    """

    def __init__(self, lab: Executor) -> None:
        self.lab = lab
        self._seen: set[AnyRequest] = set()
        self._universes: dict[ModelSource, Universe] = {}
        self.total = Forecast()

    def shape(self, model: ModelSource) -> Universe | None:
        """The model's universe, where it can be known without the model."""
        try:
            return self._universe(model)
        except CircuitsError:
            return None

    def add(self, steps: Generator[Any, Any, Any]) -> Forecast:
        """What this claim would add. Raises no `CircuitsError`: what is wrong with its model or task is a note."""
        found = Forecast()
        try:
            asked = next(steps)
            while True:
                many = isinstance(asked, (list, tuple))
                answers = []
                for request in asked if many else [asked]:
                    answer, more = self._answer(request)
                    found += more
                    answers.append(answer)
                asked = steps.send(answers if many else answers[0])
        except StopIteration:
            pass
        except CircuitsError as problem:
            found += Forecast(notes=(str(problem),))
        finally:
            steps.close()
        self.total += found
        return found

    def _answer(self, request: AnyRequest) -> tuple[Any, Forecast]:
        if isinstance(request, LoadTask):
            return self.lab.task(request.task), Forecast()
        if isinstance(request, PlanBoundary):
            raise Invalid(request.note)  # which ends the steps, and is a note
        if isinstance(request, (Describe, Encode)) or not request.task.grown or request.part.since:
            return self._single(request)
        parts: list[Any] = pieces(request, len(self.lab.task(unextended(request.task))))
        used = [one for one in parts if not one.part.since or _count(one.part, self._encoded(one.model, one.task))]
        if used == [request]:
            return self._single(request)
        answers, cost = [], Forecast()
        for one in used:
            answer, more = self._answer(one)
            answers.append(answer)
            cost += more
        return joined(answers), cost

    def _single(self, request: AnyRequest) -> tuple[Any, Forecast]:
        bare = _without_names(request)
        stored = self.lab.stored(request)
        first = bare not in self._seen
        self._seen.add(bare)
        if stored is not None:
            return stored, Forecast(cached=int(first))
        answer, cost = self._invent(request)
        return answer, Forecast(Counter([type(request).__name__]), *cost) if first else Forecast()

    def _invent(self, request: AnyRequest) -> tuple[Any, tuple[int, int]]:
        universe = self._universe(request.model)
        if isinstance(request, Describe):
            return invented.description(universe, request.model), (0, 0)
        encoded = self._encoded(request.model, request.task)
        if isinstance(request, Encode):
            return encoded, (0, 0)
        n = _count(request.part, encoded)
        reference = n
        if isinstance(request, (Ablate, Sweep)) and request.reference is not None:
            reference = _count(request.reference, encoded)
        return invented.result(request, universe, n), passes(request, universe, n, reference, self.lab.batch_size)

    def _encoded(self, model: ModelSource, task: TaskSource) -> Encoded:
        stored: Encoded | None = self.lab.stored(Encode(model, task))
        return stored or self.lab.split_as_before(invented.encoded(self.lab.task(task)), task)

    def _universe(self, model: ModelSource) -> Universe:
        if model not in self._universes:
            known: Description | None = self.lab.stored(Describe(model))
            self._universes[model] = known.universe if known is not None else universe_of(model)
        return self._universes[model]


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


def _count(part: Part, encoded: Encoded) -> int:
    chosen = examples_of(part, encoded)
    return encoded.n if chosen is None else len(chosen)


def _without_names(request: AnyRequest) -> AnyRequest:
    changed: dict[str, Any] = {"model": replace(request.model, name="")}
    if not isinstance(request, Describe):
        changed["task"] = replace(request.task, name="")
    return replace(request, **changed)
