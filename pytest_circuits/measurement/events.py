"""What the executor and its store tell those who watch: a progress bar, a terminal summary."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field


class CacheWarning(UserWarning):
    """The store of measurements is damaged or cannot be written. Results are still right; they may be measured again."""


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    kind: `opening` and `opened` (a model), `measuring` and `measured`, `stopped` (either of them, by an exception), `cached`, `waiting`
        (another process measures the same), `damaged` (a stored measurement is not readable), `unwritable` (the store cannot be written).
    what: the model, the request in words, or the file.
    detail: a sentence for `damaged` and `unwritable`, empty otherwise. seconds: how long opening or measuring took.
    total, done: of `measuring`, the number of examples (0: not known), and how many are measured so far.
    """

    kind: str
    what: str
    detail: str = ""
    seconds: float = 0.0
    total: int = 0
    done: Callable[[], int] = field(default=lambda: 0, compare=False, repr=False)


Listener = Callable[[Event], None]


def warn(event: Event) -> None:
    """A listener that turns problems into `CacheWarning`s and ignores the rest."""
    if event.kind in ("damaged", "unwritable"):
        warnings.warn(f"{event.what}: {event.detail}", CacheWarning, stacklevel=2)


def ignore(event: Event) -> None:
    """A listener that does nothing."""
