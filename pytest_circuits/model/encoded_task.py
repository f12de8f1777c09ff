"""A task as one tokenizer sees it: token ids, and the answer's position. Imports no torch.

`encode` refuses, or replaces in generated tasks, pairs whose prompts differ in length or whose answers cannot be
distinguished.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ..errors import TaskError
from ..tasks.base import PromptPair, Task, Text
from .tokenization import Ids, Tokenization, joints

DRAWS = 20  # replacement draws per pair of the task
SHOWN = 3  # pairs quoted in a message

REMEDIES = {
    "length": "clean and corrupt prompts must have the same number of tokens; reword them, or use words that are one token each",
    "foil": "the answer must differ from each foil in its first token; move a shared beginning into the prompt, or choose other labels",
    "same": "clean and corrupt prompts must differ in this tokenizer's tokens",
    "seam": "answer and foils must begin at the same token; write them alike, all with or all without a leading space",
    "taken": "a prompt of a task that was extended must be a new one",
}


@dataclass(frozen=True)
class EncodedTask:
    """Token ids of n examples; every field is a tuple with one entry per example, unless noted.

    clean, corrupt: the prompt, then the answer tokens that are teacher-forced: all but the last, or with `stop` all of them.
        Both have the same length. After the corrupt prompt these are the corrupt answer's tokens.
    start: index of the logits that predict the answer's first token; those of the further tokens follow it.
    answer: its ids; foils: a tuple of id tuples.
    groups: the group of each example; examples of one group are not independent.
    stop_ids: (one tuple for the task) tokens that would continue a number; empty when `stop` is None.
    digest: sha256 over all of the above, `scoring`, `stop` and the tokenizer's digest.
    regenerated: how many pairs were replaced because they did not fit. notes: remarks for the report.
    pairs: the prompt pairs in use. kept: their numbers in the task, where pairs that do not fit were left out; else empty.
    """

    name: str
    clean: tuple[Ids, ...]
    corrupt: tuple[Ids, ...]
    start: tuple[int, ...]
    answer: tuple[Ids, ...]
    foils: tuple[tuple[Ids, ...], ...]
    groups: tuple[str, ...]
    scoring: str
    stop: str | None
    stop_ids: Ids
    digest: str
    regenerated: int
    notes: tuple[str, ...]
    pairs: tuple[PromptPair, ...]
    kept: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.clean)

    @property
    def chance(self) -> float:
        """Accuracy without reading the prompt: the better of guessing among answer and foils and always giving the most frequent answer."""
        guess = [1 / (1 + len(set(foils))) if foils and self.scoring == "choices" else 0.0 for foils in self.foils]
        return max(sum(guess), Counter(self.answer).most_common(1)[0][1]) / self.n

    @property
    def prompts(self) -> tuple[str, ...]:
        """A short digest of each clean prompt, without its answer, to find the same prompt again."""
        prompts = (ids[: start + 1] for ids, start in zip(self.clean, self.start, strict=True))
        return tuple(hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:12] for ids in prompts)

    def __len__(self) -> int:
        return self.n


@dataclass(frozen=True)
class _Example:
    clean: Ids
    corrupt: Ids
    start: int
    answer: Ids
    foils: tuple[Ids, ...]
    clean_forced: bool  # the clean answer's tokens follow the corrupt prompt: no corrupt answer has their number of tokens


class _UnfitError(Exception):
    """The pair cannot be used: `kind` is a key of REMEDIES, `what` describes the problem."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind, self.what = kind, what


def encode(task: Task, tokenizer: Any, vocab_size: int, max_length: int | None = None, tokenizer_digest: str = "") -> EncodedTask:
    """The task in this tokenizer's ids.

    Raises `TaskError` for text that the tokenizer does not know, ids outside the model's vocabulary, prompts longer
    than `max_length` tokens, and pairs that do not fit: unequal lengths, or an answer and a foil with equal tokens. A
    task with `more` has such pairs replaced, in at most 20·n draws; a task with `unfit: drop` leaves them out. A task that
    continues another begins with exactly the pairs of the other, replacements included.
    """
    if not task.pairs:
        raise TaskError(f"task {task.name!r} has no prompt pairs")
    encoder = _Encoder(task, tokenizer, vocab_size, max_length)
    slots, replaced = _fitted(task, encoder)
    kept: tuple[int, ...] = ()
    if task.unfit == "drop":
        kept = tuple(i for i, (_, result) in enumerate(slots) if isinstance(result, _Example))
        if not kept:
            raise TaskError(_refusal(task, slots))
        slots = [slots[i] for i in kept]
    pairs = tuple(pair for pair, _ in slots)
    examples = [result for _, result in slots if isinstance(result, _Example)]
    return replace(_assemble(task, pairs, examples, encoder.stop_ids, replaced, tokenizer_digest), kept=kept)


Slot = tuple[PromptPair, _Example | _UnfitError]


def _fitted(task: Task, encoder: _Encoder) -> tuple[list[Slot], int]:
    """Pairs with their encodings, those of the continued task first, and how many pairs were replaced because they did not fit."""
    slots, replaced = ([], 0) if task.base is None else _fitted(task.base, encoder)
    used, start = {pair.clean for pair, _ in slots}, len(slots)
    for pair, result in encoder.all(task.pairs[start:]):
        taken = pair.clean in used  # as a replacement
        slots.append((pair, _UnfitError("taken", "the prompt is in use already") if taken else result))
    bad = [i for i, (_, result) in enumerate(slots) if isinstance(result, _UnfitError)]
    if bad and task.unfit == "refuse":
        replaced += sum(r.kind != "taken" for i in bad if isinstance(r := slots[i][1], _UnfitError))
        _replace(task, encoder, slots, bad)
    return slots, replaced


def _replace(task: Task, encoder: _Encoder, slots: list[Slot], bad: list[int]) -> None:
    """Fill the bad slots from the task's continuation. Raises `TaskError` when there is none, or it is too short."""
    if task.more is None:
        raise TaskError(_refusal(task, [slots[i] for i in bad]))
    reasons = Counter(r.kind for i in bad if isinstance(r := slots[i][1], _UnfitError))
    used = {pair.clean for pair, result in slots if isinstance(result, _Example)}
    open_slots, drawn, last = list(reversed(bad)), 0, slots[bad[0]]
    for slot in encoder.all(islice(task.more(), DRAWS * len(task))):
        drawn += 1
        if isinstance(slot[1], _UnfitError):
            reasons[slot[1].kind] += 1
            last = slot
        elif slot[0].clean not in used:
            used.add(slot[0].clean)
            slots[open_slots.pop()] = slot
        if not open_slots:
            return
    counts = "; ".join(f"{count} × {REMEDIES[kind]}" for kind, count in reasons.most_common())
    raise TaskError(
        f"task {task.name!r} does not fit this tokenizer: {len(open_slots)} of {len(task)} pairs could not be replaced in {drawn} "
        f"further draws ({counts}). For instance {_quote(last)}. Use a smaller n or other parameters of the task"
    )


def _refusal(task: Task, bad: list[Slot]) -> str:
    kinds = list(dict.fromkeys(r.kind for _, r in bad if isinstance(r, _UnfitError)))
    quoted = "; ".join(_quote(slot) for slot in bad[:SHOWN])
    more = f"; and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
    return f"{len(bad)} of {len(task)} pairs of task {task.name!r} cannot be used: {quoted}{more}. {'. '.join(REMEDIES[k] for k in kinds)}"


def _quote(slot: Slot) -> str:
    pair, result = slot
    return f"{pair.source or repr(pair.clean)}: {result.what if isinstance(result, _UnfitError) else 'fits'}"


class _Encoder:
    """Encodes pairs one by one; texts of many pairs go through the tokenizer together."""

    def __init__(self, task: Task, tokenizer: Any, vocab_size: int, max_length: int | None) -> None:
        self.task, self.vocab_size, self.max_length = task, vocab_size, max_length
        self.tokenization: Tokenization | None = None
        if any(_is_text(pair) for pair in task.pairs) or task.stop is not None:
            if tokenizer is None:
                raise TaskError(f"task {task.name!r} needs a tokenizer, but the model has none; give a tokenizer, or token ids in the task")
            sample = next((p.clean for p in task.pairs if isinstance(p.clean, str) and p.clean), "1")
            self.tokenization = Tokenization(tokenizer, sample)
        self.stop_ids = self.tokenization.number_continuations(vocab_size) if task.stop and self.tokenization else ()

    def all(self, pairs: Iterable[PromptPair]) -> Iterator[Slot]:
        """Each pair with its example, or with the reason why it does not fit."""
        stream = iter(pairs)
        while chunk := list(islice(stream, 256)):
            if self.tokenization is not None:
                self.tokenization.prefetch(text for pair in chunk if _is_text(pair) for text in _texts(pair))
            for pair in chunk:
                try:
                    yield pair, self._example(pair)
                except _UnfitError as reason:
                    yield pair, reason

    def _example(self, pair: PromptPair) -> _Example:
        joint, begin = self._joint_ids(pair, pair.clean, pair.answer)
        answer = joint[begin:]
        foils = tuple(self._foil(pair, foil, begin) for foil in pair.foils)
        self._distinguishable(pair, answer, foils)
        forced = len(answer) - (0 if self.task.stop else 1)
        corrupt, clean_forced = self._corrupt(pair, joint, begin, forced)
        example = _Example(joint[: begin + forced], corrupt, begin - 1, answer, foils, clean_forced)
        if example.clean[:begin] == example.corrupt[:begin]:
            raise _UnfitError("same", f"clean and corrupt are the same {begin} tokens")
        self._in_range(pair, example, begin)
        return example

    def _joint_ids(self, pair: PromptPair, prompt: Any, answer: Any) -> tuple[Ids, int]:
        """Ids of prompt and answer, and where the answer begins."""
        if isinstance(prompt, str):
            assert self.tokenization is not None
            for text in (prompt, self.tokenization.joined(prompt, answer)):
                word = self.tokenization.unknown_word(text)
                if word is not None:
                    what = "answer" if text != prompt else "prompt"
                    raise TaskError(f"{_where(self.task, pair)}: the {what} contains {word!r}, which is not in the tokenizer's vocabulary")
            joint, begin = self.tokenization.continuation(prompt, answer)
        else:
            joint, begin = (*prompt, *answer), len(prompt)
        if begin == 0:
            raise TaskError(f"{_where(self.task, pair)}: the answer has no tokens before it: the prompt is empty and there is no bos token")
        if begin == len(joint):
            raise TaskError(f"{_where(self.task, pair)}: the answer or a foil has no tokens")
        return joint, begin

    def _foil(self, pair: PromptPair, foil: Any, begin: int) -> Ids:
        joint, at = self._joint_ids(pair, pair.clean, foil)
        if at != begin:
            raise _UnfitError("seam", f"the answer {pair.answer!r} begins at token {begin}, the foil {foil!r} at token {at}")
        return joint[at:]

    def _distinguishable(self, pair: PromptPair, answer: Ids, foils: tuple[Ids, ...]) -> None:
        """With scoring by choices by the first token, since a tie there would decide nothing; otherwise within the shorter length."""
        for text, foil in zip(pair.foils, foils, strict=True):
            compared = 1 if self.task.scoring == "choices" else min(len(answer), len(foil))
            if answer[:compared] == foil[:compared]:
                tokens = "token" if compared == 1 else f"{compared} tokens"
                what = f"the answer {pair.answer!r} and the foil {text!r} share their first {tokens} {answer[:compared]}"
                raise _UnfitError("foil", what)

    def _corrupt(self, pair: PromptPair, joint: Ids, begin: int, forced: int) -> tuple[Ids, bool]:
        """The corrupt prompt with as many forced tokens: those of the corrupt answer if their number fits, else of the clean answer."""
        corrupt_answer = _corrupt_answer(pair)
        ids, at = self._joint_ids(pair, pair.corrupt, corrupt_answer)
        fits = at == begin and (forced == 0 or len(ids) == len(joint))
        if not fits and corrupt_answer != pair.answer:
            ids, at = self._joint_ids(pair, pair.corrupt, pair.answer)
            ids = ids[:at] + joint[begin:]
        if at != begin:
            raise _UnfitError("length", f"the clean prompt has {begin} tokens, the corrupt one {at}")
        return ids[: begin + forced], not fits and forced > 0

    def _in_range(self, pair: PromptPair, example: _Example, begin: int) -> None:
        highest = max(max(ids) for ids in (example.clean, example.corrupt, example.answer, *example.foils))
        lowest = min(min(ids) for ids in (example.clean, example.corrupt, example.answer, *example.foils))
        if highest >= self.vocab_size or lowest < 0:
            wrong = highest if highest >= self.vocab_size else lowest
            whose = "the tokenizer does not fit this model" if self.tokenization else "the task's token ids do not fit this model"
            raise TaskError(f"{_where(self.task, pair)}: token id {wrong} is outside the model's vocabulary of {self.vocab_size}: {whose}")
        if self.max_length is not None and len(example.clean) > self.max_length:
            raise TaskError(
                f"{_where(self.task, pair)}: {len(example.clean)} tokens ({begin} of the prompt, then forced answer tokens), "
                f"but the model takes at most {self.max_length}; shorten the prompt"
            )


def _is_text(pair: PromptPair) -> bool:
    parts = [pair.clean, pair.corrupt, pair.answer, *pair.foils, *([pair.corrupt_answer] if pair.corrupt_answer is not None else [])]
    kinds = {isinstance(part, str) for part in parts}
    if len(kinds) > 1:
        raise TaskError(f"{pair.source or repr(pair.clean)}: text and token ids are mixed in one pair; write all of it in one form")
    return kinds == {True}


def _texts(pair: PromptPair) -> Iterator[str]:
    """The texts that a pair probably needs from the tokenizer."""
    for prompt, answers in ((pair.clean, (pair.answer, *pair.foils)), (pair.corrupt, (_corrupt_answer(pair),))):
        assert isinstance(prompt, str)
        yield prompt
        yield from (joints(prompt, str(answer))[0] for answer in answers)


def _corrupt_answer(pair: PromptPair) -> Text:
    return pair.corrupt_answer or (pair.foils[0] if pair.foils else pair.answer)


def _where(task: Task, pair: PromptPair) -> str:
    return pair.source or f"task {task.name!r}, prompt {pair.clean!r}"


def _groups(pairs: tuple[PromptPair, ...], examples: list[_Example]) -> tuple[str, ...]:
    """Group names; a pair without a group gets a new one.

    Examples with the same clean prompt always share a group: a copy is not further evidence.
    """
    taken = {pair.group for pair in pairs}
    mark = "#"
    while any(f"{mark}{i}" in taken for i in range(len(pairs))):
        mark += "#"
    first: dict[Ids, str] = {}
    return tuple(
        first.setdefault(example.clean, f"{mark}{i}" if pair.group is None else pair.group)
        for i, (pair, example) in enumerate(zip(pairs, examples, strict=True))
    )


def _assemble(
    task: Task, pairs: tuple[PromptPair, ...], examples: list[_Example], stop_ids: Ids, regenerated: int, tokenizer_digest: str
) -> EncodedTask:
    count = sum(e.clean_forced for e in examples)
    note = (
        f"{count} of {len(examples)} pairs: the corrupt answer has another number of tokens than the answer, so the answer's own tokens "
        "follow the corrupt prompt"
    )
    encoded = EncodedTask(
        name=task.name,
        clean=tuple(e.clean for e in examples),
        corrupt=tuple(e.corrupt for e in examples),
        start=tuple(e.start for e in examples),
        answer=tuple(e.answer for e in examples),
        foils=tuple(e.foils for e in examples),
        groups=_groups(pairs, examples),
        scoring=task.scoring,
        stop=task.stop,
        stop_ids=stop_ids,
        digest="",
        regenerated=regenerated,
        notes=(note,) if count else (),
        pairs=pairs,
    )
    return replace(encoded, digest=_digest(encoded, tokenizer_digest))


def _digest(task: EncodedTask, tokenizer_digest: str) -> str:
    content = [task.clean, task.corrupt, task.start, task.answer, task.foils, task.groups, task.scoring, task.stop, task.stop_ids]
    return hashlib.sha256(json.dumps([*content, tokenizer_digest], separators=(",", ":")).encode()).hexdigest()
