"""A property's steps, watched: what it asks for is told before it is answered."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from ..core.verdict import Estimate
from ..errors import CircuitsError
from .requests import AnyRequest


class ElsewhereError(Exception):
    """A property asks for something else than it did before."""


def watched(steps: Generator[Any, Any, Estimate], tell: Callable[[list[AnyRequest]], object]) -> Generator[Any, Any, Estimate]:
    """The same steps; `tell` hears of the requests of each. What it raises leaves from here, and ends the steps."""
    try:
        wanted = next(steps)
        while True:
            tell(list(wanted) if isinstance(wanted, (list, tuple)) else [wanted])
            try:
                answer = yield wanted
            except CircuitsError as problem:
                wanted = steps.throw(problem)
            else:
                wanted = steps.send(answer)
    except StopIteration as end:
        estimate: Estimate = end.value
        return estimate
    finally:
        steps.close()
