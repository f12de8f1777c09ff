"""Prompts from a template: a sentence with slots, and the words that fill them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import perm, prod
from string import Formatter
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from ...errors import suggestion
from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

Word = Annotated[str, Field(min_length=1)]
Words = Annotated[list[Word], Field(min_length=1)]
Sentences = Annotated[str, Field(min_length=1)] | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class Parameters(generated.Parameters):
    """Parameters of `template`."""

    template: Annotated[Sentences, Field(description="the clean prompt with slots in braces, such as {A}; or a list of such sentences")]
    slots: Annotated[
        dict[str, Words],
        Field(min_length=1, description="the words for each slot; slots with the same list of words take different words of it"),
    ]
    answer: Annotated[Word, Field(description="the answer, with slots; a leading space is part of it")]
    foil: Annotated[Word | Annotated[list[Word], Field(min_length=1)], Field(description="the wrong answer, with slots, or a list of them")]
    corrupt: Annotated[Sentences, Field(description="the corrupt prompt, with slots; of several templates a list of as many")]

    facts: Annotated[
        dict[str, dict[str, Word]],
        Field(description="facts about words, such as capital: {France: Paris}; {A.capital} is then the capital of the word in {A}"),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Parameters:
        clean, corrupt = generated.listed(self.template), generated.listed(self.corrupt)
        if len(corrupt) != len(clean):
            raise ValueError(f"{len(clean)} templates need as many corrupt sentences, got {len(corrupt)}")
        used: set[str] = set()
        for what, texts in (("template", clean), ("corrupt", corrupt), ("answer", [self.answer]), ("foil", generated.listed(self.foil))):
            for text in texts:
                used |= {slot for slot, _ in _checked(text, what, self.slots, self.facts)}
        idle = [name for name in self.slots if name not in used]
        if idle:
            raise ValueError(f"slot {idle[0]!r} is not used")
        for text in clean:
            if not _fields(text):
                raise ValueError(f"the template {text!r} has no slot, so it is a single prompt: write slots in braces, such as {{A}}")
        for words, names in _lists(self.slots):
            twice = next((word for word, count in Counter(words).items() if count > 1), None)
            if twice is not None:
                raise ValueError(f"slot {names[0]!r} has the word {twice!r} twice")
            if len(names) > len(words):
                raise ValueError(f"slots {', '.join(names)} share a list of {len(words)} words and must take different ones: add words")
        return self


def _fields(text: str) -> list[tuple[str, str]]:
    """The slots of a text, each with the fact about its word, or an empty text."""
    return [(name.partition(".")[0], name.partition(".")[2]) for _, name, _, _ in Formatter().parse(text) if name is not None]


def _checked(text: str, what: str, slots: Mapping[str, Sequence[str]], facts: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """The slots of a text. Raises `ValueError` for braces that are not a slot, and for facts that some words do not have."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError as problem:
        raise ValueError(f"{what} {text!r}: {problem}; write braces that are not a slot twice, {{{{ and }}}}") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{what} {text!r}: a slot is a name in braces, or a name and a fact, such as {{A.capital}}")
    for slot, fact in _fields(text):
        if slot not in slots:
            raise ValueError(f"{what} {text!r} has the slot {slot!r}, which has no words; {suggestion(slot, slots)}")
        if fact and fact not in facts:
            raise ValueError(f"{what} {text!r} uses the unknown fact {fact!r}; {suggestion(fact, facts)}")
        missing = next((word for word in slots[slot] if fact and word not in facts[fact]), None)
        if missing is not None:
            raise ValueError(f"{what} {text!r}: the fact {fact!r} is missing for {missing!r} of slot {slot!r}")
    return _fields(text)


def _filled(text: str, words: Mapping[str, str], facts: Mapping[str, Mapping[str, str]]) -> str:
    """The text with its slots filled."""
    parts = []
    for before, name, _, _ in Formatter().parse(text):
        parts.append(before)
        if name is not None:
            slot, _, fact = name.partition(".")
            parts.append(facts[fact][words[slot]] if fact else words[slot])
    return "".join(parts)


def _lists(slots: Mapping[str, Sequence[str]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Each distinct list of words, with the slots that it fills."""
    slots_of: dict[tuple[str, ...], list[str]] = {}
    for name, words in slots.items():
        slots_of.setdefault(tuple(words), []).append(name)
    return list(slots_of.items())


class Template(generated.Generated):
    """Prompts from your own sentence, whose slots are filled with words; all fillings are equally likely.

    Slots with the same list of words are filled with different words. Answer, foil and corrupt prompt are texts with the same slots, such
    as ` {A}`, or with a fact about a word, ` {A.capital}`. Pairs with the same answer and foils form a group.
    """

    name: ClassVar[str] = "template"
    Parameters = Parameters

    def space(self) -> int:
        """Fillings of the slots of each template."""
        lists = _lists(self.parameters.slots)
        used = [{slot for slot, _ in _fields(text)} for text in generated.listed(self.parameters.template)]
        return sum(prod(perm(len(words), len(slots.intersection(names))) for words, names in lists) for slots in used)

    def draw(self, random: Draws) -> PromptPair | None:
        """A template with its slots filled; degenerate when clean and corrupt, or answer and a foil, come out the same."""
        p = self.parameters
        clean, corrupt = random.choice(list(zip(generated.listed(p.template), generated.listed(p.corrupt), strict=True)))
        filled: dict[str, str] = {}
        for words, names in _lists(p.slots):
            filled |= zip(names, random.sample(words, len(names)), strict=True)
        texts = (clean, corrupt, p.answer, *generated.listed(p.foil))
        clean_text, corrupt_text, answer, *foils = (_filled(text, filled, p.facts) for text in texts)
        if clean_text == corrupt_text or answer in foils:
            return None
        wrong = tuple(dict.fromkeys(foils))
        return PromptPair(clean=clean_text, corrupt=corrupt_text, answer=answer, foils=wrong, group="+".join(sorted((answer, *wrong))))
