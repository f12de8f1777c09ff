"""A claim compared with its baseline: the `baseline` of each claim, and `suite.drift` over all of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Interval, ReportPart, VerdictName

Status = Literal["compared", "judged", "missing", "incomparable", "unmeasured"]
Share = tuple[float, float]


class BaselineResult(ReportPart):
    """What the baseline holds of the claim's numbers."""

    estimate: float
    interval: Interval
    n: int
    verdict: VerdictName


class Difference(ReportPart):
    """Now minus then. `beyond_noise`: the interval excludes 0. `how`: from values of the same examples, or from the two intervals."""

    value: float
    interval: Interval
    how: Literal["paired", "independent"]
    beyond_noise: bool


class CircuitChange(ReportPart):
    """Units that entered or left a set.

    Where both sides know it: each unit's `shares` of the circuits then and now, and the units whose share moved `beyond_noise`.
    """

    entered: tuple[str, ...]
    left: tuple[str, ...]
    shares: dict[str, Share] = Field(default_factory=dict)
    beyond_noise: tuple[str, ...] = ()


class BaselineComparison(ReportPart):
    """What became of one claim since its baseline at `path`.

    `status`: compared; judged (a claim about drift is itself a difference); missing (from the baseline); incomparable (because of what is
    in `changed`); unmeasured (now). `inconsistent`: why the entry cannot be what was measured.
    """

    path: str
    status: Status
    then: BaselineResult | None = None
    difference: Difference | None = None
    changed: tuple[str, ...] = ()
    circuits: dict[str, CircuitChange] = Field(default_factory=dict)
    inconsistent: str | None = None
    same_model: bool | None = None


class DriftSummary(ReportPart):
    """Counts over all claims with a baseline, and the node ids of those that moved."""

    baselines: tuple[str, ...]
    compared: int
    judged: int
    missing: int
    incomparable: int
    unmeasured: int
    same_model: bool
    beyond_noise: tuple[str, ...]
    verdict_changed: tuple[str, ...]
    inconsistent: tuple[str, ...]
    circuit_changed: tuple[str, ...]
    verdicts_on_drift: dict[VerdictName, int]
