"""What pairs can be drawn from: the grammar of a built-in task, or the rows of one that is fixed data."""

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
    """Prompt pairs that can be drawn: `draw` makes one, or None where the choices make none; `scoring` and `stop` are the task's."""

    name: str
    draw: Callable[[Draws], PromptPair | None]
    scoring: Literal["choices", "argmax"] = "choices"
    stop: Literal["digits"] | None = None


def grammar(name: str, parameters: Mapping[str, Any]) -> Space | None:
    """The grammar of a built-in task with these parameters; None where its prompts are fixed data. `n` and `seed` say nothing here.

    Raises `OptionError` for a parameter that the task does not have, or does not allow.
    """
    kind = TASKS.get(name)
    if not (isinstance(kind, type) and issubclass(kind, Generated)):
        return None
    made = kind(validated_parameters(name, parameters))
    return Space(name, made.draw, kind.scoring, kind.stop)


def rows(task: Task) -> Space:
    """The pairs of a task, each as likely as the others."""
    return Space(task.name, Rows(task.pairs).draw, task.scoring, task.stop)


def space_of(target: Any, parameters: Mapping[str, Any]) -> Space:
    """What `load_task` opens, or a `Task`, as something to draw from. Raises `OptionError` and `TaskError` as that does."""
    if isinstance(target, Task):
        if parameters:
            raise OptionError(f"a task that is given as an object has no parameters; got {', '.join(parameters)}")
        return rows(target)
    if isinstance(target, str) and target in TASKS:
        found = grammar(target, parameters)
        idle = [name for name in ("n", "seed") if found is not None and name in parameters]
        if idle:
            what = f"{idle[0]} says which pairs of task {target!r} a seed draws, and here any of its prompts may be drawn"
            raise OptionError(f"{what}: leave it out")
        if found is not None:
            return found
    return rows(load_task(target, **parameters))


def has_grammar(source: TaskSource) -> bool:
    """Whether the prompts of a task as a spec names it are made by a grammar. Others have rows, which only reading the task tells."""
    if source.kind != "builtin" or getattr(source, "mutation", None) is not None or source.target not in TASKS:
        return False
    return grammar(source.target, source.options) is not None
