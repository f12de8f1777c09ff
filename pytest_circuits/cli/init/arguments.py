"""Parse the command line's tasks (`--task NAME=TARGET:key=value,…`) and model into sources and spec entries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.sources import ModelSource, TaskSource
from ...errors import ModelError, OptionError, SpecError, TaskError, suggestion
from ...spec.checkpoints import absolute, model_path
from ...spec.document import REFERENCE, name_problem
from ...spec.yaml_reader import read_yaml
from ...tasks import TASKS

_NAMED = re.compile(r"([^\s:=/\\]+)=(.+)")
_OPTIONS = re.compile(r"(.+?):(\w+=.*)")
_FILES = (".jsonl", ".csv")
DRAWN = 256  # pairs of a built-in task


@dataclass(frozen=True)
class RequestedTask:
    """A task with its name in the spec, its kind (builtin, file or loader) and its parameters as written in the spec."""

    name: str
    kind: str
    target: str
    options: Mapping[str, Any]

    @property
    def source(self) -> TaskSource:
        """The source of its pairs. Parameters are validated when it is read."""
        return TaskSource.make(self.name, self.kind, self.target, self.options)

    def entry(self, folder: Path) -> dict[str, Any]:
        """As written under `tasks:` of a spec in `folder`."""
        target = relative(self.target, folder) if self.kind == "file" else self.target
        return {self.kind: target, **self.options}


def parse_tasks(texts: Iterable[str], n: int, seed: int) -> list[RequestedTask]:
    """The tasks in order. `n` and `seed` are the defaults for those parameters of built-in tasks.

    Raises `OptionError` for unknown tasks, duplicate names and parameters that cannot be parsed, `TaskError` for missing files.
    """
    tasks: list[RequestedTask] = []
    for text in texts:
        tasks.append(_parse_task(text, n, seed))
        name = tasks[-1].name
        problem = name_problem(name)
        if problem:
            raise OptionError(f"--task {text}: {problem}; choose a name: --task NAME={text}")
        if name in [task.name for task in tasks[:-1]]:
            raise OptionError(f"--task {text}: there is already a task {name!r}; choose another name: --task NAME={text}")
    if not tasks:
        raise OptionError(f"no task was named; use --task NAME, --task FILE.jsonl or --task pkg.mod:function; built-in: {', '.join(TASKS)}")
    return tasks


def _parse_task(text: str, n: int, seed: int) -> RequestedTask:
    named = _NAMED.fullmatch(text)
    name, rest = (named[1], named[2]) if named else (None, text)
    target, options = _split(rest)
    if target in TASKS:
        fields = TASKS.get(target).Parameters.model_fields
        defaults = {key: value for key, value in (("n", n), ("seed", seed)) if key in fields and key not in options}
        return RequestedTask(name or target, "builtin", target, {**options, **defaults})
    if target.endswith(_FILES) or Path(target).expanduser().is_file():
        path = absolute(Path.cwd(), target)
        if not os.path.isfile(path):
            raise TaskError(f"--task {text}: there is no file {path}")
        return RequestedTask(name or Path(path).name.partition(".")[0], "file", path, options)
    if re.fullmatch(REFERENCE, target):
        return RequestedTask(name or target.partition(":")[2].rpartition(".")[2], "loader", target, options)
    raise OptionError(
        f"--task {text}: {target!r} is not a built-in task, a .jsonl or .csv file, or a reference 'pkg.mod:function'; "
        f"{suggestion(target, TASKS)}"
    )


def _split(text: str) -> tuple[str, dict[str, Any]]:
    if Path(text).expanduser().is_file():
        return text, {}
    match = _OPTIONS.fullmatch(text)
    return (text, {}) if match is None else (match[1], dict(_options(match[2], text)))


def _options(written: str, text: str) -> Iterator[tuple[str, Any]]:
    """The pairs of `a=1,b=[x,y]`; values are parsed as in a spec."""
    for part in re.split(r",(?=\w+=)", written):
        key, _, value = part.partition("=")
        try:
            yield key, read_yaml(f"value: {value}\n".encode(), text).data["value"]
        except SpecError as problem:
            raise OptionError(f"--task {text}: the value of {key!r}, {value!r}, cannot be read: {problem.problem}") from None


def parse_model(name: str, written: str, revision: str | None = None, dtype: str | None = None, device: str | None = None) -> ModelSource:
    """The source of a model; `written` is a directory (relative to the working directory) or a hub id.

    Raises `ModelError` for `folder/name` if the folder exists without such an entry: a mistyped directory, unless the hub's model of
    that name has been downloaded.
    """
    from ...measurement.fingerprints import cached_config

    source = ModelSource(name, path=model_path(Path.cwd(), written), revision=revision, dtype=dtype, device=device)
    folder, slash, _ = written.partition("/")
    if source.path == written and slash and os.path.isdir(folder) and cached_config(source) is None:
        inside = sorted(child.name for child in Path(folder).iterdir() if child.is_dir())
        raise ModelError(
            f"there is no model {written!r} in folder {folder!r}; {suggestion(written.partition('/')[2], inside)}. "
            f"To use the hub's {written!r}, run the command in another folder"
        )
    return source


def relative(path: str, folder: Path) -> str:
    """An absolute path relative to `folder`, as a spec there would write it; a hub id is returned unchanged."""
    return os.path.relpath(path, folder).replace(os.sep, "/") if os.path.isabs(path) else path
