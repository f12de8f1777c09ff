"""Built-in tasks: prompt pairs drawn from a seed, without repeats, and continued on demand.

A built-in subclasses `Generated`, says how one pair is drawn and how many clean prompts there are; the rest is here.
The stream of a seed does not depend on n: the first 256 pairs of n=512 are those of n=256.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ..errors import TaskError
from .base import PromptPair, Task

T = TypeVar("T")
Entry = tuple[PromptPair, int]


class Parameters(BaseModel):
    """What every built-in task takes: how many pairs, and which seed draws them."""

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


class Generated(ABC):
    """A built-in task with given parameters. Two pairs with the same clean prompt count as repeats."""

    name: ClassVar[str]
    Parameters: ClassVar[type[Parameters]]
    scoring: ClassVar[Literal["choices", "argmax"]] = "choices"
    stop: ClassVar[Literal["digits"] | None] = None

    def __init__(self, parameters: Any) -> None:
        self.parameters = parameters

    @abstractmethod
    def draw(self, random: Random) -> PromptPair | None:
        """One pair, or None when the draw is degenerate (the corruption would not change the answer)."""

    @abstractmethod
    def space(self) -> int:
        """How many different clean prompts can be drawn."""

    def stream(self) -> Iterator[Entry]:
        """New pairs until every clean prompt has been seen, each with the number of degenerate draws so far."""
        settings = self.parameters.model_dump(mode="json", exclude={"n"})
        random = Random(f"{self.name} {json.dumps(settings, sort_keys=True)}")
        seen: set[object] = set()
        dropped = 0
        while len(seen) < self.space():
            pair = self.draw(random)
            if pair is None:
                dropped += 1
            elif pair.clean not in seen:
                seen.add(pair.clean)
                yield pair, dropped

    @classmethod
    def make(cls, parameters: Any) -> Task:
        """The task. Raises `TaskError` when there are fewer than n different prompts."""
        source = cls(parameters)
        n, space = parameters.n, source.space()
        if n > space:
            raise TaskError(
                f"task {cls.name!r} has only {space} different prompts with these parameters, n={n} asks for more; "
                f"lower n to at most {space}, or widen the task's other parameters"
            )
        drawn = list(islice(source.stream(), n))
        return Task(
            name=cls.name,
            pairs=tuple(pair for pair, _ in drawn),
            scoring=cls.scoring,
            stop=cls.stop,
            more=lambda: (pair for pair, _ in islice(source.stream(), n, None)),
            provenance={"builtin": cls.name, **parameters.model_dump(mode="json")},
            dropped=drawn[-1][1],
        )
