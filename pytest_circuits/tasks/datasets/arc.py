"""AI2 ARC: science questions with lettered choices; the answer is a letter. From a local file or the Hugging Face `datasets` cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ...errors import TaskError
from ..base import PromptPair, Task
from ..grammar import generated
from ..records import shown
from .published import assembled

LETTERS = "ABCDEFGHIJ"
DATASET = "allenai/ai2_arc"


def offers(record: Any, where: str, seed: int = 0) -> list[PromptPair]:
    """One pair for each wrong choice whose text can be swapped with the answer's, in an order drawn from the seed.

    record: `{"question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}` as AI2 publishes it, or
    `{"question", "choices": {"text": [..], "label": [..]}, "answerKey"}` as the hub does. Choices are lettered by position,
    whatever their labels (A–E, 1–4). The corrupt prompt has the answer's text at another letter, which is its answer and the
    first foil; the other foils are the other letters. Questions with the same text form a group. Choices with the answer's
    text are skipped, so the list may be empty. Raises `TaskError` for a record of another form.
    """
    stem, texts, right = _parts(record, where)
    wrong = [i for i, text in enumerate(texts) if text != texts[right]]
    Random(f"arc {seed} {stem} {texts}").shuffle(wrong)
    return [_pair(stem, texts, right, other, where) for other in wrong]


def _pair(stem: str, texts: list[str], right: int, other: int, where: str) -> PromptPair:
    moved = list(texts)
    moved[right], moved[other] = texts[other], texts[right]
    foils = [other, *(i for i in range(len(texts)) if i not in (right, other))]
    return PromptPair(
        clean=_prompt(stem, texts),
        corrupt=_prompt(stem, moved),
        answer=f" {LETTERS[right]}",
        foils=tuple(f" {LETTERS[i]}" for i in foils),
        group=stem,
        source=where,
    )


def _prompt(stem: str, texts: Sequence[str]) -> str:
    listed = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, texts, strict=False))
    return f"Question: {stem}\n{listed}\nAnswer:"


def _parts(record: Any, where: str) -> tuple[str, list[str], int]:
    """Question, texts of the choices, index of the right one."""
    if not isinstance(record, Mapping) or "question" not in record:
        raise TaskError(f"{where}: an ARC item is an object with question, choices and answerKey; got {shown(record)}")
    question = record["question"]
    inside = question if isinstance(question, Mapping) else {"stem": question, "choices": record.get("choices")}
    stem, (texts, labels) = inside.get("stem"), _choices(inside.get("choices"), where)
    if not isinstance(stem, str) or not stem.strip():
        raise TaskError(f"{where}: the question must be a non-empty text; got {shown(stem)}")
    if not 2 <= len(texts) <= len(LETTERS):
        raise TaskError(f"{where}: {len(texts)} choices; a question needs 2 to {len(LETTERS)}")
    if len(set(labels)) < len(labels):
        raise TaskError(f"{where}: two choices have the same label ({', '.join(labels)}), so answerKey is ambiguous")
    key = str(record.get("answerKey", ""))
    if key not in labels:
        raise TaskError(f"{where}: answerKey is {key!r}, which is not a label of the choices ({', '.join(labels)})")
    return stem.strip(), texts, labels.index(key)


def _choices(choices: Any, where: str) -> tuple[list[str], list[str]]:
    """Texts and labels of the choices, from a list of objects or an object of lists."""
    if isinstance(choices, Mapping) and {"text", "label"} <= set(choices):
        texts, labels = list(choices["text"]), list(choices["label"])
    elif isinstance(choices, Sequence) and all(isinstance(choice, Mapping) and {"text", "label"} <= set(choice) for choice in choices):
        texts, labels = [choice["text"] for choice in choices], [choice["label"] for choice in choices]
    else:
        raise TaskError(f'{where}: choices must be [{{"text", "label"}}, …] or {{"text": […], "label": […]}}; got {shown(choices)}')
    if len(texts) != len(labels) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise TaskError(f"{where}: each choice needs a label and a non-empty text; got {shown(choices)}")
    return [text.strip() for text in texts], [str(label) for label in labels]


class Parameters(generated.Parameters):
    """Parameters of `arc_easy` and `arc_challenge`."""

    split: Annotated[Literal["train", "validation", "test"], Field(description="which part of the data")] = "test"


class ArcEasy:
    """ARC Easy: a science question with lettered choices, `Answer:` → ` B`; read through the optional package `datasets`.

    The seed chooses the questions and the letter that the answer moves to in the corrupt prompt, where it is swapped with
    another choice. Numbered choices are lettered; questions with three or five choices are used as they are. Pairs whose prompts
    have different token lengths are replaced. A local file needs no package: `{file: ARC-Easy-Test.jsonl, format: arc}`.
    """

    name: ClassVar[str] = "arc_easy"
    config: ClassVar[str] = "ARC-Easy"
    Parameters = Parameters

    @classmethod
    def make(cls, parameters: Any) -> Task:
        """The task. Raises `TaskError` when the package or the data are missing, or there are fewer than n usable questions."""
        rows = cls._rows(parameters.split)
        what = f"{DATASET} {cls.config} {parameters.split}"
        records = [offers(row, f"{what}[{i}]", parameters.seed) for i, row in enumerate(rows)]
        digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
        Random(f"{cls.name} {parameters.split} {parameters.seed}").shuffle(records)
        provenance = {"builtin": cls.name, "data": digest, **parameters.model_dump(mode="json")}
        return assembled(cls.name, what, records, parameters.n, "choices", None, provenance)

    @classmethod
    def _rows(cls, split: str) -> list[dict[str, Any]]:
        remedy = f"a local file needs no package: {{file: {cls.config}-Test.jsonl, format: arc}}"
        try:
            load_dataset = import_module("datasets").load_dataset  # optional, and slow to import
        except ImportError as problem:
            why = f"task {cls.name!r} reads {DATASET} through the package `datasets`, which cannot be imported ({problem})"
            raise TaskError(f"{why}; pip install datasets, or {remedy}") from None
        try:
            return [dict(row) for row in load_dataset(DATASET, cls.config, split=split)]
        except Exception as problem:  # the package has no common base class
            what = f"task {cls.name!r}: {DATASET} is not in the cache of `datasets` and cannot be fetched"
            raise TaskError(f"{what} ({type(problem).__name__}: {problem}); {remedy}") from None


class ArcChallenge(ArcEasy):
    """ARC Challenge: the harder questions of ARC, otherwise as `arc_easy`."""

    name: ClassVar[str] = "arc_challenge"
    config: ClassVar[str] = "ARC-Challenge"
