"""The models of a session: identified without loading, opened only when needed, open within a budget; failures are remembered."""

from __future__ import annotations

import gc
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.sources import ModelSource
from ..errors import CircuitsError, ModelError, MutationError, Offline, OptionError
from ..mutants import OPERATORS
from ..mutants.base import Mutation, intact
from ..registry import load_object
from .events import Event, Listener
from .fingerprints import Identity, cached_config, identify
from .keys import mutation_digest

Opener = Callable[..., Any]
_DEVICE = re.compile(r"[a-z]+(:\d+)?")
BUDGET = 2**30
"""Bytes of parameters that stay in memory: many small models, or a single large one."""


def default_opener(model: Any, tokenizer: Any = None, **options: Any) -> Any:
    """`open_model` of the torch side, imported at the first call."""
    from ..subject import open_model

    return open_model(model, tokenizer, **options)


def parameter_bytes(subject: Any) -> int:
    """Bytes of the parameters of an open model; shared ones count once."""
    return sum(p.numel() * p.element_size() for p in subject.model.parameters())


def weight_bytes(source: ModelSource) -> int | None:
    """Bytes of the weight files of a directory or a downloaded hub id: about what opening will take. None where there are none here."""
    config = cached_config(source)
    if config is None:
        return None
    for pattern in ("*.safetensors", "*.bin"):
        sizes = [path.stat().st_size for path in config.parent.glob(pattern)]
        if sizes:
            return sum(sizes)
    return None


class Models:
    """`identity(source)` and `subject(source)`, each the same for the whole session.

    Models stay open while their parameters take at most `budget` bytes together; the least recently used one is closed first, and
    one model is always open, however large. `device` and `dtype`, if given, take precedence over those of a source. An error of opening is
    raised again, without another attempt, for each claim on the model. The subject of a mutant is that of the model that it is made from:
    `operated(source)` changes its weights in place for as long as a measurement takes.
    """

    def __init__(
        self, memo: Path | None, *, device: str | None, dtype: str | None, budget: int = BUDGET, opener: Opener | None, emit: Listener
    ) -> None:
        if budget < 0:
            raise OptionError(f"a budget for open models is a number of bytes, got {budget}")
        self._memo, self._device, self._dtype, self._budget = memo, device, dtype, budget
        self._opener = opener or default_opener
        self._emit = emit
        self._open: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._sizes: dict[tuple[Any, ...], int] = {}
        self._failed: dict[tuple[Any, ...], CircuitsError] = {}
        self._identities: dict[tuple[Any, ...], Identity] = {}
        self._device_types: dict[tuple[Any, ...], str] = {}
        self._provided: dict[ModelSource, Callable[[], Any]] = {}
        self.lock = threading.RLock()

    def provide(self, source: ModelSource, factory: Callable[[], Any]) -> None:
        """Open this source by calling `factory()`: a module, or a module and its tokenizer; what a loader returns.

        Providing it again discards what is known of it, since a module may have been trained meanwhile.
        """
        with self.lock:
            self._provided[source] = factory
            for cache in (self._open, self._sizes, self._failed, self._identities, self._device_types):
                cache.pop(self._place(source), None)

    @property
    def device_option(self) -> str | None:
        """The device of the session, which takes precedence over those of sources."""
        return self._device

    @property
    def dtype_option(self) -> str | None:
        """The precision of the session, which takes precedence over those of sources."""
        return self._dtype

    def device(self, source: ModelSource) -> str | None:
        """The device to run on, `cpu` unless one is given; None where a loader or fixture decides. Raises `OptionError` for `auto`."""
        device = self._device or source.device or (None if self._ready_made(source) else "cpu")
        if device is not None and (not _DEVICE.fullmatch(device) or device in ("auto", "meta")):
            raise OptionError(f"model {source.name!r}: {device!r} is not a device to measure on; write cpu, cuda, cuda:1, mps …")
        return device

    def device_type(self, source: ModelSource) -> str:
        """The kind of device: cpu, cuda, mps …; opens the model where a loader or fixture decides."""
        device = self.device(source)
        if device is None:
            place = self._place(source)
            with self.lock:
                if place not in self._device_types:
                    self._device_types[place] = next(self.subject(source).model.parameters()).device.type
                return self._device_types[place]
        return device.split(":")[0]

    def dtype(self, source: ModelSource) -> str | None:
        """The precision asked for; None: that of the checkpoint."""
        return self._dtype or source.dtype

    def calls(self, source: ModelSource) -> tuple[int, int]:
        """Forward and backward calls of the model so far; of one that is not open, none."""
        subject = self._open.get(self._place(source))
        return (0, 0) if subject is None else (subject.forwards, subject.backwards)

    def is_open(self, source: ModelSource) -> bool:
        """Whether the model is open now."""
        return self._place(source) in self._open

    def identity(self, source: ModelSource, *, may_open: bool = True) -> Identity:
        """Which model this is; opens it where only that can tell, or raises `Offline` with `may_open=False`. Raises `ModelError`."""
        if source.mutation is not None:
            mutation, base = Mutation.read(source.mutation), self.identity(intact(source), may_open=may_open)
            donor = None if mutation.donor is None else self.identity(mutation.donor, may_open=may_open).model
            return Identity(f"{base.model}:mutant:{mutation_digest(mutation, donor)}", base.tokenizer, base.commit)
        place = self._place(source)
        with self.lock:
            if place not in self._identities:
                identity = self._identify(source)
                if identity is None and not may_open:
                    raise Offline(
                        f"model {source.describe()} has to be loaded to know which one it is, and nothing may be loaded now: "
                        "give a directory or a downloaded hub id, or run once without --circuits-offline"
                    )
                if identity is None:
                    subject = self.subject(source)
                    identity = self._identify(source) or Identity(f"loaded:{subject.describe().fingerprint}:{subject.behaviour}", None)
                self._identities[place] = identity
            return self._identities[place]

    def subject(self, source: ModelSource) -> Any:
        """The open model; of a mutant, the one that it is made from. Raises `ModelError`, the same one each time."""
        source = intact(source)
        place = self._place(source)
        with self.lock:
            if place in self._failed:
                raise self._failed[place].with_traceback(None)
            if place not in self._open:
                self._make_room(self._expected(source))
                try:
                    opened = self._opened(source)
                except CircuitsError as problem:
                    self._failed[place] = problem
                    raise
                self._sizes[place] = parameter_bytes(opened)
                self._make_room(self._sizes[place])
                self._open[place] = opened
            self._open.move_to_end(place)
            return self._open[place]

    @contextmanager
    def operated(self, source: ModelSource) -> Iterator[Any]:
        """The open model, a mutant while this lasts if the source is one. Raises `ModelError`, and `MutationError` for a mutant that
        cannot be made.
        """
        if source.mutation is None:
            yield self.subject(source)
            return
        from ..core.units import layer_of
        from ..mutants.surgery import differing, layer_tensors, operated, weight_digests

        mutation, donor = Mutation.read(source.mutation), None
        if mutation.donor is not None:
            donor = layer_tensors(self.subject(mutation.donor), [layer_of(unit) for unit in mutation.units])
        subject, problem = self.subject(source), None
        before = None if mutation.operator in OPERATORS.builtin else weight_digests(subject.model)
        try:
            with operated(subject, mutation, donor):
                yield subject
        except MutationError as stop:
            problem = stop
        finally:
            changed = [] if before is None else differing(before, weight_digests(subject.model))
            if changed:
                self._open.pop(self._place(source), None)  # the next measurement opens it anew
        if changed:
            some = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
            raise MutationError(
                f"{mutation.name} changed {some} without surgery.edit, so that it could not be put back: change only what "
                "surgery.edit(parameter) and surgery.head(name) return"
            ) from problem
        if problem is not None:
            raise problem

    def _expected(self, source: ModelSource) -> int:
        """Bytes that opening the model will probably take: 0 for one in memory, the whole budget for one of unknown size."""
        size = self._sizes.get(self._place(source))
        if size is None:
            size = 0 if source in self._provided else weight_bytes(source)
        return self._budget if size is None else size

    def _make_room(self, needed: int) -> None:
        """Close models, the least recently used one first, until the others and `needed` more bytes fit the budget."""
        while self._open and sum(self._sizes[place] for place in self._open) + needed > self._budget:
            self._open.popitem(last=False)
            gc.collect()  # hooks and caches of a model refer to each other

    def is_ready_made(self, source: ModelSource) -> bool:
        """Whether the model was handed over in memory."""
        return intact(source) in self._provided

    def _ready_made(self, source: ModelSource) -> bool:
        return intact(source) in self._provided or source.loader is not None

    def _place(self, source: ModelSource) -> tuple[Any, ...]:
        source = intact(source)
        named = source if source in self._provided else (source.path, source.revision, source.loader)
        return named, self.device(source), self.dtype(source)

    def _identify(self, source: ModelSource) -> Identity | None:
        try:
            return None if self._ready_made(source) else identify(source, self._memo)
        except OSError as problem:
            raise ModelError(f"model {source.describe()} cannot be read: {problem}") from problem

    def _opened(self, source: ModelSource) -> Any:
        self._emit(Event("opening", source.describe()))
        try:
            subject, seconds = self._loaded(source)
        except BaseException:
            self._emit(Event("stopped", source.describe()))
            raise
        self._emit(Event("opened", source.describe(), seconds=seconds))
        return subject

    def _loaded(self, source: ModelSource) -> tuple[Any, float]:
        """The opened model, and how long it took."""
        identity = self._identities.get(self._place(source))
        model, tokenizer = self._ingredients(source)
        revision = (identity.commit if identity else None) or source.revision  # what is opened is what the key says
        started = time.perf_counter()
        try:
            subject = self._opener(model, tokenizer, revision=revision, dtype=self.dtype(source), device=self.device(source))
        except CircuitsError:
            raise
        except Exception as problem:
            raise ModelError(f"model {source.describe()} cannot be opened: {type(problem).__name__}: {problem}") from problem
        if identity is not None and identity.tokenizer is not None and identity.commit is None and self._identify(source) != identity:
            raise ModelError(f"the files of model {source.describe()} changed during this session; run again when they are complete")
        return subject, time.perf_counter() - started

    def _ingredients(self, source: ModelSource) -> tuple[Any, Any]:
        if source in self._provided:
            loaded = self._call(source, self._provided[source], "the fixture")
        elif source.loader is not None:
            try:
                function = load_object(source.loader)
            except OptionError as problem:
                raise ModelError(f"model {source.describe()}: {problem}") from problem
            loaded = self._call(source, function, f"the loader {source.loader}")
        else:
            return str(Path(source.path).expanduser()) if source.path and source.path.startswith("~") else source.path, None
        return loaded if isinstance(loaded, tuple) and len(loaded) == 2 else (loaded, None)

    def _call(self, source: ModelSource, function: Callable[[], Any], what: str) -> Any:
        try:
            return function()
        except CircuitsError:
            raise
        except Exception as problem:
            raise ModelError(f"model {source.describe()}: {what} raised {type(problem).__name__}: {problem}") from problem
