"""What a spec file becomes: sources of models and tasks, and one case for each test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..properties.base import Parameters
from ..sources import ModelSource, TaskSource
from ..verdict import CERTIFIED, Bound

MarkSpec = tuple[str, tuple[Any, ...], Mapping[str, Any]]  # a pytest mark: name, positional and keyword arguments


@dataclass(frozen=True)
class ClaimCase:
    """One test: a claim about one model, with one combination of the parameters that the spec gives as lists.

    `tasks` are those that the parameters refer to. `ids` are the parts of the node id below the claim: model,
    task, then `name=value` for each other listed parameter. `line` and `column` are those of the claim's name.
    """

    name: str
    property: str
    parameters: Parameters
    model: ModelSource
    tasks: Mapping[str, TaskSource]
    bound: Bound
    expect: str = CERTIFIED
    marks: tuple[MarkSpec, ...] = ()
    line: int = 1
    column: int = 1
    ids: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class Suite:
    """A validated spec file. `models` and `tasks` hold all that are declared, used or not."""

    path: Path
    models: Mapping[str, ModelSource]
    tasks: Mapping[str, TaskSource]
    claims: tuple[ClaimCase, ...]
