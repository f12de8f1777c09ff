"""Built-in tasks: prompt pairs drawn from a seed, without repeats, and continued on demand.

A built-in subclasses `Generated` and defines how one pair is drawn and how many clean prompts there are.
The stream of a seed does not depend on n: the first 256 pairs of n=512 are those of n=256.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ...errors import TaskError
from ..base import PromptPair, Task
from .draws import Draws, Seeded

T = TypeVar("T")
Entry = tuple[PromptPair, int]
PATIENCE = 50  # times (pairs seen + 1000): draws without a new pair after which a stream counts as exhausted


class Parameters(BaseModel):
    """Parameters of every built-in task."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    n: Annotated[int, Field(ge=1, description="number of prompt pairs")] = 256
    seed: Annotated[int, Field(description="draws the pairs; equal seeds give equal pairs everywhere")] = 0


def words(text: str) -> list[str]:
    """The words of a list written as one string."""
    return text.split()


def several(value: T | Sequence[T]) -> list[T]:
    """A parameter that may be one value or a list of them, as a list without repeats, in the order written."""
    values = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
    return list(dict.fromkeys(values))


def listed(value: T | list[T]) -> list[T]:
    """A parameter that may be one value or a list of them, as a list."""
    return value if isinstance(value, list) else [value]


class Generated(ABC):
    """A built-in task with given parameters.

    All clean prompts of the task differ. Its continuation (`Task.more`) has further pairs, some of which repeat a clean prompt
    with another corrupt prompt, in case a tokenizer does not accept the first.
    """

    name: ClassVar[str]
    Parameters: ClassVar[type[Parameters]]
    scoring: ClassVar[Literal["choices", "argmax"]] = "choices"
    stop: ClassVar[Literal["digits"] | None] = None
    asks: ClassVar[frozenset[str]] = frozenset()  # parameters that change the question, but not which prompts are drawn

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters

    @abstractmethod
    def draw(self, random: Draws) -> PromptPair | None:
        """One pair, or None when the draw is degenerate (the corruption would not change the answer)."""

    @abstractmethod
    def space(self) -> int:
        """How many different clean prompts can be drawn."""

    def groups(self) -> int | None:
        """How many different groups its prompts can have; None: so many that the number does not matter."""
        return None

    def stream(self) -> Iterator[Entry]:
        """Different (clean, corrupt) pairs, each with the number of degenerate draws so far; ends when no new pair turns up."""
        settings = self.parameters.model_dump(mode="json", exclude={"n", *self.asks})
        random = Seeded(f"{self.name} {json.dumps(settings, sort_keys=True)}")
        seen: set[object] = set()
        dropped = repeated = 0
        while repeated < PATIENCE * (len(seen) + 1000):
            repeated += 1
            pair = self.draw(random)
            if pair is None:
                dropped += 1
            elif (pair.clean, pair.corrupt) not in seen:
                seen.add((pair.clean, pair.corrupt))
                repeated = 0
                yield pair, dropped

    def _first(self, n: int) -> tuple[list[PromptPair], int]:
        """The first n pairs of the stream with different clean prompts, and the degenerate draws on the way."""
        pairs: dict[object, PromptPair] = {}
        for pair, dropped in self.stream():
            pairs.setdefault(pair.clean, pair)
            if len(pairs) == n:
                return list(pairs.values()), dropped
        raise TaskError(f"task {self.name!r}: only {len(pairs)} of {n} different prompts exist; lower n")

    @classmethod
    def make(cls, parameters: Any) -> Task:
        """The task. Raises `TaskError` when there are fewer than n different prompts."""
        source = cls(parameters)
        n, space = parameters.n, source.space()
        if n > space:
            raise TaskError(
                f"task {cls.name!r} has only {space} different prompts with these parameters, fewer than n={n}; "
                f"lower n to at most {space}, or widen the task's other parameters"
            )
        pairs, dropped = source._first(n)
        taken = {(pair.clean, pair.corrupt) for pair in pairs}
        return Task(
            name=cls.name,
            pairs=tuple(pairs),
            scoring=cls.scoring,
            stop=cls.stop,
            more=lambda: (pair for pair, _ in source.stream() if (pair.clean, pair.corrupt) not in taken),
            provenance={"builtin": cls.name, **parameters.model_dump(mode="json")},
            dropped=dropped,
            most_groups=source.groups(),
        )
