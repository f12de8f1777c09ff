"""How a grammar makes its choices: from a seed, one by one from elsewhere, or independently and on record.

`Generated.draw` describes a task once; who draws decides what comes of it. `Seeded` gives the pairs of a seed, `Picked` turns every choice
into the number of an option, first options first, so that a search can replay and shrink what was drawn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import MutableSequence, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class Draws(Random):
    """A source of choices. Besides what `Random` has, `coin`."""

    def coin(self) -> bool:
        """One of two, equally likely."""
        return self.random() < 0.5


class Seeded(Draws):
    """The choices of a seed: those of `random.Random`."""


class Picked(Draws):
    """Choices made of `pick`: the number of one of n options, all equally likely where it is random. 0 is the simplest."""

    @abstractmethod
    def pick(self, n: int) -> int:
        """A whole number from 0 to n − 1."""

    @abstractmethod
    def coin(self) -> bool:
        """One of two; False is the simplest."""

    def choice(self, seq: Any) -> Any:
        """One of the sequence; the first is the simplest."""
        return seq[self.pick(len(seq))]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        """As many different ones; the first are the simplest."""
        left = list(population)
        if counts is not None:
            left = [one for one, count in zip(left, counts, strict=True) for _ in range(count)]
        return self.subset(left, k, k)

    def subset(self, population: Sequence[T], least: int, most: int) -> list[T]:
        """From `least` to `most` different ones; the fewest and first are the simplest.

        Each is a number among all of them, so that exchanging two choices exchanges two members, and after the least each is announced
        by a choice other than 0, so that one can be left out: that is what shrinking needs. One that is there already gives way to the next
        where it is needed, and counts for nothing where it is not.
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
            self.pick(_goes_on(least, most))  # says nothing: without it none but the last could be left out of a full set
        return [population[place] for place in taken]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """One of a range; its start is the simplest."""
        options = range(start) if stop is None else range(start, stop, step)
        return options[self.pick(len(options))]

    def randint(self, a: int, b: int) -> int:
        """From a to b, both included."""
        return self.randrange(a, b + 1)

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """In place; the order that was is the simplest."""
        x[:] = self.sample(x, len(x))

    def random(self) -> float:
        """From 0 up to 1, in steps of 2⁻⁵³."""
        return self.pick(2**53) * 2.0**-53

    def getrandbits(self, k: int) -> int:
        """A whole number of k bits."""
        return self.pick(1 << k) if k else 0


def _goes_on(least: int, most: int) -> int:
    """Of how many options one ends a subset, so that a random one lies about half-way between the least and the most."""
    return 2 + (most - least) // 2


class Independent(Picked):
    """Choices independent of each other, drawn from a seed. `made` are those made so far."""

    def __init__(self, source: Random) -> None:
        super().__init__()
        self._source, self.made = source, list[int | bool]()

    def pick(self, n: int) -> int:
        """A uniform number; a single option is no choice."""
        if n == 1:
            return 0
        self.made.append(self._source.randrange(n))
        return int(self.made[-1])

    def subset(self, population: Sequence[T], least: int, most: int) -> list[T]:
        """All sizes equally likely, and all orders of each."""
        if not 0 <= least <= most <= len(population):
            raise ValueError("Sample larger than population or is negative")
        size = self._source.randint(least, most)
        places = self._source.sample(range(len(population)), size)
        for k, place in enumerate(places):
            self.made += [1] * (k >= least) + [place] * (len(population) > 1)
        self.made += [0] * (least < most)
        return [population[place] for place in places]

    def coin(self) -> bool:
        """A fair one."""
        self.made.append(self._source.random() < 0.5)
        return bool(self.made[-1])


class Rows:
    """Prompt pairs that are there already: a draw is one of them."""

    def __init__(self, rows: Sequence[T]) -> None:
        self.rows = rows

    def draw(self, random: Draws) -> Any:
        """One of the rows."""
        return random.choice(self.rows)
