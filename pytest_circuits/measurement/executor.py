"""The executor: turns requests into results, from the store where it can, from an opened model where it must."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.results import Description, Encoded
from ..core.sources import ModelSource, TaskSource
from ..errors import CircuitsError, Offline, TaskError
from ..mutants.base import Mutation, intact_task
from ..mutants.labels import relabelled
from ..tasks.base import Task
from .cost import Cost
from .driver import drive
from .events import Event, Listener, ignore
from .example_selection import examples_of
from .fingerprints import Identity
from .keys import key_of
from .models import BUDGET, Models, Opener
from .requests import REQUESTS, Describe, Encode, Inputs, MeasuredRequest, Part, Request, Steps, UnmeasuredRequest
from .store import BusyError, Store

R = TypeVar("R")
T = TypeVar("T")
RequestListener = Callable[[Sequence[Request[Any]]], object]


def _load_source(source: TaskSource) -> Task:
    from ..tasks.load import load_source

    return load_source(source)


@dataclass
class _Usage:
    """The running cost of one claim, and whether measuring is allowed for it."""

    may_measure: bool = True
    forwards: int = 0
    backwards: int = 0
    hits: int = 0
    measured: int = 0
    encodings: int = 0
    started: float = field(default_factory=time.perf_counter)

    def cost(self) -> Cost:
        return Cost(self.forwards, self.backwards, time.perf_counter() - self.started, self.hits, self.measured, self.encodings)


@dataclass
class Trace:
    """The keys of the results that were used; `is_stored` is False where one of them is in memory only."""

    keys: set[str] = field(default_factory=set)
    is_stored: bool = True


@dataclass(frozen=True)
class _Lookup:
    """A request with its key and its inputs."""

    request: MeasuredRequest[Any]
    key: str
    inputs: Inputs

    @property
    def description(self) -> str:
        return self.request.describe()


class Executor:
    """Makes each measurement once, however many claims, threads and processes ask for it.

    device, dtype: go before those of a model's source. batch_size: examples a model call; None leaves it to the torch side.
    offline: raise `Offline` instead of measuring. budget: bytes of parameters of models that stay open. on_event: hears of progress.
    opener, load_task: stand in for `open_model` and `load_source`.
    `spent` is the cost of everything so far, claims that failed included.
    """

    def __init__(
        self,
        store: Store,
        *,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int | None = None,
        offline: bool = False,
        budget: int = BUDGET,
        on_event: Listener | None = None,
        opener: Opener | None = None,
        load_task: Callable[[TaskSource], Task] | None = None,
    ) -> None:
        self.store, self.batch_size, self.offline = store, batch_size, offline
        self._emit = on_event or ignore
        self.models = Models(store.fingerprints, device=device, dtype=dtype, budget=budget, opener=opener, emit=self._emit)
        self._load_task = load_task or _load_source
        self._tasks: dict[TaskSource, Task | CircuitsError] = {}
        self._failed: dict[tuple[str, ModelSource], CircuitsError] = {}
        self._in_memory: dict[str, Any] = {}
        self._guard = threading.RLock()
        self.spent = Cost()
        self._trace = Trace()

    @contextmanager
    def traced(self) -> Iterator[Trace]:
        """A trace of the results that are used meanwhile."""
        before, self._trace = self._trace, Trace()
        try:
            yield self._trace
        finally:
            self._trace = before

    def run(self, steps: Steps[T], on_request: RequestListener | None = None) -> tuple[T, Cost]:
        """Drive a property until it returns its estimate, and say what that cost.

        `on_request` hears of the requests of each step before they are answered. A `CircuitsError` of measuring is raised inside the
        property, and leaves from here if it is not handled there; what `on_request` raises ends the property.
        """
        usage = _Usage(not self.offline)

        def answer_all(requests: Sequence[Request[Any]]) -> list[Any]:
            if on_request is not None:
                on_request(requests)
            return self._resolve_all(requests, usage)

        def answer(request: Request[Any]) -> Any:
            if on_request is not None:
                on_request([request])
            return self._resolve(request, usage)

        try:
            result = drive(steps, answer, answer_all)
        finally:
            self._spend(usage)
        return result, usage.cost()

    def result(self, request: Request[R]) -> R:
        """The result of one request. Raises the `CircuitsError` of measuring it."""
        usage = _Usage(not self.offline)
        try:
            return self._resolve(request, usage)
        finally:
            self._spend(usage)

    def stored(self, request: Request[R]) -> R | None:
        """The result if it was measured before, else None; opens no model. Raises `ModelError` or `TaskError` for broken sources."""
        try:
            return self._resolve(request, _Usage(may_measure=False))
        except Offline:
            return None

    def describe(self, model: ModelSource) -> Description:
        """What the model is; without loading it if it was described before."""
        return self.result(Describe(model))

    def part(self, model: ModelSource, task: TaskSource, part: Part) -> NDArray[np.int64]:
        """The numbers of the examples that `part` means, as this model's tokenizer leaves them."""
        encoded = self.result(Encode(model, task))
        examples = examples_of(part, encoded)
        return np.arange(encoded.n, dtype=np.int64) if examples is None else examples

    def task(self, source: TaskSource) -> Task:
        """The task's prompt pairs, read once a session. Raises `TaskError`, the same one each time."""
        with self._guard:
            if source not in self._tasks:
                self._tasks[source] = self._read(source)
            task = self._tasks[source]
        if isinstance(task, CircuitsError):
            raise task.with_traceback(None)
        return task

    def provide_task(self, source: TaskSource, task: Task) -> None:
        """Read this source as `task`, which a fixture or a test returned."""
        with self._guard:
            self._tasks[source] = task

    def _read(self, source: TaskSource) -> Task | CircuitsError:
        try:
            if source.mutation is not None:
                return relabelled(self.task(intact_task(source)), Mutation.read(source.mutation))
            return self._load_task(source)
        except CircuitsError as problem:
            return problem
        except Exception as problem:
            wrapped = TaskError(f"task {source.name!r} ({source.target}) cannot be read: {type(problem).__name__}: {problem}")
            wrapped.__cause__ = problem
            return wrapped

    def _spend(self, usage: _Usage) -> None:
        with self._guard:
            self.spent += usage.cost()

    def _resolve_all(self, requests: Sequence[Request[Any]], usage: _Usage) -> list[Any]:
        """Results by model, those that another process is measuring last; the first failure, in the order of `requests`, is raised."""
        requests = [checked_request(request) for request in requests]
        place = {request: i for i, request in reversed(list(enumerate(requests)))}
        results: dict[Request[Any], Any] = {}
        failure: tuple[int, CircuitsError] | None = None
        todo, wait = self._by_model(dict.fromkeys(requests)), False
        while todo:
            busy = []
            for request in todo:
                if failure is not None and failure[0] < place[request]:
                    continue
                try:
                    results[request] = self._resolve(request, usage, wait)
                    wait = False
                except BusyError:
                    busy.append(request)
                except CircuitsError as problem:
                    failure = (place[request], problem)
            wait = len(busy) == len(todo)  # nothing left to do but to wait for one of them
            todo = busy
        if failure is not None:
            raise failure[1]
        return [results[request] for request in requests]

    def _by_model(self, requests: Iterable[Request[Any]]) -> list[Request[Any]]:
        """Requests on models that are open come first, and no model is opened twice."""
        groups: dict[ModelSource, list[Request[Any]]] = {}
        for request in requests:
            groups.setdefault(request.model, []).append(request)
        order = sorted(groups, key=lambda model: not self.models.is_open(model))
        return [request for model in order for request in groups[model]]

    def _resolve(self, request: Request[R], usage: _Usage, wait: bool = True) -> R:
        """The result of a request, which is counted in `usage`."""
        request, session = checked_request(request), _Session(self, usage)
        if isinstance(request, UnmeasuredRequest):
            answer: R = request.answer(session)
            return answer
        assert isinstance(request, MeasuredRequest)
        measured: MeasuredRequest[R] = request.canonical()
        pieces = measured.pieces(session)
        if pieces != [measured]:
            results = [self._resolve(piece, usage, wait) for piece in pieces]
            return results[0] if len(results) == 1 else measured.join(results)
        lookup = self._lookup(measured, session)
        result, is_hit = self._fetch(lookup, usage, wait)
        if is_hit:
            usage.hits += 1
            self._emit(Event("cached", lookup.description))
        return measured.finish(result, session)

    def encoded(self, model: ModelSource, source: TaskSource, usage: _Usage) -> Encoded:
        """The encoding of a task; reading it back is not counted as a hit."""
        session = _Session(self, usage)
        request, before = Encode(model, source).canonical(), usage.measured
        encoded: Encoded = self._fetch(self._lookup(request, session), usage)[0]
        usage.encodings += usage.measured - before
        return request.finish(encoded, session)

    def _lookup(self, request: MeasuredRequest[Any], session: _Session) -> _Lookup:
        inputs = request.inputs(session)
        return _Lookup(request, key_of(request, inputs.facts), inputs)

    def _fetch(self, lookup: _Lookup, usage: _Usage, wait: bool = True) -> tuple[Any, bool]:
        """The result, and whether it was there. A failure is raised again, not tried again."""
        self._trace.keys.add(lookup.key)
        self._trace.is_stored &= lookup.inputs.is_stored
        attempt = lookup.key, replace(lookup.request.model, name="")  # equal weights elsewhere, or on another device, may work
        if attempt in self._failed:
            raise self._failed[attempt].with_traceback(None)
        try:
            if lookup.inputs.is_stored and usage.may_measure:
                return self.store.fetch(
                    lookup.key,
                    lambda: self._measure(lookup, usage),
                    kind=type(lookup.request).__name__,
                    request=lookup.description,
                    wait=wait,
                )
            result = self.store.get(lookup.key) if lookup.inputs.is_stored else self._in_memory.get(lookup.key)
            if result is not None:
                return result, True
            if not usage.may_measure:
                raise Offline(
                    f"not in {self.store.folder}: {lookup.description}; --circuits-offline forbids measuring it, so run once without"
                )
            return self._in_memory.setdefault(lookup.key, self._measure(lookup, usage)), False
        except Offline:
            raise
        except CircuitsError as problem:
            self._failed[attempt] = problem
            raise

    def _measure(self, lookup: _Lookup, usage: _Usage) -> Any:
        """Call the torch side; one call at a time, since hooks of one model must not meet those of another call."""
        request = lookup.request
        task = None if request.source is None else self.task(request.source)
        with self.models.lock:
            before = self.models.calls(request.model)
            with self.models.operated(request.model) as subject:
                self._emit(self._begun(lookup, task, subject))
                started = time.perf_counter()
                try:
                    result = request.execute(subject, task, lookup.inputs.rows, self.batch_size)
                except BaseException:
                    self._emit(Event("stopped", lookup.description))
                    raise
                finally:
                    usage.forwards += subject.forwards - before[0]
                    usage.backwards += subject.backwards - before[1]
            usage.measured += 1
            self._emit(Event("measured", lookup.description, seconds=time.perf_counter() - started))
        return result

    def _begun(self, lookup: _Lookup, task: Task | None, subject: Any) -> Event:
        """The event that a measurement begins; its progress is the share of the expected model calls that were made."""
        before = subject.forwards + subject.backwards
        universe = getattr(getattr(subject, "anatomy", None), "universe", None)
        rows = lookup.inputs.rows
        n, reference = ((0 if task is None else len(task)) if indices is None else len(indices) for indices in rows)
        expected = 0 if universe is None else sum(lookup.request.cost(universe, n, reference, self.batch_size))

        def done() -> int:
            calls = subject.forwards + subject.backwards - before
            return min(n, n * calls // expected) if expected else 0

        return Event("measuring", lookup.description, total=n if expected else 0, done=done)


@dataclass(frozen=True)
class _Session:
    """What requests may ask of an executor while they are resolved for one claim."""

    executor: Executor
    usage: _Usage

    @property
    def batch_size(self) -> int | None:
        return self.executor.batch_size

    def task(self, source: TaskSource) -> Task:
        return self.executor.task(source)

    def encoded(self, model: ModelSource, source: TaskSource) -> Encoded:
        return self.executor.encoded(model, source, self.usage)

    def identity(self, model: ModelSource) -> Identity:
        return self.executor.models.identity(model, may_open=self.usage.may_measure)

    def dtype(self, model: ModelSource) -> str | None:
        return self.executor.models.dtype(model)

    def device_type(self, model: ModelSource) -> str:
        return self.executor.models.device_type(model)


def checked_request(request: Request[R]) -> Request[R]:
    """The request, if its type is registered. Raises `TypeError`."""
    name = type(request).__name__
    if not isinstance(request, Request) or name not in REQUESTS or REQUESTS.get(name) is not type(request):
        raise TypeError(f"a property yielded {request!r}, which is not a request; allowed: {', '.join(REQUESTS)}")
    return request
