"""Subject-verb agreement: `Today the boys near the tree` → ` are`, with nouns in between that may disagree."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

Noun = tuple[str, str]


def _nouns(words: str) -> list[Noun]:
    return [(word, f"{word}s") for word in words.split()]


SUBJECTS = _nouns(
    "boy girl athlete farmer teacher doctor lawyer singer pilot actor writer student officer manager driver player artist soldier "
    "worker parent friend brother sister guard nurse judge king queen scientist engineer reporter author customer neighbor dancer "
    "visitor leader member guest"
)
THINGS = _nouns("tree bike table house wall chair bridge truck window door car lake gate tower boat")
PREPOSITIONS = generated.words("near behind by beside under above")
CLAUSE_VERBS = generated.words("helped liked knew saw")  # past tense: the verb inside the clause must not betray a number
LEADS = {
    "present": ("Today", "Now", "At the moment", "These days"),
    "past": ("Yesterday", "Last week", "Last year", "Back then"),
}
VERBS = {"present": ("is", "are"), "past": ("was", "were")}
Form = Literal["simple", "nounpp", "rc", "within_rc"]


class Parameters(generated.Parameters):
    """Parameters of `sva`."""

    form: Annotated[
        Form | Annotated[list[Form], Field(min_length=1)],
        Field(description="forms of sentences: a name or a list"),
    ] = Field(default_factory=lambda: list(get_args(Form)))


class Sva(generated.Generated):
    """The verb's number follows its subject: is/are or was/were, by the tense of the sentence.

    Forms: `simple` (Today the boy), `nounpp` (Today the boy near the trees), `rc` (Today the boy that the pilots helped; the verb
    belongs to the boy), `within_rc` (Today the boy that the pilots; the verb belongs to the pilots). The corrupt prompt has
    the subject in the other number, the foil is the verb in the other number. Pairs with the same subject noun form a group.
    """

    name: ClassVar[str] = "sva"
    Parameters = Parameters

    def space(self) -> int:
        """The prompts of all forms."""
        subjects, people = 2 * len(SUBJECTS), 2 * (len(SUBJECTS) - 1)
        tails = {
            "simple": 1,
            "nounpp": len(PREPOSITIONS) * 2 * len(THINGS),
            "rc": people * len(CLAUSE_VERBS),
            "within_rc": people,
        }
        return sum(map(len, LEADS.values())) * subjects * sum(tails[form] for form in generated.several(self.parameters.form))

    def groups(self) -> int:
        """One for each subject noun."""
        return len(SUBJECTS)

    def draw(self, random: Draws) -> PromptPair:
        """A sentence of one of the forms; never degenerate."""
        form = random.choice(generated.several(self.parameters.form))
        tense = random.choice(("present", "past"))
        lead = random.choice(LEADS[tense])
        subject, other = random.sample(SUBJECTS, 2)
        number, other_number = random.randrange(2), random.randrange(2)
        person = other[other_number]
        thing = random.choice(THINGS)[random.randrange(2)]
        preposition, verb = random.choice(PREPOSITIONS), random.choice(CLAUSE_VERBS)

        def prompt(noun: str) -> str:
            return {
                "simple": f"{lead} the {noun}",
                "nounpp": f"{lead} the {noun} {preposition} the {thing}",
                "rc": f"{lead} the {noun} that the {person} {verb}",
                "within_rc": f"{lead} the {person} that the {noun}",
            }[form]

        return PromptPair(
            clean=prompt(subject[number]),
            corrupt=prompt(subject[1 - number]),
            answer=f" {VERBS[tense][number]}",
            foils=(f" {VERBS[tense][1 - number]}",),
            group=subject[0],
        )
