"""From a description of what can be drawn to a strategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from ..tasks.grammar.draws import Draws, Picked

T = TypeVar("T")


class Drawing(Picked):
    """Choices that hypothesis makes, replays and shrinks. `made` are those made so far."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        super().__init__()
        self._draw, self.record = draw, list[int | bool]()

    def pick(self, n: int) -> int:
        """A number of hypothesis' choice; a single option is no choice."""
        if n == 1:
            return 0
        self.record.append(self._draw(st.integers(0, n - 1)))
        return int(self.record[-1])

    def coin(self) -> bool:
        """False or True."""
        self.record.append(self._draw(st.booleans()))
        return bool(self.record[-1])


class Replay(Picked):
    """Choices that were made before. Raises `StaleError` where they do not fit any more."""

    def __init__(self, made: tuple[Any, ...]) -> None:
        super().__init__()
        self._left, self.record = list(made), list[int | bool]()

    def pick(self, n: int) -> int:
        """The next number."""
        return 0 if n == 1 else int(self._next(lambda value: type(value) is int and 0 <= value < n))

    def coin(self) -> bool:
        """The next truth value."""
        return bool(self._next(lambda value: type(value) is bool))

    def _next(self, fits: Callable[[Any], bool]) -> Any:
        if not self._left or not fits(self._left[0]):
            raise StaleError
        self.record.append(self._left[0])
        return self._left.pop(0)


class StaleError(Exception):
    """Choices were made for another grammar."""


def strategy(draw: Callable[[Draws], T | None]) -> st.SearchStrategy[T]:
    """A strategy for what `draw` makes of choices; choices of which it makes None are filtered out."""

    @st.composite
    def drawn(pick: Any) -> T | None:
        return draw(Drawing(pick))

    return drawn().filter(lambda made: made is not None)  # type: ignore[return-value]
