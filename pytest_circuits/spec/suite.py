"""What a spec file becomes: sources of models and tasks, and one claim for each test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..core.claim import Claim
from ..core.sources import ModelSource, TaskSource


@dataclass(frozen=True)
class Suite:
    """A validated spec file. `models` and `tasks` hold all that are declared, used or not.

    A series is declared as its checkpoints, `NAME@LABEL`; `series` says which models belong to an entry with checkpoints.
    `replaced` are the names under which `--circuits-model` put another model.
    """

    path: Path
    models: Mapping[str, ModelSource]
    tasks: Mapping[str, TaskSource]
    claims: tuple[Claim, ...]
    series: Mapping[str, tuple[ModelSource, ...]] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
