"""Where a model or a task comes from: hashable descriptions that need neither torch nor the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DTYPES = ("bfloat16", "float16", "float32", "float64")


def freeze(options: Mapping[str, Any] | None) -> str:
    """Options as canonical JSON: hashable, and part of cache keys."""
    return json.dumps(dict(options or {}), sort_keys=True)


@dataclass(frozen=True)
class ModelSource:
    """A model as a spec names it: a directory or hub id (`path`), a callable (`loader`, "pkg.mod:fn") or a pytest `fixture`.

    `at` is its place in a series (a training step, a seed). It does not identify the model: sources that
    differ in nothing else are equal. `mutation` (`mutants.base.Mutation.text`) makes it a mutant of that model.
    """

    name: str
    path: str | None = None
    revision: str | None = None
    dtype: str | None = None
    device: str | None = None
    loader: str | None = None
    fixture: str | None = None
    at: float | None = field(default=None, compare=False)
    mutation: str | None = None

    def describe(self) -> str:
        """The name and the place it comes from, for messages."""
        where = self.path or self.loader or f"fixture {self.fixture}"
        mutant = "" if self.mutation is None else ", a mutant of it"
        return f"{self.name!r} ({where}{'@' + self.revision if self.revision else ''}{mutant})"


@dataclass(frozen=True)
class TaskSource:
    """A task as a spec names it. `kind` is builtin, file, loader or fixture; `target` the built-in's name, the path, the reference or the
    fixture's name.

    `parameters` is canonical JSON, so that equal tasks are equal objects. `grown` are the numbers of pairs to which the task was
    extended, one after the other: its first pairs stay as they are (`tasks.growth`). `mutation` relabels it
    (`mutants.labels`).
    """

    name: str
    kind: str
    target: str
    parameters: str = "{}"
    grown: tuple[int, ...] = ()
    mutation: str | None = None

    @classmethod
    def make(cls, name: str, kind: str, target: str, parameters: Mapping[str, Any] | None = None) -> TaskSource:
        """With `parameters` given as a mapping."""
        return cls(name, kind, target, freeze(parameters))

    @property
    def options(self) -> dict[str, Any]:
        """The parameters as a mapping."""
        return json.loads(self.parameters)  # type: ignore[no-any-return]

    @property
    def original(self) -> TaskSource:
        """The task before it was extended."""
        return replace(self, grown=())
