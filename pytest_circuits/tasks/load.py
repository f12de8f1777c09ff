"""Opening tasks: built-ins by name, JSONL files by path, Python callables by reference."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ..core.sources import TaskSource
from ..errors import CircuitsError, OptionError, TaskError, suggestion
from ..registry import load_object
from . import TASKS, files
from .base import PromptPair, Task
from .grammar.listed_pairs import KIND, drawn_task
from .growth import grown
from .records import pair_from, refuse_degenerate

_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def load_task(name_or_file: str | Path, n: int | None = None, seed: int | None = None, **params: Any) -> Task:
    """A built-in task by its name, a `.jsonl` file by its path, or the pairs of a callable by its reference "pkg.mod:function".

    n, seed and params are the task's parameters; None means the default. Raises `OptionError` for unknown tasks and parameters,
    `TaskError` for faulty data.
    """
    options = {key: value for key, value in {"n": n, "seed": seed}.items() if value is not None} | params
    target = str(name_or_file)
    if isinstance(name_or_file, str) and target in TASKS:
        return builtin_task(target, options)
    if isinstance(name_or_file, Path) or target.endswith(".jsonl") or Path(target).is_file():
        return file_task(target, options)
    if _REFERENCE.fullmatch(target):
        return loader_task(target, options)
    raise OptionError(
        f"unknown task {target!r}: not a .jsonl file, a reference 'pkg.mod:function' or a built-in; {suggestion(target, TASKS)}"
    )


def load_source(source: TaskSource) -> Task:
    """The task that a spec names, under the name that the spec gives it. Raises `OptionError` and `TaskError` like `load_task`."""
    openers: dict[str, Callable[[str, Mapping[str, Any]], Task]] = {
        "builtin": builtin_task, "file": file_task, "loader": loader_task, KIND: lambda _, options: drawn_task(options)
    }  # fmt: skip
    if source.kind not in openers:
        raise OptionError(f"unknown kind of task {source.kind!r}; {suggestion(source.kind, openers)}")
    task = replace(openers[source.kind](source.target, source.options), name=source.name)
    if source.grown and source.kind == "builtin":
        _check_space(source)
    for n in source.grown:
        task = grown(task, n)
    return task


def _check_space(source: TaskSource) -> None:
    """Refuse a max_n beyond the task's prompts at once: built-ins know their number, and searching for further prompts is slow."""
    try:
        builtin_task(source.target, {**source.options, "n": source.grown[-1]})
    except TaskError as problem:
        raise TaskError(f"max_n is too large: {problem}") from None


def builtin_parameters(name: str) -> type[BaseModel]:
    """The parameter model of a built-in or registered task. Raises `OptionError` for an unknown name."""
    return TASKS.get(name).Parameters  # type: ignore[no-any-return]


def task_parameters(kind: str, target: str) -> type[BaseModel] | None:
    """The parameter model of a task as a spec names it; None for a loader, whose parameters are keyword arguments."""
    if kind == "builtin":
        return builtin_parameters(target)
    return files.Parameters if kind == "file" else None


def builtin_task(name: str, options: Mapping[str, Any]) -> Task:
    """A built-in or registered task."""
    task: Task = TASKS.get(name).make(validated_parameters(name, options))
    return task


def validated_parameters(name: str, options: Mapping[str, Any]) -> Any:
    """The parameters of a built-in task. Raises `OptionError` for an unknown parameter or a value that is not allowed."""
    return _validated(builtin_parameters(name), options, f"task {name!r}")


def file_task(path: str, options: Mapping[str, Any]) -> Task:
    """The task in a JSONL file."""
    return files.read(path, _validated(files.Parameters, options, path))


def loader_task(reference: str, options: Mapping[str, Any]) -> Task:
    """The task from a callable, which returns a `Task`, or prompt pairs, or mappings with the fields of a JSONL line.

    `options` are its keyword arguments. Any exception becomes a `TaskError` that names the reference.
    """
    try:
        return task_from(load_object(reference)(**options), reference, {"loader": reference, **options})
    except CircuitsError as problem:
        raise TaskError(str(problem)) from problem
    except Exception as problem:
        raise TaskError(f"the task loader {reference} raised {type(problem).__name__}: {problem}") from problem


def task_from(result: Any, what: str, provenance: Mapping[str, Any] | None = None) -> Task:
    """The task in a result of `what` (named in messages): a `Task`, or prompt pairs, or mappings with the fields of a JSONL line.

    Raises `TaskError` for anything else, and for a result without pairs or with degenerate ones.
    """
    if isinstance(result, Task):
        return result
    if not isinstance(result, Iterable) or isinstance(result, (str, bytes, Mapping)):
        raise TaskError(f"{what} returned {type(result).__name__}; it must return a Task, or an iterable of PromptPair or dict")
    pairs = tuple(_pair(record, f"{what}[{i}]") for i, record in enumerate(result))
    if not pairs:
        raise TaskError(f"{what} returned no prompt pairs")
    refuse_degenerate(pairs, what)
    return Task(what, pairs, provenance=dict(provenance or {}))


def _pair(record: Any, where: str) -> PromptPair:
    if not isinstance(record, PromptPair):
        return pair_from(record, where)
    return record if record.source else replace(record, source=where)


def _validated(model: type[BaseModel], options: Mapping[str, Any], what: str) -> Any:
    try:
        return model.model_validate(dict(options))
    except ValidationError as problem:
        error = problem.errors()[0]
        name = str(error["loc"][0]) if error["loc"] else ""
        if error["type"] == "extra_forbidden":
            raise OptionError(f"{what} has no parameter {name!r}; {suggestion(name, model.model_fields)}") from None
        if error["type"] == "missing":
            raise OptionError(f"{what} needs the parameter {name!r}") from None
        raise OptionError(f"{what}: {name}={options.get(name)!r} is not allowed: {error['msg']}") from None
