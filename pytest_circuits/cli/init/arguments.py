"""What the command line names, `--task NAME=TARGET:key=value,…`, as entries of a spec and as sources."""

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
    """A task by the name that the spec gives it: what it is (builtin, file or loader), and its parameters as written in the spec."""

    name: str
    kind: str
    target: str
    options: Mapping[str, Any]

    @property
    def source(self) -> TaskSource:
        """Where its pairs come from. Parameters are checked when it is read."""
        return TaskSource.make(self.name, self.kind, self.target, self.options)

    def entry(self, folder: Path) -> dict[str, Any]:
        """As written under `tasks:` of a spec in `folder`."""
        target = relative(self.target, folder) if self.kind == "file" else self.target
        return {self.kind: target, **self.options}


def parse_tasks(texts: Iterable[str], n: int, seed: int) -> list[RequestedTask]:
    """The tasks in order; of built-in ones `n` pairs are drawn by `seed`, unless their own parameters say otherwise.

    Raises `OptionError` for what is no task, for a name that is given twice and for parameters that cannot be read.
    """
    tasks: list[RequestedTask] = []
    for text in texts:
        tasks.append(_parse_task(text, n, seed))
        name = tasks[-1].name
        problem = name_problem(name)
        if problem:
            raise OptionError(f"--task {text}: {problem}; give it another one: --task NAME={text}")
        if name in [task.name for task in tasks[:-1]]:
            raise OptionError(f"--task {text}: there is already a task {name!r}; give this one another name: --task NAME={text}")
    if not tasks:
        raise OptionError(f"name a task: --task NAME, --task FILE.jsonl or --task pkg.mod:function; built-in: {', '.join(TASKS)}")
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
        f"--task {text}: {target!r} is no built-in task, no .jsonl or .csv file and no reference 'pkg.mod:function'; "
        f"{suggestion(target, TASKS)}"
    )


def _split(text: str) -> tuple[str, dict[str, Any]]:
    if Path(text).expanduser().is_file():
        return text, {}
    match = _OPTIONS.fullmatch(text)
    return (text, {}) if match is None else (match[1], dict(_options(match[2], text)))


def _options(written: str, text: str) -> Iterator[tuple[str, Any]]:
    """`a=1,b=[x,y]` as pairs; values mean what they mean in a spec."""
    for part in re.split(r",(?=\w+=)", written):
        key, _, value = part.partition("=")
        try:
            yield key, read_yaml(f"value: {value}\n".encode(), text).data["value"]
        except SpecError as problem:
            raise OptionError(f"--task {text}: the value of {key!r}, {value!r}, cannot be read: {problem.problem}") from None


def parse_model(name: str, written: str, revision: str | None = None, dtype: str | None = None, device: str | None = None) -> ModelSource:
    """The model, `written` being a directory (relative to the working directory) or a hub id.

    Raises `ModelError` for `folder/name` where there is such a folder and nothing of that name in it, unless the hub's model of that name
    has been downloaded: that is a mistyped directory, and no reason to ask the hub.
    """
    from ...measurement.fingerprints import cached_config

    source = ModelSource(name, path=model_path(Path.cwd(), written), revision=revision, dtype=dtype, device=device)
    folder, slash, _ = written.partition("/")
    if source.path == written and slash and os.path.isdir(folder) and cached_config(source) is None:
        inside = sorted(child.name for child in Path(folder).iterdir() if child.is_dir())
        raise ModelError(
            f"there is no model {written!r} in folder {folder!r}; {suggestion(written.partition('/')[2], inside)}. "
            f"If the hub's {written!r} is meant, run this in another folder"
        )
    return source


def relative(path: str, folder: Path) -> str:
    """An absolute path as written in a spec in `folder`; a hub id as it is."""
    return os.path.relpath(path, folder).replace(os.sep, "/") if os.path.isabs(path) else path
