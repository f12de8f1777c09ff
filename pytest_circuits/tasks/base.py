"""Tasks: prompt pairs, how an answer is scored, and where further pairs come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Literal

Text = str | tuple[int, ...]


@dataclass(frozen=True)
class PromptPair:
    """A clean and a corrupt prompt of equal token length, the clean prompt's answer, and its foils.

    Prompts and answers are text, or token ids as tuples of int (all of one pair in the same form). `answer`
    may have several tokens. `corrupt_answer` (default: the first foil, else the answer) follows the corrupt
    prompt when several answer tokens are teacher-forced. Pairs of one `group` (a template, an entity) are not independent:
    splits and intervals go by group; None puts the pair into a group by itself. `source` is the place the pair was
    read from, for messages ("pairs.jsonl:17").
    """

    clean: Text
    corrupt: Text
    answer: Text
    foils: tuple[Text, ...] = ()
    corrupt_answer: Text | None = None
    group: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Task:
    """A named list of prompt pairs. Iteration yields `PromptPair`s.

    scoring: `choices`: correct when the answer's logit is above every foil's; `argmax`: when every answer token is
        the most likely one of the whole vocabulary, teacher-forced.
    stop: None, or `digits`: the answer is a number and counts only if no further digit would follow it
        (108 is not answered by the start of 1083).
    more: for generated tasks, a deterministic continuation of `pairs`, which replaces pairs that a tokenizer makes
        degenerate (unequal lengths, equal first answer tokens). None: such pairs are refused.
    """

    name: str
    pairs: tuple[PromptPair, ...]
    scoring: Literal["choices", "argmax"] = "choices"
    stop: Literal["digits"] | None = None
    more: Callable[[], Iterator[PromptPair]] | None = field(default=None, compare=False, repr=False)
    provenance: dict[str, Any] = field(default_factory=dict)
    dropped: int = 0  # degenerate draws that the generator discarded
    most_groups: int | None = field(default=None, compare=False)  # how many groups the parameters allow; None: unknown
    base: Task | None = field(default=None, repr=False)  # the task that this one continues; its pairs come first
    unfit: Literal["refuse", "drop"] = "refuse"  # how degenerate pairs are handled where `more` is None

    def __iter__(self) -> Iterator[PromptPair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"Task({self.name!r}, {len(self)} pairs, scoring={self.scoring!r})"

    def take(self, n: int) -> Task:
        """The first n pairs as a task of the same kind."""
        return Task(self.name, tuple(islice(self.pairs, n)), self.scoring, self.stop, self.more, self.provenance, self.dropped,
                    self.most_groups)  # fmt: skip

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything a measurement depends on: all pairs, the scoring, and where replacements come from."""
        pairs = [[p.clean, p.corrupt, p.answer, p.foils, p.corrupt_answer, p.group] for p in self.pairs]
        content: list[Any] = [pairs, self.scoring, self.stop, self.provenance if self.more else None]
        if self.base is not None:  # the replacements that a tokenizer needs depend on where the base ends
            content.append(self.base.fingerprint)
        if self.unfit != "refuse":
            content.append(self.unfit)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
