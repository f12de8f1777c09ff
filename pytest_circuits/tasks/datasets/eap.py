"""Pairs as the EAP and EAP-IG repositories publish them: columns clean and corrupted, and answers as words or as one tokenizer's ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import TaskError
from ..base import PromptPair

WORDS = (("answer", "corrupted_answer"), ("clean_answer", "corrupted_answer"), ("country", "corrupted_country"), ("correct", "incorrect"))
NUMBERS = (("correct_idx", "incorrect_idx"), ("clean_answer_idx", "corrupted_answer_idx"), ("country_idx", "corrupted_country_idx"))
SEVERAL = {"answers": "several answers", "answers_idx": "several answers", "plural": "no answer, only a class of answers"}

Decode = Callable[[int, str], str]


def offers(record: Any, where: str, decode: Decode | None = None) -> list[PromptPair]:
    """The pair of a row: clean, corrupted, and the two answers as words or else as token ids.

    The corrupted prompt's answer is the foil. `decode(id, where)` gives an id's text. Equal prompts form a group. Raises
    `TaskError` for rows of another form, for rows with several right tokens, and for ids without a tokenizer.
    """
    if not isinstance(record, Mapping):
        raise TaskError(f"{where}: a row is an object with clean, corrupted and its answers; got {type(record).__name__}")
    clean, corrupt = (_text(record.get(name), name, where) for name in ("clean", "corrupted"))
    answer, foil = _answers(record, clean, where, decode)
    return [PromptPair(clean, corrupt, answer, (foil,), foil, group=clean, source=where)]


def _answers(record: Mapping[str, Any], clean: str, where: str, decode: Decode | None) -> tuple[str, str]:
    for right, wrong in WORDS:
        if right in record and wrong in record:
            return _following(record[right], right, clean, where), _following(record[wrong], wrong, clean, where)
    for right, wrong in NUMBERS:
        if right in record and wrong in record:
            if decode is None:
                why = f"{right} and {wrong} are ids of one tokenizer's tokens"
                raise TaskError(f"{where}: {why}; name it: tokenizer: openai-community/gpt2, or its directory")
            return decode(_number(record[right], right, where), where), decode(_number(record[wrong], wrong, where), where)
    several = next((problem for name, problem in SEVERAL.items() if name in record), None)
    if several is None and "correct_idx" in record:
        several = "correct_idx alone, which stands for all answers above it"
    if several is not None:
        raise TaskError(f"{where}: the row has {several}; a pair needs one answer and one foil: give them as correct and incorrect")
    known = ", ".join(" with ".join(names) for names in (*WORDS, *NUMBERS))
    raise TaskError(f"{where}: no answers found; a row needs {known}")


def _text(value: Any, name: str, where: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise TaskError(f"{where}: {name} must be a non-empty text; got {value!r}")


def _following(value: Any, name: str, prompt: str, where: str) -> str:
    """An answer as it is written after its prompt."""
    text = _text(value, name, where)
    return text if prompt[-1].isspace() or text[0].isspace() else f" {text}"


def _number(value: Any, name: str, where: str) -> int:
    try:
        number = float(value)  # tables write 5335.0 where a column has gaps
        if number == int(number) >= 0:
            return int(number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TaskError(f"{where}: {name} must be a token id, a whole number; got {value!r}")


def decoder(name: str, folder: Path) -> Decode:
    """Texts of a tokenizer's ids. `name` is a directory, relative to `folder` or to the working directory, or a hub id.

    The returned function raises `TaskError` for an id whose text is not encoded as that id.
    """
    from transformers import AutoTokenizer  # only where a file holds ids

    local = folder / Path(name).expanduser()
    auto: Any = AutoTokenizer
    try:
        tokenizer = auto.from_pretrained(str(local) if local.is_dir() else name)
    except Exception as problem:  # transformers raises OSError, ValueError, KeyError and its own
        raise TaskError(f"tokenizer: {name} cannot be opened, neither in {folder} nor as a hub id ({problem})") from None

    @cache
    def text_of(number: int) -> str | None:
        if number >= len(tokenizer):
            return None
        text = str(tokenizer.decode([number]))
        return text if tokenizer(text, add_special_tokens=False)["input_ids"] == [number] else None

    def decode(number: int, where: str) -> str:
        text = text_of(number)
        if not text:
            raise TaskError(f"{where}: token id {number} of the tokenizer {name} has no text that is encoded as this token")
        return text

    return decode
