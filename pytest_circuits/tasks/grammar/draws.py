"""How a grammar makes its choices: from a seed, from the outside one by one, or independently and on record.

`Generated.draw` describes a task once; the kind of `Draws` decides the rest. `Seeded` gives the pairs of a seed; `Picked` turns
every choice into the number of an option, simplest options first, so that a search can replay and shrink a draw.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import MutableSequence, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Draws(Random):
    """A source of choices: a `Random` with `coin`."""

    def coin(self) -> bool:
        """True or False, equally likely."""
        return self.random() < 0.5


class Seeded(Draws):
    """The choices of a seed: those of `random.Random`."""


class Picked(Draws):
    """Choices made by `pick`, the number of one of n options, all equally likely where it is random. 0 is the simplest."""

    @abstractmethod
    def pick(self, n: int) -> int:
        """A whole number from 0 to n − 1."""

    @abstractmethod
    def coin(self) -> bool:
        """True or False; False is the simplest."""

    def choice(self, seq: Any) -> Any:
        """An element of the sequence; the first is the simplest."""
        return seq[self.pick(len(seq))]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        """Different elements, k of them; the first are the simplest."""
        rest = list(population)
        if counts is not None:
            rest = [element for element, count in zip(rest, counts, strict=True) for _ in range(count)]
        return self.subset(rest, k, k)

    def subset(self, population: Sequence[T], least: int, most: int) -> list[T]:
        """From `least` to `most` different elements; the fewest and first are the simplest.

        For shrinking, each element is a number among all of them, so that exchanging two choices exchanges two elements; and after the
        first `least` each is announced by a choice other than 0, so that it can be left out. A repeated element is replaced by the
        next one where an element is needed, and ignored where not.
        """
        if not 0 <= least <= most <= len(population):
            raise ValueError("Sample larger than population or is negative")
        taken: list[int] = []
        while len(taken) < most and (len(taken) < least or self.pick(_goes_on(least, most)) > 0):
            place = self.pick(len(population))
            while place in taken and len(taken) < least:
                place = (place + 1) % len(population)
            taken += [place] * (place not in taken)
        if least < len(taken) == most:
            self.pick(_goes_on(least, most))  # without it only the last element could be left out of a full set
        return [population[place] for place in taken]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A number of the range; its start is the simplest."""
        options = range(start) if stop is None else range(start, stop, step)
        return options[self.pick(len(options))]

    def randint(self, a: int, b: int) -> int:
        """From a to b, both included."""
        return self.randrange(a, b + 1)

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """In place; the present order is the simplest."""
        x[:] = self.sample(x, len(x))

    def random(self) -> float:
        """From 0 up to 1, in steps of 2⁻⁵³."""
        return self.pick(2**53) * 2.0**-53

    def getrandbits(self, k: int) -> int:
        """A whole number of k bits."""
        return self.pick(1 << k) if k else 0


def _goes_on(least: int, most: int) -> int:
    """The number of options of which one ends a subset, so that random sizes lie about half-way between least and most."""
    return 2 + (most - least) // 2


class Independent(Picked):
    """Independent choices from a random source. `record` are the choices so far."""

    def __init__(self, source: Random) -> None:
        super().__init__()
        self._source, self.record = source, list[int | bool]()

    def pick(self, n: int) -> int:
        """A uniform number. A single option is not recorded."""
        if n == 1:
            return 0
        self.record.append(self._source.randrange(n))
        return int(self.record[-1])

    def subset(self, population: Sequence[T], least: int, most: int) -> list[T]:
        """All sizes equally likely, and all orders of each."""
        if not 0 <= least <= most <= len(population):
            raise ValueError("Sample larger than population or is negative")
        size = self._source.randint(least, most)
        places = self._source.sample(range(len(population)), size)
        for k, place in enumerate(places):
            self.record += [1] * (k >= least) + [place] * (len(population) > 1)
        self.record += [0] * (least < most)
        return [population[place] for place in places]

    def coin(self) -> bool:
        """A fair coin."""
        self.record.append(self._source.random() < 0.5)
        return bool(self.record[-1])


class Rows:
    """Fixed prompt pairs: a draw is one of them."""

    def __init__(self, rows: Sequence[T]) -> None:
        self.rows = rows

    def draw(self, random: Draws) -> Any:
        """A row."""
        return random.choice(self.rows)
