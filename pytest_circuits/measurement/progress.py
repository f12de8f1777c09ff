"""A progress bar while something is measured, on a terminal and nowhere else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import IO, Any

from .events import Event, Listener, warn

PATIENCE = 0.5  # seconds before anything is shown
PERIOD = 0.2
UNKNOWN_WIDTH = 80
REST = 44  # columns for everything but the description


def terminal(handle: int) -> IO[str] | None:
    """A text file on a copy of this file descriptor if it is a terminal that can move its cursor, else None.

    A copy still leads to the terminal while pytest captures the original.
    """
    try:
        if os.environ.get("TERM", "dumb") == "dumb" or not os.isatty(handle):
            return None
        return open(os.dup(handle), "w", encoding="utf-8", errors="replace")
    except OSError:
        return None


class Line:
    """The file that the bar writes to: from its first word on a line of its own, below a line that is `column` characters long."""

    def __init__(self, file: IO[str], column: Callable[[], int] | None) -> None:
        self._file, self._column, self._open = file, column, False
        self.encoding = "utf-8"

    def write(self, text: str) -> None:
        """Write, and open the line first if it is not."""
        if not self._open and self._column is not None:
            self._file.write("\n")
        self._open = True
        self._file.write(text)

    def flush(self) -> None:
        """Show what was written."""
        self._file.flush()

    def fileno(self) -> int:
        """That of the terminal, for its width."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """A line is only made on a terminal."""
        return True

    def close(self) -> None:
        """Leave the terminal as it was."""
        if not self._open:
            return
        self._file.write("\r\x1b[K")
        if self._column is not None:
            column = self._column()
            self._file.write("\x1b[A\r" + (f"\x1b[{column}C" if column else ""))
        self._file.flush()
        self._open = False


class Progress:
    """A listener of the executor that shows what is being measured, how many of its examples are done (by the model calls that were made of
    those expected) and for how long; troubles become warnings as without it.

    Nothing is shown, and tqdm not imported, in the first half second of a measurement, so that short ones and stored results leave no
    trace. The bar is drawn by a thread of its own, which ends with the measurement.
    """

    def __init__(self, file: IO[str], column: Callable[[], int] | None = None) -> None:
        self._file, self._column = file, column
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self.requests = 0  # measured so far

    def __call__(self, event: Event) -> None:
        """Handle an event."""
        if event.kind in ("opening", "measuring", "waiting"):
            self._end()
            self._begin(event)
        elif event.kind in ("opened", "measured", "stopped", "cached"):
            self.requests += event.kind == "measured"
            self._end()
        else:
            warn(event)

    def _begin(self, event: Event) -> None:
        stop = threading.Event()
        self._stop = stop
        self._thread = threading.Thread(target=self._draw, args=(event, stop), daemon=True, name="pytest-circuits-progress")
        self._thread.start()

    def _end(self) -> None:
        if self._stop is not None and self._thread is not None:
            self._stop.set()
            self._thread.join()
        self._stop = self._thread = None

    def _draw(self, event: Event, stop: threading.Event) -> None:
        if stop.wait(PATIENCE):
            return
        line = Line(self._file, self._column)
        bar = _bar(event, line, self.requests + 1)
        try:
            while True:
                bar.n = event.done()
                bar.refresh()
                if stop.wait(PERIOD):
                    break
        finally:
            bar.close()
            line.close()


def _bar(event: Event, line: Line, number: int) -> Any:
    from importlib import import_module

    tqdm = import_module("tqdm").tqdm
    bar_type = type("Bar", (tqdm,), {"monitor_interval": 0})  # no second thread
    columns = _columns(line)
    longest = max(12, columns - REST)
    what = event.what if len(event.what) <= longest else f"{event.what[: longest - 1]}…"
    counted = event.total > 0
    shape = "{desc}: {n_fmt}/{total_fmt} examples |{bar}| {elapsed}" if counted else "{desc} {elapsed}"
    label = {"measuring": f"[{number}] {what}", "opening": f"opening {what}"}.get(event.kind, f"waiting for another process: {what}")
    return bar_type(total=event.total or None, desc=label, file=line, leave=False, bar_format=shape, ncols=columns, miniters=1)


def _columns(line: Line) -> int:
    """How wide the terminal is; some do not say."""
    try:
        return os.get_terminal_size(line.fileno()).columns or UNKNOWN_WIDTH
    except OSError:
        return UNKNOWN_WIDTH


def listener(handle: int, column: Callable[[], int] | None = None) -> Listener:
    """Progress on this file descriptor if it is a terminal; else only warnings."""
    file = terminal(handle)
    return warn if file is None else Progress(file, column)
