"""Token ids of prompts and answers, with any Hugging Face tokenizer, and where an answer begins after its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import TaskError

Ids = tuple[int, ...]


class Tokenization:
    """A tokenizer with a cache. Texts are encoded without special tokens; `front` are the special tokens before a text."""

    def __init__(self, tokenizer: Any, sample: str) -> None:
        self.tokenizer = tokenizer
        self._known: dict[str, Ids] = {}
        self._unknown = _unknown_id(tokenizer)
        self.front = self._front(sample)

    def _call(self, texts: Sequence[str], special: bool = False) -> list[Ids]:
        try:
            encoded = self.tokenizer(list(texts), add_special_tokens=special, return_attention_mask=False, verbose=False)["input_ids"]
        except Exception as problem:  # tokenizers raise plain Exception, e.g. for a word when there is no unknown token
            raise TaskError(f"the tokenizer cannot encode {texts[0]!r}: {problem}") from problem
        return [tuple(ids) for ids in encoded]

    def _front(self, sample: str) -> Ids:
        """The special tokens before a text (bos), without those after it (eos)."""
        (full,), (plain,) = self._call([sample], special=True), self._call([sample])
        for at in range(len(full) - len(plain) + 1):
            if full[at : at + len(plain)] == plain:
                return full[:at]
        raise TaskError(f"the tokenizer encodes {sample!r} differently when it adds special tokens, so its bos token cannot be identified")

    def prefetch(self, texts: Iterable[str]) -> None:
        """Encode many texts in one call."""
        new = [t for t in dict.fromkeys(texts) if t not in self._known]
        if not new:
            return
        try:
            self._known.update(zip(new, self._call(new), strict=True))
        except TaskError:
            return  # one of them cannot be encoded; the error comes when it is used

    def ids(self, text: str) -> Ids:
        """Token ids of a text, without special tokens."""
        if text not in self._known:
            (self._known[text],) = self._call([text])
        return self._known[text]

    def has_unknown(self, ids: Ids) -> bool:
        """Whether some of the text is not in the vocabulary."""
        return self._unknown is not None and self._unknown in ids

    def unknown_word(self, text: str) -> str | None:
        """The first word of a text that is not in the vocabulary, or the whole text when no single word is; None when all are known."""
        if not self.has_unknown(self.ids(text)):
            return None
        if self.tokenizer.convert_ids_to_tokens(self._unknown) in text:
            return None  # the text contains it on purpose: GPT-2's end-of-text token is its unknown token
        return next((word for word in text.split() if self.has_unknown(self.ids(word))), text)

    def joined(self, prompt: str, answer: str) -> str:
        """Prompt and answer as one text, with a space in between where their tokens would otherwise merge."""
        first, *others = joints(prompt, answer)
        if not others:
            return first
        try:
            ids, alone = self.ids(first), self.ids(prompt)
        except TaskError:
            return others[0]
        survives = ids[: len(alone)] == alone and not self.has_unknown(ids[len(alone) :])
        return first if survives else others[0]

    def continuation(self, prompt: str, answer: str) -> tuple[Ids, int]:
        """Ids of prompt and answer tokenized together, and the index of the answer's first token.

        That is where the ids differ from those of the prompt alone: a trailing space of the prompt may join the answer's token.
        """
        text = self.joined(prompt, answer)
        alone, together = self.ids(prompt), self.ids(text)
        at = 0
        while at < min(len(alone), len(together)) and alone[at] == together[at]:
            at += 1
        if at == len(together):
            raise TaskError(f"the answer {answer!r} has no tokens after the prompt {prompt!r}: the tokenizer drops it")
        return self.front + together, len(self.front) + at

    def number_continuations(self, vocab_size: int) -> Ids:
        """Ids of vocabulary tokens that start with a digit and no space: they would continue a number."""
        vocabulary: dict[str, int] = self.tokenizer.get_vocab()
        return tuple(sorted(i for token, i in vocabulary.items() if i < vocab_size and _starts_with_digit(token)))


def _unknown_id(tokenizer: Any) -> int | None:
    """The id of unknown words, even where only the tokenizer's inner model declares it."""
    if tokenizer.unk_token_id is not None:
        return int(tokenizer.unk_token_id)
    inner = getattr(getattr(tokenizer, "backend_tokenizer", None), "model", None)
    word = getattr(inner, "unk_token", None)
    return tokenizer.get_vocab().get(word) if word else None


def joints(prompt: str, answer: str) -> list[str]:
    """The ways to write an answer after a prompt, best first; whitespace between them is the author's choice."""
    direct, spaced = prompt + answer, f"{prompt} {answer}"
    if not prompt or not answer or prompt[-1].isspace() or answer[0].isspace():
        return [direct]
    return [spaced] if prompt[-1].isalnum() and answer[0].isalnum() else [direct, spaced]


def _starts_with_digit(token: str) -> bool:
    """By the token's raw form, where a leading space, which starts a new number, shows as a marker (Ġ, ▁)."""
    raw = token.removeprefix("##")
    return "0" <= raw[:1] <= "9" or (len(raw) == 6 and raw.startswith("<0x3") and "0" <= raw[4] <= "9")
