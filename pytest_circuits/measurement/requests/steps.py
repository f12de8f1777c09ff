"""How a property asks for measurements: `result = yield from ask(request)`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar, overload

from .base import Request

R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
T = TypeVar("T")

Requested = Request[Any] | Sequence[Request[Any]]
Steps = Generator[Requested, Any, T]
"""Steps that ask for measurements and return a `T`: a property, and each part of one. `drive` runs them."""


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
