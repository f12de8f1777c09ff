"""From a mapping of fields (a JSONL line, a record of a loader) to a prompt pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import TaskError, suggestion
from .base import PromptPair, Text

FIELDS = ("clean", "corrupt", "answer", "foil", "foils", "choices", "corrupt_answer", "group")
ALIASES = {"clean_prefix": "clean", "patch_prefix": "corrupt", "clean_answer": "answer", "patch_answer": "corrupt_answer"}
IGNORED = ("case",)  # a further field of published files with the alias names
REQUIRED = ("clean", "corrupt", "answer")
ALTERNATIVES = ("foil", "foils", "choices")
SHOWN = 3


def pair_from(record: Any, where: str) -> PromptPair:
    """A prompt pair; `where` ("pairs.jsonl:17") begins every message and becomes the pair's `source`.

    Fields: clean, corrupt, answer; foil, or foils, or choices (all options, with or without the answer); optional
    corrupt_answer and group. Also clean_prefix, patch_prefix, clean_answer, patch_answer, where the last one is the foil unless
    foils are given. Text, or token ids as lists of numbers. Raises `TaskError` for anything missing, unknown or of a wrong type.
    """
    if not isinstance(record, Mapping):
        raise TaskError(f"{where}: a pair is an object with the fields clean, corrupt, answer, foil; got {type(record).__name__}")
    fields = _named(record, where)
    missing = [name for name in REQUIRED if name not in fields]
    if missing:
        raise TaskError(f"{where}: {' and '.join(missing)} missing; a pair needs clean, corrupt and answer")
    clean, corrupt, answer = (_text(fields[name], name, where) for name in REQUIRED)
    follow_up = fields.get("corrupt_answer")
    corrupt_answer = None if follow_up is None else _text(follow_up, "corrupt_answer", where)
    foils = _foils(fields, answer, where)
    if "patch_answer" in record and corrupt_answer is not None and not any(name in fields for name in ALTERNATIVES):
        foils = (corrupt_answer,)
    forms = {isinstance(part, str) for part in (clean, corrupt, answer, *foils, *([] if corrupt_answer is None else [corrupt_answer]))}
    if len(forms) > 1:
        raise TaskError(f"{where}: text and token ids are mixed; write all of a pair as text, or all of it as lists of token ids")
    return PromptPair(clean, corrupt, answer, foils, corrupt_answer, _group(fields.get("group"), where), where)


def _named(record: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """The fields by name, aliases resolved."""
    fields: dict[str, Any] = {}
    for key, value in record.items():
        if key in IGNORED and "clean_prefix" in record:
            continue
        name = ALIASES.get(key, key)
        if name not in FIELDS:
            raise TaskError(f"{where}: unknown field {key!r}; {suggestion(key, (*FIELDS, *ALIASES))}")
        if name in fields:
            raise TaskError(f"{where}: {name!r} appears twice, also as {key!r}; give it once")
        fields[name] = value
    return fields


def _text(value: Any, name: str, where: str) -> Text:
    if isinstance(value, str) and value:
        return value
    numbers = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if numbers and all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in value):
        return tuple(value)
    raise TaskError(f"{where}: {name} must be a non-empty text or list of token ids; got {shown(value)}")


def _foils(fields: Mapping[str, Any], answer: Text, where: str) -> tuple[Text, ...]:
    names = [name for name in ALTERNATIVES if name in fields]
    if len(names) > 1:
        raise TaskError(f"{where}: {' and '.join(names)} exclude each other; give one of foil, foils, choices")
    if not names:
        return ()
    name, value = names[0], fields[names[0]]
    if name == "foil":
        return (_text(value, name, where),)
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise TaskError(f"{where}: {name} must be a list with at least one entry; got {shown(value)}")
    foils = tuple(dict.fromkeys(_text(option, f"each of {name}", where) for option in value))
    if name == "choices":
        foils = tuple(option for option in foils if option != answer)
        if not foils:
            raise TaskError(f"{where}: choices has no option besides the answer; give at least one other")
    return foils


def _group(value: Any, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TaskError(f"{where}: group must be text or a whole number; got {shown(value)}")


def shown(value: Any) -> str:
    """A value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def refuse_degenerate(pairs: Sequence[PromptPair], what: str) -> None:
    """Raise `TaskError` for pairs whose prompts are equal or whose answer is among the foils: nothing can be measured on them."""
    same = [p for p in pairs if p.clean == p.corrupt]
    tied = [p for p in pairs if p.answer in p.foils]
    if same or tied:
        problems = [f"clean equals corrupt in {_places(same)}"] if same else []
        problems += [f"the answer equals a foil in {_places(tied)}"] if tied else []
        raise TaskError(f"{what}: {' and '.join(problems)} of {len(pairs)} pairs; such pairs measure nothing: change or remove them")


def _places(pairs: Sequence[PromptPair]) -> str:
    quoted = ", ".join(str(p.source) for p in pairs[:SHOWN])
    return f"{len(pairs)} ({quoted}{', …' if len(pairs) > SHOWN else ''})"
