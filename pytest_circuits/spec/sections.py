"""The sections `models` and `tasks` of a spec: from their entries to sources."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ..core.sources import ModelSource, TaskSource
from ..errors import suggestion
from ..tasks import TASKS
from .checkpoints import absolute, model_path, read_series
from .document import MODEL_KINDS, NOT_OF_SERIES, TASK_KINDS, FileTask, FixtureTask, LoaderTask, ModelEntry, name_problem
from .problems import Problems
from .spelling import faults, show
from .yaml_reader import Where

M = TypeVar("M", bound=BaseModel)
S = TypeVar("S")


def section(problems: Problems, name: str, read: Callable[[str, dict[str, Any]], S | None]) -> dict[str, S]:
    """Read each entry of a section with `read(name, entry)`; entries that are wrong are left out and reported."""
    entries = problems.document.data.get(name, {})
    if not isinstance(entries, dict):
        problems.at_value((name,), f"must be a mapping from names to entries, got {show(entries)}")
        return {}
    sources: dict[str, S] = {}
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
        source = read(key, {option: value for option, value in entry.items() if value is not None})
        if source is not None:
            sources[key] = source
    return sources


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


def read_model(
    problems: Problems, folder: Path, replaced: Collection[str], name: str, entry: dict[str, Any]
) -> tuple[ModelSource, ...] | None:
    """An entry under `models`: one source, or one for each of its checkpoints.

    A relative path is taken from `folder`, a hub id stays as it is; the checkpoints of `replaced` entries need not be there.
    """
    where = ("models", name)
    if "=" in name:
        rule = "a model's name holds no '=', which separates name and path in --circuits-model"
        problems.at_key(where, f"the name {name!r} is not allowed; {rule}", about=("models",))
    parsed = validated(problems, ModelEntry, entry, where)
    written = problems.document.data["models"][name]  # with keys that have no value, which is reported elsewhere
    kinds = [kind for kind in MODEL_KINDS if kind in written]
    if len(kinds) != 1 and not (not kinds and "checkpoints" in written):
        got = " and ".join(kinds) or "none of them"
        problems.at_key(where, f"a model needs exactly one of path, loader and fixture, got {got}")
        return None
    wrong = [key for key in NOT_OF_SERIES if key in written and "checkpoints" in written]
    for key in wrong:
        problems.at_key((*where, key), f"checkpoints are directories or revisions, so {key!r} does not go with them", about=where)
    if parsed is None or wrong:
        return None
    options = parsed.model_dump(exclude={"path", "checkpoints"})
    plain = ModelSource(name, path=None if parsed.path is None else model_path(folder, parsed.path), **options)
    if parsed.checkpoints is None:
        return (plain,) if kinds else None
    return read_series(problems, folder, name, parsed, plain, replaced=name in replaced)


def read_task(problems: Problems, folder: Path, name: str, entry: dict[str, Any]) -> TaskSource | None:
    """An entry under `tasks`: exactly one of builtin, file, loader and fixture, with its parameters."""
    where = ("tasks", name)
    kinds = [kind for kind in TASK_KINDS if kind in problems.document.data["tasks"][name]]
    if len(kinds) != 1:
        got = f", got {' and '.join(kinds)}" if kinds else ""
        near = f"; {suggestion(next(iter(entry)), TASK_KINDS)}" if entry and not kinds else ""
        problems.at_key(where, f"a task needs exactly one of builtin, file, loader and fixture{got}{near}")
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
    options = {key: value for key, value in entry.items() if key != "builtin"}
    parameters = validated(problems, TASKS.get(wanted).Parameters, options, where, "parameter")
    return None if parameters is None else TaskSource.make(name, "builtin", wanted, parameters.model_dump(mode="json"))
