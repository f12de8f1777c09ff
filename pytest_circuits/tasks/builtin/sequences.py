"""Tasks about sequences of numbers: `[START] 5 17 3 [SEP]` → the same numbers in another order, then `[END]`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

Length = Annotated[int, Field(ge=2, le=64)]


class Parameters(generated.Parameters):
    """Parameters of `reversal` and `sorting`."""

    length: Annotated[
        Length | Annotated[list[Length], Field(min_length=1)],
        Field(description="how many numbers a prompt has: a number or a list, each as likely as the others"),
    ] = 7
    largest: Annotated[int, Field(ge=2, le=999, description="numbers are drawn from 1 to this one, with repeats")] = 99
    corruption: Annotated[
        Literal["one", "all"], Field(description="`one`: the corrupt prompt differs in one number; `all`: it is an independent draw")
    ] = "one"


class Sequences(generated.Generated):
    """Base of the sequence tasks; `ordered` gives the right answer.

    All tokens of the answer, including `[END]`, are teacher-forced and scored by argmax: a sequence that does not end is wrong. The
    corrupt prompt has as many numbers and another answer, which is the foil. Clean prompts are distinct; each is a separate
    group. A tokenizer may have one token for each number and mark, or several for some; pairs of different token length are replaced.
    """

    Parameters = Parameters
    scoring: ClassVar[Literal["choices", "argmax"]] = "argmax"

    @staticmethod
    @abstractmethod
    def ordered(numbers: list[int]) -> list[int]:
        """The numbers of the answer."""

    def space(self) -> int:
        """All sequences of each length."""
        return sum(self.parameters.largest**length for length in generated.several(self.parameters.length))

    def draw(self, random: Draws) -> PromptPair | None:
        """A sequence and its corruption; degenerate when both have the same answer."""
        length = random.choice(generated.several(self.parameters.length))
        clean = self._numbers(random, length)
        if self.parameters.corruption == "one":
            corrupt, place = list(clean), random.randrange(length)
            other = random.randint(1, self.parameters.largest - 1)
            corrupt[place] = other + (other >= clean[place])  # any number but the present one
        else:
            corrupt = self._numbers(random, length)
        answer, foil = _answer(self.ordered(clean)), _answer(self.ordered(corrupt))
        return None if answer == foil else PromptPair(_prompt(clean), _prompt(corrupt), answer, (foil,))

    def _numbers(self, random: Draws, length: int) -> list[int]:
        return [random.randint(1, self.parameters.largest) for _ in range(length)]


def _prompt(numbers: list[int]) -> str:
    return " ".join(["[START]", *map(str, numbers), "[SEP]"])


def _answer(numbers: list[int]) -> str:
    """With a leading space, so that the answer begins a new token in any tokenizer."""
    return " " + " ".join([*map(str, numbers), "[END]"])
