"""Strategies from functions that draw, and the choices that such a function makes under hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from ..tasks.grammar.draws import Draws, Picked

T = TypeVar("T")


class HypothesisChoices(Picked):
    """Choices that hypothesis makes, replays and shrinks. `record` are those made so far."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        super().__init__()
        self._draw, self.record = draw, list[int | bool]()

    def pick(self, n: int) -> int:
        """A number that hypothesis chooses; with a single option there is no choice."""
        if n == 1:
            return 0
        self.record.append(self._draw(st.integers(0, n - 1)))
        return int(self.record[-1])

    def coin(self) -> bool:
        """False or True."""
        self.record.append(self._draw(st.booleans()))
        return bool(self.record[-1])


class ReplayedChoices(Picked):
    """Choices that were made before. Raises `StaleError` if they no longer fit."""

    def __init__(self, choices: tuple[Any, ...]) -> None:
        super().__init__()
        self._remaining, self.record = list(choices), list[int | bool]()

    def pick(self, n: int) -> int:
        """The next number."""
        return 0 if n == 1 else int(self._next(lambda value: type(value) is int and 0 <= value < n))

    def coin(self) -> bool:
        """The next truth value."""
        return bool(self._next(lambda value: type(value) is bool))

    def _next(self, fits: Callable[[Any], bool]) -> Any:
        if not self._remaining or not fits(self._remaining[0]):
            raise StaleError
        self.record.append(self._remaining[0])
        return self._remaining.pop(0)


class StaleError(Exception):
    """The choices were made for another grammar."""


def strategy(draw: Callable[[Draws], T | None]) -> st.SearchStrategy[T]:
    """A strategy for the values of `draw`; None is filtered out."""

    @st.composite
    def values(draw_from: Any) -> T | None:
        return draw(HypothesisChoices(draw_from))

    return values().filter(lambda value: value is not None)  # type: ignore[return-value]
