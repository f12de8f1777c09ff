"""Multiple choice by copying: a coloured thing and lettered colours; the answer is the letter of the thing's colour."""

from __future__ import annotations

from math import perm
from typing import Annotated, ClassVar

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

COLORS = generated.words("red blue green brown black white gray pink orange purple yellow silver")
THINGS = generated.words("box cup hat pen car bag lamp desk coat plate door chair shirt ball boat house flag book clock key")
LETTERS = "ABCDEFGH"
Options = Annotated[int, Field(ge=2, le=len(LETTERS))]


class Parameters(generated.Parameters):
    """Parameters of `copycolors`."""

    options: Annotated[
        Options | Annotated[list[Options], Field(min_length=1)], Field(description="number of lettered colours: a number or a list")
    ] = 4


class CopyColors(generated.Generated):
    """`The box is blue. What color is the box?`, lettered colours, `Answer:` → ` B`; the foils are the other letters.

    The corrupt prompt swaps the right colour with another option, whose letter becomes its answer (and is the first
    foil). Pairs about the same thing in the same colour form a group.
    """

    name: ClassVar[str] = "copycolors"
    Parameters = Parameters

    def space(self) -> int:
        """Things × ordered choices of colours × places of the right one, over the numbers of options."""
        return sum(len(THINGS) * perm(len(COLORS), k) * k for k in generated.several(self.parameters.options))

    def groups(self) -> int:
        """One for each thing in each colour."""
        return len(THINGS) * len(COLORS)

    def draw(self, random: Draws) -> PromptPair:
        """A thing, its colour and the options; never degenerate."""
        count = random.choice(generated.several(self.parameters.options))
        thing, colors = random.choice(THINGS), random.sample(COLORS, count)
        right, wrong = random.sample(range(count), 2)
        color = colors[right]
        moved = list(colors)
        moved[right], moved[wrong] = moved[wrong], moved[right]
        others = [wrong, *(i for i in range(count) if i not in (right, wrong))]
        return PromptPair(
            clean=_prompt(thing, color, colors),
            corrupt=_prompt(thing, color, moved),
            answer=f" {LETTERS[right]}",
            foils=tuple(f" {LETTERS[i]}" for i in others),
            group=f"{color} {thing}",
        )


def _prompt(thing: str, color: str, options: list[str]) -> str:
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
    return f"The {thing} is {color}. What color is the {thing}?\n{listed}\nAnswer:"
