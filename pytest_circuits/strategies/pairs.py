"""Strategies for prompt pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ..tasks.base import PromptPair, Task
from ..tasks.grammar.spaces import space_of
from .choices import strategy


def prompt_pairs(task: str | Path | Task | Iterable[PromptPair | Mapping[str, Any]], **parameters: Any) -> st.SearchStrategy[PromptPair]:
    """Prompt pairs of a task.

    `task` is anything that `load_task` opens (a built-in task by name, a file, "pkg.mod:function"), a `Task`, or prompt pairs; `parameters`
    are the task's. If a built-in task has a grammar, any pair of the grammar can be drawn, whatever its seed; shrinks towards the first
    template and words, the smallest numbers and the shortest prompts. From any other task a row is drawn; shrinks towards the first row.
    Raises `OptionError` and `TaskError` as `load_task` does.
    """
    if not isinstance(task, (str, Path, Task)):
        from ..tasks.load import task_from

        task = task_from(task, "the argument of prompt_pairs")
    return strategy(space_of(task, parameters).draw)


def template_pairs(
    template: str | Sequence[str],
    slots: Mapping[str, Sequence[str]],
    *,
    answer: str,
    foil: str | Sequence[str],
    corrupt: str | Sequence[str],
    facts: Mapping[str, Mapping[str, str]] | None = None,
) -> st.SearchStrategy[PromptPair]:
    """Prompt pairs of a sentence with slots: `template_pairs("When {A} and {B} met, {B} gave it to", {"A": …}, answer=" {A}", …)`.

    Slots with the same words are filled with different words. `corrupt`, `answer` and `foil` are texts with the same slots; several
    templates need as many corrupt texts. `facts` maps words to other texts: `{A.capital}` is the entry of `facts["capital"]` for the word
    in A. The same as the built-in task `template`. Shrinks towards the first template and the first words. Raises `OptionError` for a slot
    without words, a list that is too short, or braces that are not a slot.
    """
    listed = {name: list(words) for name, words in slots.items()}
    texts = [text if isinstance(text, str) else list(text) for text in (template, foil, corrupt)]
    known_facts = {name: dict(entries) for name, entries in (facts or {}).items()}
    return prompt_pairs("template", template=texts[0], slots=listed, answer=answer, foil=texts[1], corrupt=texts[2], facts=known_facts)
