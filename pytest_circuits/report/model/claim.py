"""The record of one claim: an entry of the report's `claims`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...core.verdict import REASONS
from .base import Expectation, Interval, ReportPart, StatedBound, VerdictName
from .baseline import BaselineComparison

TestOutcome = Literal["passed", "failed", "skipped", "xfailed", "xpassed"]


class Cost(ReportPart):
    """What a claim cost: batched model calls, wall-clock seconds, results read from the cache (`hits`) and made (`measured`)."""

    forwards: int
    backwards: int
    seconds: float | None = None
    hits: int
    measured: int = 0
    cached: bool = False


class Look(ReportPart):
    """One look at a claim with `max_n`: how many prompts of each task it had, and the estimate from them."""

    prompts: dict[str, int]
    n: int
    estimate: float
    interval: Interval


class SeriesMember(ReportPart):
    """A model of a series, and where it stands there, such as its training step."""

    model: str
    at: float | None


class Checkpoint(ReportPart):
    """Of a claim about one model of a series: the entry of the spec that the series is, and where the model stands in it."""

    of: str
    at: float | None


class ClaimRecord(ReportPart):
    """One claim: what it states, what was measured, and the verdict.

    Estimate and interval are null together. `reason_code` and `reason_arguments` are the facts behind the verdict, `reason` is the sentence
    made of them. `refuted_at`, of a refuted claim, bounds its p-value from above. `details` is what a reader needs to believe the number,
    and depends on the property.
    """

    nodeid: str
    claim: str
    property: str
    model: str
    tasks: tuple[str, ...]
    parameters: dict[str, Any]
    estimate: float | None
    interval: Interval | None
    interval_kind: str | None = None
    confidence: float | None = None
    n: int
    bound: StatedBound
    verdict: VerdictName
    passed: bool
    reason: str
    reason_code: str | None = Field(None, description=f"One of {', '.join(REASONS)}; of an invalid claim, also the code of the error.")
    reason_arguments: dict[str, Any] = Field(default_factory=dict)
    refuted_at: float | None = None
    looks: tuple[Look, ...] = ()
    looks_planned: int = 1
    warnings: tuple[str, ...] = ()
    description: str = ""
    expect: Expectation = "certified"
    file: str = ""
    line: int = 0
    series: tuple[SeriesMember, ...] = ()
    checkpoint: Checkpoint | None = None
    seed: int = 0
    details: dict[str, Any]
    cost: Cost = Cost(forwards=0, backwards=0, hits=0)
    outcome: TestOutcome | None = Field(None, description="What became of the test, as pytest's summary line counts it.")
    baseline: BaselineComparison | None = None
    survives_holm: bool | None = Field(None, description="Of a refuted claim, whether it stands among all claims of the run.")


def notes(record: ClaimRecord) -> tuple[str, ...]:
    """What the property says about its numbers, line by line; nothing where nothing was measured. Older reports call it `told`."""
    return () if record.estimate is None else tuple(record.details.get("notes") or record.details.get("told") or ())
