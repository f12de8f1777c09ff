"""Indirect object identification: `When Mary and John went to the store, John gave a drink to` → ` Mary`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

NAMES = generated.words(
    "Mary John Alice Bob Tom Anna Paul Emma Jack Lucy Mark Sarah Luke Kate Adam Rose Dan Jane Sam Ruth Carl Nina Eric Lily "
    "Peter Laura David Julia Simon Clara Henry Grace James Helen Frank Diana"
)
PLACES = generated.words("store park school office station beach garden market museum library")
THINGS = generated.words("drink book ring ball letter key gift phone card flower map ticket")
TEMPLATES = {
    "went": "When {first} and {second} went to the {place}, {subject} gave a {thing} to",
    "met": "Yesterday {first} and {second} met at the {place}, and {subject} handed a {thing} to",
    "left": "After {first} and {second} left the {place}, {subject} sent a {thing} to",
    "worked": "While {first} and {second} were working at the {place}, {subject} passed a {thing} to",
    "long_day": "Then {first} and {second} had a long day at the {place}. In the evening {subject} offered a {thing} to",
}
Template = Literal["went", "met", "left", "worked", "long_day"]


class Parameters(generated.Parameters):
    """Parameters of `ioi`."""

    templates: Annotated[
        Template | Annotated[list[Template], Field(min_length=1)], Field(description="sentences to use: a name or a list")
    ] = Field(default_factory=lambda: list(TEMPLATES))  # type: ignore[arg-type]
    order: Annotated[
        Literal["both", "abba", "baba"], Field(description="which name comes first: the answer (abba), the subject (baba)")
    ] = "both"


class Ioi(generated.Generated):
    """Two names, one of them repeated; the answer is the other one, the foil the repeated one (the subject).

    In the corrupt prompt the second mention is the other name, which makes the foil its answer. Pairs about the same two
    names, in either order and role, form a group.
    """

    name: ClassVar[str] = "ioi"
    Parameters = Parameters

    def space(self) -> int:
        """Templates × ordered pairs of names × orders × places × things."""
        orders = 2 if self.parameters.order == "both" else 1
        templates = len(generated.several(self.parameters.templates))
        return templates * len(NAMES) * (len(NAMES) - 1) * orders * len(PLACES) * len(THINGS)

    def draw(self, random: Draws) -> PromptPair:
        """A template filled in; never degenerate."""
        template = TEMPLATES[random.choice(generated.several(self.parameters.templates))]
        subject, other = random.sample(NAMES, 2)
        abba = self.parameters.order == "abba" or (self.parameters.order == "both" and random.coin())
        first, second = (other, subject) if abba else (subject, other)
        place, thing = random.choice(PLACES), random.choice(THINGS)

        def prompt(who: str) -> str:
            return template.format(first=first, second=second, place=place, thing=thing, subject=who)

        return PromptPair(
            clean=prompt(subject),
            corrupt=prompt(other),
            answer=f" {other}",
            foils=(f" {subject}",),
            group="+".join(sorted((subject, other))),
        )
