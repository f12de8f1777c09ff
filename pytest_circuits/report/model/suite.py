"""The run as a whole: the report's `suite` and `models`."""

from __future__ import annotations

from pydantic import Field

from .base import ReportPart, VerdictName
from .baseline import DriftSummary


class SuiteCost(ReportPart):
    """Batched model calls of the run, and measurements that were read from the cache."""

    forwards: int
    backwards: int
    cached: int


class Multiplicity(ReportPart):
    """Holm's correction: claims with an estimate, those that are refuted, and those of them that stand after the correction."""

    claims: int
    refuted: int
    surviving: int


class SpecMistake(ReportPart):
    """A mistake in a spec file, because of which claims may be missing."""

    file: str
    line: int
    column: int
    problem: str


class Suite(ReportPart):
    """`alpha` is the level that refutations are corrected at, `seed` that of `--circuits-seed`."""

    alpha: float
    seconds: float | None = None
    seed: int = 0
    cost: SuiteCost
    verdicts: dict[VerdictName, int] = Field(description="How many claims got each verdict.")
    holm: Multiplicity
    errors: tuple[SpecMistake, ...]
    drift: DriftSummary | None = None


class ModelInfo(ReportPart):
    """A model. Everything is null for a model that could not be opened."""

    fingerprint: str | None
    architecture: str | None
    parameters: int | None
    dtype: str | None = None
    layers: int | None = None
    heads: int | None = None
    neurons: int | None = None
    kv_heads: int | None = None
    parallel: bool | None = None


UNKNOWN_MODEL = ModelInfo(fingerprint=None, architecture=None, parameters=None)
