"""Measurements that a property can ask for: plain descriptions. The lab turns each into a cache hit or a call of the torch side.

A property is a generator: it yields requests, gets results back and returns an `Estimate`. Equal requests
are measured once, whichever claims ask for them; P, K and thresholds are not part of a request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.sources import ModelSource, TaskSource


def freeze(options: Mapping[str, Any] | None) -> str:
    """Options as canonical JSON: hashable, and part of the cache key."""
    return json.dumps(dict(options or {}), sort_keys=True)


@dataclass(frozen=True)
class Part:
    """Which examples of a task: all, or one side of a seeded split by group. `split` None means in-sample: both sides are all.

    `since` leaves out examples with a lower number.
    """

    which: str = "all"
    split: float | None = None
    seed: int = 0
    since: int = 0


ALL = Part()


@dataclass(frozen=True)
class Describe:
    """What the model is. Result: `results.Description`."""

    model: ModelSource


@dataclass(frozen=True)
class Encode:
    """The task as this model's tokenizer sees it. Result: `results.Encoded` (groups, counts, a digest of the token ids)."""

    model: ModelSource
    task: TaskSource


@dataclass(frozen=True)
class Attribute:
    """Attribution scores. Result: `results.Attribution`; with `reduce="mean"` one row, the signed mean over the examples."""

    model: ModelSource
    task: TaskSource
    method: str
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reduce: str | None = None
    options: str = field(default="{}")


@dataclass(frozen=True)
class Ablate:
    """Outcomes under ablation of several sets. Result: `results.Outcome` with arrays [n_sets, n_examples].

    `mode` is remove or keep; an empty set with mode remove is the intact model. `reference` says which
    examples a mean ablation takes its means from (`part` of the same task's prompts: clean or corrupt).
    """

    model: ModelSource
    task: TaskSource
    sets: tuple[tuple[str, ...], ...]
    mode: str = "remove"
    kind: str = "zero"
    level: str = "component"
    metric: str = "logit_diff"
    part: Part = ALL
    reference: Part | None = None
    options: str = field(default="{}")


@dataclass(frozen=True)
class Sweep:
    """The exact effect of ablating each component on its own. Result: `results.SweepOutcome`, arrays [n_examples, n_components]."""

    model: ModelSource
    task: TaskSource
    kind: str = "zero"
    metric: str = "logit_diff"
    part: Part = ALL
    reference: Part | None = None
    options: str = field(default="{}")


@dataclass(frozen=True)
class Norms:
    """How large each component's own contribution is. Result: `results.Norms`, float32 [n_components]."""

    model: ModelSource
    task: TaskSource
    part: Part = ALL


@dataclass(frozen=True)
class Conserve:
    """Whether relevance adds up to the metric at every layer. Result: `results.Conservation`.

    `rules` is relp (its replacement model) or none (the model's own gradient).
    """

    model: ModelSource
    task: TaskSource
    rules: str = "relp"
    metric: str = "logit_diff"
    part: Part = ALL


@dataclass(frozen=True)
class Read:
    """The task itself, as it is before a tokenizer sees it; no measurement. Result: `tasks.Task`."""

    model: ModelSource
    task: TaskSource


@dataclass(frozen=True)
class Unforeseen:
    """What is asked for from here on depends on what was measured: a plan ends here, with `note`; a lab goes on. Result: None."""

    model: ModelSource
    note: str


Request = Describe | Encode | Attribute | Ablate | Sweep | Norms | Conserve
