"""The sections `models` and `tasks` of a spec: from their entries to sources."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import suggestion
from ..sources import ModelSource, TaskSource
from ..tasks import TASKS
from .document import MODEL_KINDS, TASK_KINDS, FileTask, FixtureTask, LoaderTask, ModelEntry, name_problem
from .problems import Problems
from .words import faults, show
from .yaml_reader import Where

M = TypeVar("M", bound=BaseModel)
S = TypeVar("S")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def section(problems: Problems, name: str, read: Callable[[str, dict[str, Any]], S | None]) -> dict[str, S]:
    """Read each entry of a section with `read(name, entry)`; entries that are wrong are left out and reported."""
    entries = problems.document.data.get(name, {})
    if not isinstance(entries, dict):
        problems.at_value((name,), f"must be a mapping from names to entries, got {show(entries)}")
        return {}
    found: dict[str, S] = {}
    for key, entry in entries.items():
        wrong = name_problem(key)
        if wrong:
            problems.at_key((name, key), wrong, about=(name,))
        if not isinstance(entry, dict):
            problems.at_value((name, key), f"must be a mapping, got {show(entry)}")
            continue
        for option, value in entry.items():
            if value is None:
                problems.at_key((name, key, option), "has no value; write one, or leave the key out")
        made = read(key, {option: value for option, value in entry.items() if value is not None})
        if made is not None:
            found[key] = made
    return found


def validated(problems: Problems, model: type[M], data: dict[str, Any], where: Where, what: str = "key") -> M | None:
    """`data` as an instance of `model`, or None with the mistakes reported. `data` is what stands at `where` in the file."""
    try:
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        for fault in faults(error, model, data, what):
            if fault.on_key:
                problems.at_key(where + fault.where, fault.text, about=None if fault.about is None else where + fault.about)
            else:
                problems.at_value(where + fault.where, fault.text)
        return None


def read_model(problems: Problems, folder: Path, name: str, entry: dict[str, Any]) -> ModelSource | None:
    """An entry under `models`; a relative path is taken from `folder`, a hub id stays as it is."""
    if "=" in name:
        told = "a model's name holds no '=', which separates name and path in --circuits-model"
        problems.at_key(("models", name), f"the name {name!r} is not allowed; {told}", about=("models",))
    parsed = validated(problems, ModelEntry, entry, ("models", name))
    written = problems.document.data["models"][name]  # with keys that have no value, which is reported elsewhere
    given = [kind for kind in MODEL_KINDS if kind in written]
    if len(given) != 1:
        got = " and ".join(given) or "none of them"
        problems.at_key(("models", name), f"a model needs exactly one of path, loader and fixture, got {got}")
        return None
    if parsed is None:
        return None
    options = parsed.model_dump(exclude={"path"})
    return ModelSource(name, path=None if parsed.path is None else model_path(folder, parsed.path), **options)


def model_path(folder: Path, written: str) -> str:
    """A directory relative to `folder`; what does not exist and looks like a hub id (`org/name`) stays as it is."""
    path = absolute(folder, written)
    return written if _HUB_ID.fullmatch(written) and not os.path.exists(path) else path


def absolute(folder: Path, written: str) -> str:
    """The path without `~` and `..`, relative to `folder` unless it is absolute."""
    return os.path.abspath(os.path.join(folder, os.path.expanduser(written)))


def read_task(problems: Problems, folder: Path, name: str, entry: dict[str, Any]) -> TaskSource | None:
    """An entry under `tasks`: exactly one of builtin, file, loader and fixture, with its parameters."""
    where = ("tasks", name)
    kinds = [kind for kind in TASK_KINDS if kind in problems.document.data["tasks"][name]]
    if len(kinds) != 1:
        given = f", got {' and '.join(kinds)}" if kinds else ""
        near = f"; {suggestion(next(iter(entry)), TASK_KINDS)}" if entry and not kinds else ""
        problems.at_key(where, f"a task needs exactly one of builtin, file, loader and fixture{given}{near}")
        return None
    if kinds[0] not in entry:  # it has no value, which is reported elsewhere
        return None
    if kinds == ["builtin"]:
        return _builtin(problems, name, entry)
    if kinds == ["file"]:
        file = validated(problems, FileTask, entry, where)
        options = file.model_dump(exclude={"file"}, exclude_none=True) if file else {}
        return TaskSource.make(name, "file", absolute(folder, file.file), options) if file else None
    if kinds == ["fixture"]:
        fixture = validated(problems, FixtureTask, entry, where)
        return TaskSource.make(name, "fixture", fixture.fixture) if fixture else None
    loader = validated(problems, LoaderTask, entry, where)
    return TaskSource.make(name, "loader", loader.loader, loader.model_extra) if loader else None


def _builtin(problems: Problems, name: str, entry: Mapping[str, Any]) -> TaskSource | None:
    where, wanted = ("tasks", name), entry["builtin"]
    if not isinstance(wanted, str) or wanted not in TASKS:
        near = suggestion(wanted if isinstance(wanted, str) else "", TASKS)
        problems.at_value((*where, "builtin"), f"unknown built-in task {show(wanted)}; {near}")
        return None
    given = {key: value for key, value in entry.items() if key != "builtin"}
    parameters = validated(problems, TASKS.get(wanted).Parameters, given, where, "parameter")
    return None if parameters is None else TaskSource.make(name, "builtin", wanted, parameters.model_dump(mode="json"))
