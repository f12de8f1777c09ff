"""Spaces that prompt pairs are drawn from: the grammar of a built-in task, or the rows of fixed data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...core.sources import TaskSource
from ...errors import OptionError
from .. import TASKS
from ..base import PromptPair, Task
from ..load import load_task, validated_parameters
from .draws import Draws, Rows
from .generated import Generated


@dataclass(frozen=True)
class Space:
    """Prompt pairs that can be drawn. `draw` returns one, or None for degenerate choices; `scoring` and `stop` are the task's."""

    name: str
    draw: Callable[[Draws], PromptPair | None]
    scoring: Literal["choices", "argmax"] = "choices"
    stop: Literal["digits"] | None = None


def grammar(name: str, parameters: Mapping[str, Any]) -> Space | None:
    """The grammar of a built-in task with these parameters; None where its prompts are fixed data. `n` and `seed` have no effect.

    Raises `OptionError` for an unknown parameter or a value that is not allowed.
    """
    kind = TASKS.get(name)
    if not (isinstance(kind, type) and issubclass(kind, Generated)):
        return None
    task = kind(validated_parameters(name, parameters))
    return Space(name, task.draw, kind.scoring, kind.stop)


def rows(task: Task) -> Space:
    """The pairs of a task, all equally likely."""
    return Space(task.name, Rows(task.pairs).draw, task.scoring, task.stop)


def space_of(target: Any, parameters: Mapping[str, Any]) -> Space:
    """The space of a `Task`, or of anything that `load_task` opens. Raises as `load_task`."""
    if isinstance(target, Task):
        if parameters:
            raise OptionError(f"a Task object takes no parameters; got {', '.join(parameters)}")
        return rows(target)
    if isinstance(target, str) and target in TASKS:
        space = grammar(target, parameters)
        idle = [name for name in ("n", "seed") if space is not None and name in parameters]
        if idle:
            raise OptionError(f"{idle[0]} selects pairs of task {target!r}, but here any of its prompts may be drawn: leave it out")
        if space is not None:
            return space
    return rows(load_task(target, **parameters))


def has_grammar(source: TaskSource) -> bool:
    """Whether a grammar generates the prompts of a task as a spec names it. Others have rows, known only after the task is read."""
    if source.kind != "builtin" or getattr(source, "mutation", None) is not None or source.target not in TASKS:
        return False
    return grammar(source.target, source.options) is not None
