"""What the circuits about marked fruits share: words, embeddings, unembeddings and prompts."""

from __future__ import annotations

from collections.abc import Mapping

from transformers import PreTrainedTokenizerFast

from pytest_circuits.tasks import PromptPair, Task

from . import words
from .host import Host

FRUITS = ("apple", "banana", "cherry", "fig", "grape", "lemon", "melon", "pear")
STRENGTH = 16.0  # logits that one unit of an output feature adds


def marked(fruit: str) -> str:
    """The marked form of a word: upper case, a token of its own."""
    return fruit.upper()


def tokenizer() -> PreTrainedTokenizerFast:
    """All fruits, plain and marked, and the sign that ends a prompt."""
    return words.tokenizer([*FRUITS, *map(marked, FRUITS), "="])


def features(*kinds: str) -> list[str]:
    """The stream's features: a constant, marks, `in:` for the fruit of a token, `out:` for logits, and further kinds."""
    return ["one", "mark", "bos", *each("in"), *(name for kind in kinds for name in each(kind)), *each("out")]


def each(kind: str) -> list[str]:
    """One feature a fruit."""
    return [f"{kind}:{fruit}" for fruit in FRUITS]


def furnish(host: Host, vocabulary: Mapping[str, int]) -> None:
    """Embeddings and unembeddings."""
    for token in vocabulary.values():
        host.embed(token, {"one": 1})
    host.embed(words.BOS, {"one": 1, "bos": 1})
    for fruit in FRUITS:
        host.embed(vocabulary[fruit], {"one": 1, f"in:{fruit}": 1})
        host.embed(vocabulary[marked(fruit)], {"one": 1, "mark": 1, f"in:{fruit}": 1})
        host.unembed(vocabulary[fruit], {f"out:{fruit}": STRENGTH})


def fetch(host: Host, layer: int, head: int, kind: str, amount: float = 1.0) -> None:
    """A head that copies the marked fruit to every later position; before the mark it looks at <bos>, which is no fruit."""
    host.head(layer, head, [({"one": 1}, {"mark": 1, "bos": 0.5})], list(zip(each("in"), each(kind), strict=True)), amount)


def exchanged(name: str, answers: Mapping[str, str]) -> Task:
    """Prompts with one marked fruit, which the corrupt prompt exchanges for another at the same place."""
    pairs = []
    for fruit, other, r in words.pairings(FRUITS, 3):
        rest = r.sample([w for w in FRUITS if w not in (fruit, other)], r.choice((2, 3)))
        at = r.randrange(len(rest) + 1)
        clean, corrupt = (" ".join([*rest[:at], marked(w), *rest[at:]]) + " =" for w in (fruit, other))
        pairs.append(PromptPair(clean, corrupt, answers[fruit], (answers[other],)))
    return Task(name, tuple(pairs), "argmax")
