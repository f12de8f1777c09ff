"""Measurements on disk: content-addressed, written whole or not at all, each measured once whichever process needs it.

An entry is `<2 hex>/<key>.safetensors`. The folder marks itself as a cache for backup tools and for git. A
damaged entry counts as missing, is replaced when it is measured again, and is reported once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..core.atomic import write_atomic
from .entry import DamagedError, dump, load
from .entry_path import entry_path
from .events import Event, Listener, warn

_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Measurements of pytest-circuits. This folder may be deleted: they can be measured again.\n"
)


class BusyError(Exception):
    """Another thread or process is making this measurement."""


class Store:
    """A folder of measurements with a layer of memory above it.

    Nothing is created before something is written. `on_event` hears of damaged entries, of a folder that cannot be
    written (once each; results are returned all the same) and of waiting; by default problems become `CacheWarning`s.
    `memory` bounds, in bytes, the results that stay in memory so that each is read once.
    """

    def __init__(self, folder: str | os.PathLike[str], *, on_event: Listener | None = None, memory: int = 1 << 30) -> None:
        self.folder = Path(folder)
        self.memory = memory
        self._emit: Listener = on_event or warn
        self._in_memory: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._guard = threading.RLock()
        self._threads: dict[str, threading.Lock] = {}
        self._reported: set[str] = set()

    @classmethod
    def temporary(cls, *, on_event: Listener | None = None) -> Store:
        """A store in a new temporary folder. Other processes share it by its path; its creator calls `discard` at the end."""
        return cls(tempfile.mkdtemp(prefix="pytest-circuits-"), on_event=on_event)

    def discard(self) -> None:
        """Delete the folder and everything in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def fingerprints(self) -> Path:
        """Where digests of model files are remembered."""
        return self.folder / "fingerprints"

    def path(self, key: str) -> Path:
        """The file of an entry."""
        return entry_path(self.folder, key)

    def get(self, key: str) -> Any | None:
        """The measurement stored under `key`, or None if there is none that can be read."""
        with self._guard:
            if key in self._in_memory:
                self._in_memory.move_to_end(key)
                return self._in_memory[key][0]
        try:
            data = self.path(key).read_bytes()
            value = load(data, key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            self._report("damaged", self.path(key), f"a stored measurement cannot be read ({problem}); it is measured again")
            return None
        except DamagedError as problem:
            self._report("damaged", self.path(key), f"a stored measurement is not usable: {problem}; it is measured again and replaced")
            return None
        self._remember(key, value, len(data))
        return value

    def fetch(self, key: str, make: Callable[[], Any], *, kind: str, request: str, wait: bool = True) -> tuple[Any, bool]:
        """The measurement `key` and whether it was stored; if not, `make()` is called once across threads and processes, and stored.

        With `wait=False` raises `BusyError` instead of waiting for another's measurement. What `make` raises passes through and
        leaves neither an entry nor a lock.
        """
        entry = self.get(key)
        if entry is not None:
            return entry, True
        with self._lock(key, wait, request):
            entry = self.get(key)
            if entry is not None:
                return entry, True
            data = dump(make(), key=key, kind=kind, request=request)
            self._write(key, data)
        value = load(data, key)  # what a later run will read, so that both see the same
        self._remember(key, value, len(data))
        return value, False

    def _remember(self, key: str, value: Any, size: int) -> None:
        with self._guard:
            self._in_memory[key] = (value, size)
            while len(self._in_memory) > 1 and sum(size for _, size in self._in_memory.values()) > self.memory:
                self._in_memory.popitem(last=False)

    @contextmanager
    def _lock(self, key: str, wait: bool, request: str) -> Iterator[None]:
        with self._guard:
            lock_of_thread = self._threads.setdefault(key, threading.Lock())
        if not lock_of_thread.acquire(blocking=wait):
            raise BusyError(key)
        try:
            lock = self._file_lock(key, wait, request)
            try:
                yield
            finally:
                if lock is not None:
                    lock.release()
        finally:
            lock_of_thread.release()

    def _file_lock(self, key: str, wait: bool, request: str) -> FileLock | None:
        """The held lock, or None where the folder does not allow locks: then each process measures for itself."""
        try:
            self._prepare(self.folder / "locks")
            lock = FileLock(self.folder / "locks" / f"{key}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if not wait:
                    raise BusyError(key) from None
                self._emit(Event("waiting", request))
                lock.acquire()
        except (OSError, NotImplementedError) as problem:
            self._unwritable(problem)
            return None
        return lock

    def _write(self, key: str, data: bytes) -> None:
        path = self.path(key)
        try:
            self._prepare(path.parent)
            for leftover in path.parent.glob(f".{path.name}-*.tmp"):  # of a process that was killed while writing
                leftover.unlink(missing_ok=True)
            write_atomic(path, data)
        except OSError as problem:
            self._unwritable(problem)

    def _prepare(self, folder: Path) -> None:
        """Make a subfolder; mark the store's folder as a cache if it is new. A folder that someone already uses is never marked."""
        new = not self.folder.exists() or not any(self.folder.iterdir())
        folder.mkdir(parents=True, exist_ok=True)
        if new:
            for name, text in {"CACHEDIR.TAG": _TAG, ".gitignore": "*\n"}.items():
                with suppress(FileExistsError), (self.folder / name).open("x", encoding="utf-8") as file:
                    file.write(text)

    def _unwritable(self, problem: BaseException) -> None:
        detail = f"measurements cannot be stored here ({problem}); they are used in this run only"
        self._report("unwritable", self.folder, detail, once="unwritable")

    def _report(self, kind: str, path: Path, detail: str, once: str | None = None) -> None:
        mark = once or str(path)
        with self._guard:
            if mark in self._reported:
                return
            self._reported.add(mark)
        self._emit(Event(kind, str(path), detail))
