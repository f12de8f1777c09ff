"""Counterfactual data of the Mechanistic Interpretability Benchmark (MIB): a prompt with named counterfactual prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import TaskError, suggestion
from ..base import PromptPair
from ..records import shown

SUFFIX = "_counterfactual"


def offers(record: Any, where: str, counterfactual: str | None = None) -> list[PromptPair]:
    """The pair of a record and its counterfactual; an empty list where the record has none of that name (null).

    record: `prompt`; either `choices` (a list of texts, or `{"label": […], "text": […]}`) with `answerKey` (an index from 0, or a
    label), or `label`, the answer itself; and the counterfactuals, of the same form, as `NAME_counterfactual` or inside
    `counterfactuals`. Choices with labels are answered by the label, others by the text. The foils are the other choices, the
    counterfactual's answer first where it is one of them; without choices they are the counterfactual's answer. `counterfactual`
    may be left out where there is only one. Equal prompts form a group. Raises `TaskError` for a record of another form.
    """
    if not isinstance(record, Mapping) or "prompt" not in record:
        raise TaskError(f"{where}: a MIB record is an object with prompt, choices, answerKey and counterfactuals; got {shown(record)}")
    other = _counterfactual(record, where, counterfactual)
    if other is None:
        return []
    clean, answer, options = _prompt(record, where), *_answer(record, where)
    other_where = f"{where}: the counterfactual"
    corrupt, corrupt_answer = _prompt(other, other_where), _answer(other, other_where)[0]
    foils = [option for option in options if option != answer]
    if not options and corrupt_answer != answer:
        foils = [corrupt_answer]
    foils.sort(key=lambda option: option != corrupt_answer)
    return [PromptPair(clean, corrupt, answer, tuple(foils), corrupt_answer, group=clean, source=where)]


def _counterfactual(record: Mapping[str, Any], where: str, wanted: str | None) -> Mapping[str, Any] | None:
    inside = record.get("counterfactuals") or {}
    if not isinstance(inside, Mapping):
        raise TaskError(f"{where}: counterfactuals must be an object from names to prompts; got {shown(inside)}")
    named = {key.removesuffix(SUFFIX): value for key, value in record.items() if key.endswith(SUFFIX)}
    named |= {str(key).removesuffix(SUFFIX): value for key, value in inside.items()}
    if not named:
        raise TaskError(f"{where}: no counterfactual; the record needs NAME{SUFFIX}, or counterfactuals: {{NAME: …}}")
    if wanted is None and len(named) > 1:
        raise TaskError(f"{where}: several counterfactuals; choose one with counterfactual: {' | '.join(sorted(named))}")
    name = next(iter(named)) if wanted is None else wanted.removesuffix(SUFFIX)
    if name not in named:
        raise TaskError(f"{where}: no counterfactual {name!r}; {suggestion(name, named)}")
    prompt = named[name]
    if prompt is not None and not isinstance(prompt, Mapping):
        raise TaskError(f"{where}: the counterfactual {name!r} must be an object with a prompt and an answer; got {shown(prompt)}")
    return prompt


def _prompt(record: Mapping[str, Any], where: str) -> str:
    prompt = record.get("prompt")
    if not isinstance(prompt, str) or not prompt:
        raise TaskError(f"{where}: prompt must be a non-empty text; got {shown(prompt)}")
    return prompt


def _answer(record: Mapping[str, Any], where: str) -> tuple[str, list[str]]:
    """The answer, and all options (none without choices), written as they follow the prompt."""
    space = "" if str(record.get("prompt"))[-1:].isspace() else " "
    if record.get("choices") is None:
        return space + _word(record.get("label"), "label", where), []
    options, labelled = _options(record["choices"], where)
    key, texts = record.get("answerKey"), [space + option.strip() for option in options]
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(options):
        return texts[key], texts
    if labelled and isinstance(key, str) and key in options:
        return texts[options.index(key)], texts
    raise TaskError(
        f"{where}: answerKey must be an index from 0 to {len(options) - 1}{' or a label' if labelled else ''}; got {shown(key)}"
    )


def _options(choices: Any, where: str) -> tuple[list[str], bool]:
    """The options, and whether they are labels."""
    labelled = isinstance(choices, Mapping)
    values = choices.get("label") if isinstance(choices, Mapping) else choices
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) < 2:
        raise TaskError(f'{where}: choices must be a list of at least two texts, or {{"label": […], "text": […]}}; got {shown(choices)}')
    options = [_word(value, "each choice", where) for value in values]
    if len(set(options)) < len(options):
        raise TaskError(f"{where}: two choices are the same ({', '.join(options)})")
    return options, labelled


def _word(value: Any, what: str, where: str) -> str:
    if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
        return str(value).strip()
    raise TaskError(f"{where}: {what} must be a non-empty text or a number; got {shown(value)}")
