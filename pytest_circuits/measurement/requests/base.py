"""What a measurement request is, and how a property asks for one.

A property is a generator: `result = yield from ask(request)` hands a request to whoever drives it and gets its result back. Equal requests
are measured once, whichever claims ask for them. P, K and thresholds are not part of a request: they are applied to stored scores.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from ...core.sources import ModelSource

R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """Which examples of a task: all, or one side of a seeded split by group. `split` None means in-sample: both sides are all.

    `since` leaves out examples with a lower number.
    """

    which: str = "all"
    split: float | None = None
    seed: int = 0
    since: int = 0


ALL = Part()


@dataclass(frozen=True)
class Request(Generic[R]):
    """A measurement of `model` whose result has type `R`: a plain, hashable description."""

    model: ModelSource


Requested = Request[Any] | Sequence[Request[Any]]
Steps = Generator[Requested, Any, T]
"""Steps that ask for measurements and return a `T`: what a property, and each part of one, is."""


def ask(request: Request[R]) -> Steps[R]:
    """The result of a request."""
    result: R = yield request
    return result


def ask_all(requests: Sequence[Request[R]]) -> Steps[list[R]]:
    """The results of several requests, in order; they may be measured in any order."""
    results: list[R] = yield list(requests)
    return results


@overload
def ask_together(first: Request[A], second: Request[B], /) -> Steps[tuple[A, B]]: ...


@overload
def ask_together(first: Request[A], second: Request[B], third: Request[C], /) -> Steps[tuple[A, B, C]]: ...


def ask_together(*requests: Request[Any]) -> Steps[Any]:
    """The results of a few requests of different types, in order; they may be measured in any order."""
    results: list[Any] = yield list(requests)
    return tuple(results)
