"""Waiting for events of other processes and threads, and interrupting them. The limit only ends a hang: no test is about time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

HANG = 1800  # seconds


def wait_until(condition: Callable[[], object], explanation: Callable[[], str] = str) -> None:
    """Return as soon as the condition holds; fail with the explanation when it does not in time."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, f"nothing happened for {HANG} s {explanation()}"
        time.sleep(0.01)


def listen_to_interrupts() -> None:
    """For `preexec_fn`: a process that is sent SIGINT must not ignore it, as all do that descend from a background job of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
