"""The lab: turns requests into results, from the store where it can, from an opened model where it must."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.results import Description, Encoded
from ..core.sources import ModelSource, TaskSource
from ..core.verdict import Estimate
from ..errors import CircuitsError, Offline, TaskError
from ..mutants.base import Mutation, intact, intact_task
from ..mutants.labels import relabelled
from ..tasks.base import Task
from .cost import Cost
from .cost_model import passes
from .dispatch import Indices, call
from .events import Event, Listener, ignore
from .example_selection import examples_of
from .incremental import joined, pieces, unextended
from .keys import in_words, index_digest, key_of
from .models import BUDGET, Models, Opener
from .requests import Ablate, AnyRequest, Attribute, Conserve, Describe, Encode, LoadTask, MeasureNorms, Part, PlanBoundary, Sweep
from .store import BusyError, Store

REQUESTS = (Describe, Encode, Attribute, Ablate, Sweep, MeasureNorms, Conserve, LoadTask, PlanBoundary)


def _load_source(source: TaskSource) -> Task:
    from ..tasks.load import load_source

    return load_source(source)


@dataclass
class _Tally:
    """The running cost of one claim, and whether measuring is allowed for it."""

    measure: bool = True
    forwards: int = 0
    backwards: int = 0
    hits: int = 0
    measured: int = 0
    started: float = field(default_factory=time.perf_counter)

    def cost(self) -> Cost:
        return Cost(self.forwards, self.backwards, time.perf_counter() - self.started, self.hits, self.measured)


@dataclass(frozen=True)
class _Order:
    """A request with its key and the examples that it means. `on_disk` is False where no file tells which tokenizer was used."""

    request: AnyRequest
    key: str
    examples: Indices
    reference: Indices
    on_disk: bool

    @property
    def words(self) -> str:
        return in_words(self.request)


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
        self._encoded: dict[str, Encoded] = {}
        self._guard = threading.RLock()
        self.spent = Cost()

    def run(self, steps: Generator[Any, Any, Estimate]) -> tuple[Estimate, Cost]:
        """Drive a property: answer what it yields, one request or a list, in the same shape, until it returns its estimate.

        A `CircuitsError` of measuring is thrown into the property at its `yield`, and leaves here if it is not handled there.
        """
        tally = _Tally(not self.offline)
        try:
            asked = next(steps)
            while True:
                try:
                    answer = self._many(asked, tally) if isinstance(asked, (list, tuple)) else self._one(asked, tally)
                except CircuitsError as problem:
                    asked = steps.throw(problem)
                else:
                    asked = steps.send(answer)
        except StopIteration as end:
            estimate: Estimate = end.value
        finally:
            steps.close()
            self._spend(tally)
        return estimate, tally.cost()

    def result(self, request: AnyRequest) -> Any:
        """The result of one request. Raises the `CircuitsError` of measuring it."""
        tally = _Tally(not self.offline)
        try:
            return self._one(request, tally)
        finally:
            self._spend(tally)

    def describe(self, model: ModelSource) -> Description:
        """What the model is; without loading it if it was described before."""
        return self.result(Describe(model))  # type: ignore[no-any-return]

    def part(self, model: ModelSource, task: TaskSource, part: Part) -> NDArray[np.int64]:
        """The numbers of the examples that `part` means, as this model's tokenizer leaves them."""
        encoded: Encoded = self.result(Encode(model, task))
        chosen = examples_of(part, encoded)
        return np.arange(encoded.n, dtype=np.int64) if chosen is None else chosen

    def task(self, source: TaskSource) -> Task:
        """The task's prompt pairs, read once a session. Raises `TaskError`, the same one each time."""
        with self._guard:
            if source not in self._tasks:
                self._tasks[source] = self._read(source)
            found = self._tasks[source]
        if isinstance(found, CircuitsError):
            raise found.with_traceback(None)
        return found

    def provide_task(self, source: TaskSource, task: Task) -> None:
        """Read this source as `task`, which a fixture or a test made."""
        with self._guard:
            self._tasks[source] = task

    def stored(self, request: AnyRequest) -> Any | None:
        """The result if it was measured before, else None; opens no model. Raises `ModelError` or `TaskError` for broken sources."""
        try:
            return self._one(request, _Tally(measure=False))
        except Offline:
            return None

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

    def _spend(self, tally: _Tally) -> None:
        with self._guard:
            self.spent += tally.cost()

    def _many(self, asked: Iterable[AnyRequest], tally: _Tally) -> list[Any]:
        """All of them, by model, and those that another process is measuring last; the first that fails, in the asked order, is raised."""
        asked = [_checked(request) for request in asked]
        place = {request: i for i, request in reversed(list(enumerate(asked)))}
        answers: dict[AnyRequest, Any] = {}
        failed: tuple[int, CircuitsError] | None = None
        todo, wait = self._by_model(dict.fromkeys(asked)), False
        while todo:
            busy = []
            for request in todo:
                if failed is not None and failed[0] < place[request]:
                    continue
                try:
                    answers[request] = self._one(request, tally, wait)
                    wait = False
                except BusyError:
                    busy.append(request)
                except CircuitsError as problem:
                    failed = (place[request], problem)
            wait = len(busy) == len(todo)  # nothing left to do but to wait for one of them
            todo = busy
        if failed is not None:
            raise failed[1]
        return [answers[request] for request in asked]

    def _by_model(self, requests: Iterable[AnyRequest]) -> list[AnyRequest]:
        """Those on models that are open come first, and no model is asked for twice."""
        groups: dict[ModelSource, list[AnyRequest]] = {}
        for request in requests:
            groups.setdefault(request.model, []).append(request)
        order = sorted(groups, key=lambda model: not self.models.is_open(model))
        return [request for model in order for request in groups[model]]

    def _one(self, request: AnyRequest, tally: _Tally, wait: bool = True) -> Any:
        request = _checked(request)
        if isinstance(request, LoadTask | PlanBoundary):
            return self.task(request.task) if isinstance(request, LoadTask) else None
        if isinstance(request, Encode):
            request = replace(request, model=intact(request.model))  # a mutant reads prompts as the model does that it is made of
        parts = self._pieces(request, tally)
        if parts != [request]:
            return joined([self._one(part, tally, wait) for part in parts])
        value, hit, words = self._obtain(self._order(request, tally), tally, wait)
        if hit:
            tally.hits += 1
            self._emit(Event("cached", words))
        return self.split_as_before(value, request.task) if isinstance(request, Encode) else value

    def split_as_before(self, encoded: Encoded, source: TaskSource) -> Encoded:
        """The encoding of a task that was extended, told how many examples it had at first."""
        return replace(encoded, first=len(self.task(unextended(source)))) if source.grown else encoded

    def _encoding(self, request: Any, tally: _Tally) -> Encoded:
        """The encoding of the request's task; no hit where it is read back."""
        found = self._obtain(self._order(Encode(intact(request.model), request.task), tally), tally)[0]
        return self.split_as_before(found, request.task)

    def _pieces(self, request: AnyRequest, tally: _Tally) -> list[AnyRequest]:
        """What a request on a task that was extended is put together from, without pieces of no examples."""
        if isinstance(request, (Describe, Encode)) or not request.task.grown or request.part.since:
            return [request]
        parts = pieces(request, len(self.task(unextended(request.task))))
        return [one for one in parts if not self._is_empty(one, tally)]

    def _is_empty(self, piece: Any, tally: _Tally) -> bool:
        return piece.part.since > 0 and examples_of(piece.part, self._encoding(piece, tally)).size == 0  # type: ignore[union-attr]

    def _order(self, request: AnyRequest, tally: _Tally) -> _Order:
        identity = self.models.identity(request.model, may_open=tally.measure)
        known: dict[str, Any] = {"model": identity.model, "dtype": self.models.dtype(request.model)}
        if isinstance(request, Describe):
            return _Order(request, key_of(request, known), None, None, True)
        known |= {"tokenizer": identity.tokenizer, "task": self.task(request.task).fingerprint}
        if isinstance(request, Encode):
            del known["dtype"]  # token ids do not depend on it
            if identity.tokenizer is None:  # models of equal weights may come with different tokenizers
                known["source"] = [request.model.path, request.model.revision, request.model.loader]
            return _Order(request, key_of(request, known), None, None, identity.tokenizer is not None)
        encoded = self._encoding(request, tally)
        examples = examples_of(request.part, encoded)
        reference: Indices = None
        if isinstance(request, (Ablate, Sweep)) and request.reference is not None:
            reference = examples_of(request.reference, encoded)
            reference = np.arange(encoded.n, dtype=np.int64) if reference is None else reference
        known |= {
            "device": self.models.device_type(request.model),
            "batch_size": self.batch_size,
            "encoding": encoded.digest,
            "examples": index_digest(examples),
            "reference": index_digest(reference),
        }
        return _Order(request, key_of(request, known), examples, reference, True)

    def _obtain(self, order: _Order, tally: _Tally, wait: bool = True) -> tuple[Any, bool, str]:
        """The result, whether it was there, and the request in words. A failure is raised again, not tried again."""
        attempt = order.key, replace(order.request.model, name="")  # equal weights elsewhere, or on another device, may work
        if attempt in self._failed:
            raise self._failed[attempt].with_traceback(None)
        try:
            if order.on_disk and tally.measure:
                value, hit = self.store.fetch(
                    order.key,
                    lambda: self._measure(order, tally),
                    kind=type(order.request).__name__,
                    request=order.words,
                    wait=wait,
                )
                return value, hit, order.words
            found = self.store.get(order.key) if order.on_disk else self._encoded.get(order.key)
            if found is not None:
                return found, True, order.words
            if not tally.measure:
                raise Offline(f"not in {self.store.folder}: {order.words}; --circuits-offline forbids measuring it, so run once without")
            return self._encoded.setdefault(order.key, self._measure(order, tally)), False, order.words
        except Offline:
            raise
        except CircuitsError as problem:
            self._failed[attempt] = problem
            raise

    def _measure(self, order: _Order, tally: _Tally) -> Any:
        """Call the torch side; one call at a time, since hooks of one model must not meet those of another call."""
        request = order.request
        task = None if isinstance(request, Describe) else self.task(request.task)
        with self.models.lock:
            before = self.models.calls(request.model)
            with self.models.operated(request.model) as subject:
                self._emit(self._begun(order, subject))
                started = time.perf_counter()
                try:
                    value = call(subject, request, task, order.examples, order.reference, self.batch_size)
                except BaseException:
                    self._emit(Event("stopped", order.words))
                    raise
                finally:
                    tally.forwards += subject.forwards - before[0]
                    tally.backwards += subject.backwards - before[1]
            tally.measured += 1
            self._emit(Event("measured", order.words, seconds=time.perf_counter() - started))
        return value

    def _begun(self, order: _Order, subject: Any) -> Event:
        """That a measurement begins; of one that takes model calls, with how many of its examples are done, by the calls made so far."""
        request, before = order.request, subject.forwards + subject.backwards
        if isinstance(request, (Describe, Encode)):
            return Event("measuring", order.words)
        universe = getattr(getattr(subject, "anatomy", None), "universe", None)
        pairs = len(self.task(request.task))
        n, reference = (pairs if rows is None else len(rows) for rows in (order.examples, order.reference))
        expected = 0 if universe is None else sum(passes(request, universe, n, reference, self.batch_size))

        def done() -> int:
            made = subject.forwards + subject.backwards - before
            return min(n, n * made // expected) if expected else 0

        return Event("measuring", order.words, total=n if expected else 0, done=done)


def _checked(request: Any) -> Any:
    if not isinstance(request, REQUESTS):
        raise TypeError(f"a property yielded {request!r}, which is no request; allowed: {', '.join(r.__name__ for r in REQUESTS)}")
    return request
