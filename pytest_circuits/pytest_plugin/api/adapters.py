"""Models and tasks that fixtures and Python tests pass as objects: from the object to a source that the executor can measure."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.sources import ModelSource, TaskSource
from ...errors import ModelError

if TYPE_CHECKING:
    from ...tasks.base import Task
    from ..session import Session

MODELS = "a model directory, a hub id, a Hugging Face model, or (model, tokenizer)"


def model_source(session: Session, named: ModelSource, value: Any, what: str) -> ModelSource:
    """The source of a model given as a path, a hub id, a module, (module, tokenizer) or a `Subject`; `what` says where it is from.

    Relative paths count from pytest's root directory. A module is identified by a digest of its weights, taken each time: a module that
    changed in between is another model. Raises `ModelError` for anything else.
    """
    if isinstance(value, ModelSource):
        return replace(value, name=named.name, at=named.at)
    if isinstance(value, (str, Path)):
        from ...spec.checkpoints import model_path

        return replace(named, path=model_path(session.config.rootpath, str(value)), fixture=None)
    module, tokenizer = parts(value)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(module, torch.nn.Module):
        raise ModelError(f"model {named.name!r}: {what} is of type {type(value).__name__}; it must be {MODELS}")
    from ...model.loading import behaviour_digest, weights_digest

    mark = f"memory:{weights_digest(module)}:{behaviour_digest(module)}"
    mark += "" if tokenizer is None else f"+{type(tokenizer).__name__}@{id(tokenizer):x}"
    source = replace(named, loader=mark, fixture=None)
    if session.handed_over.get(source) is not module:  # a twin of equal weights must not stand in for one that may change later
        session.handed_over[source] = module
        session.executor().models.provide(source, lambda: (module, tokenizer))  # holds the tokenizer, so that its id stays its own
    return source


def parts(value: Any) -> tuple[Any, Any]:
    """The module and the tokenizer (or None) of a module, a (module, tokenizer), or a `Subject`."""
    if isinstance(value, tuple) and len(value) == 2:
        return value[0], value[1]
    if hasattr(value, "anatomy") and hasattr(value, "tokenizer"):
        return value.model, value.tokenizer
    return value, None


def task_source(session: Session, name: str, value: Any, what: str) -> TaskSource:
    """The source of a task given as a `Task`, an iterable of `PromptPair` or mappings, or a `TaskSource`; `what` says where it is from.

    A task is identified by its pairs, so that equal tasks are measured once. Raises `TaskError` for anything else.
    """
    if isinstance(value, TaskSource):
        return replace(value, name=name)
    from ...tasks.load import task_from

    task: Task = replace(task_from(value, what), name=name)
    source = TaskSource.make(name, "fixture", what, {"fingerprint": task.fingerprint})
    session.executor().provide_task(source, task)
    return source
