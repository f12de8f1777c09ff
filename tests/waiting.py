"""Waiting for events of other processes and threads. The limit only ends a hang; no test passes or fails by time."""

from __future__ import annotations

import time
from collections.abc import Callable

HANG = 1800  # seconds


def wait_until(condition: Callable[[], object], explanation: Callable[[], str] = str) -> None:
    """Return as soon as the condition holds; fail with the explanation when it does not in time."""
    end = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < end, f"nothing happened for {HANG} s {explanation()}"
        time.sleep(0.01)
