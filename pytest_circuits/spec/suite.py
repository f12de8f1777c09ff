"""What a spec file becomes: sources of models and tasks, and one case for each test."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.sources import ModelSource, TaskSource
from ..core.verdict import CERTIFIED, Bound
from ..properties.parameters import AnyParameters

MarkSpec = tuple[str, tuple[Any, ...], Mapping[str, Any]]  # a pytest mark: name, positional and keyword arguments


@dataclass(frozen=True)
class ClaimCase:
    """One test: a claim about one model, or one series of models, with one combination of the parameters that the spec gives as lists.

    `tasks` are those that the parameters refer to. `ids` are the parts of the node id below the claim: model,
    task, then `name=value` for each other listed parameter. `line` and `column` are those of the claim's name.
    `series` are the models of a property over a series, in the order of their `at`, `model` being the last of them; of any other
    property it is empty. `entry` is the name under `models:` that the claim is about: `model` is that one, or a checkpoint of it.
    `against` is the model that a claim about drift compares with, where that is another entry and not the baseline; `of` is the test
    of the claim that it is about, as a node id without the file, where the spec has one of the same model and parameters.
    """

    name: str
    property: str
    parameters: AnyParameters
    model: ModelSource
    tasks: Mapping[str, TaskSource]
    bound: Bound
    expect: str = CERTIFIED
    marks: tuple[MarkSpec, ...] = ()
    line: int = 1
    column: int = 1
    ids: tuple[str, ...] = ()
    description: str = ""
    series: tuple[ModelSource, ...] = ()
    entry: str = ""
    against: ModelSource | None = None
    of: str = ""

    @builtins.property
    def about(self) -> str:
        """What the claim is about, by name: the series, or the model."""
        return self.entry if self.series else self.model.name


@dataclass(frozen=True)
class Suite:
    """A validated spec file. `models` and `tasks` hold all that are declared, used or not.

    A series is declared as its checkpoints, `NAME@LABEL`; `series` says which models belong to an entry with checkpoints.
    `replaced` are the names under which `--circuits-model` put another model.
    """

    path: Path
    models: Mapping[str, ModelSource]
    tasks: Mapping[str, TaskSource]
    claims: tuple[ClaimCase, ...]
    series: Mapping[str, tuple[ModelSource, ...]] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
