"""Mutation testing: the report's `mutation`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .base import Expectation, HalfOpenInterval, ReportPart, StatedBound, VerdictName

MutantStatus = Literal["noticed", "survived", "equivalent", "not made", "not measured"]


class SpecCircuitRecord(ReportPart):
    """The sets of units that mutants were placed inside and outside of, and where they come from."""

    source: str
    sets: dict[str, tuple[str, ...]]


class BehaviourChange(ReportPart):
    """One task on the intact model and on the mutant: both accuracies, the largest changes on one example. Null: not a finite number."""

    accuracy: tuple[float | None, float | None]
    largest_metric_change: float | None
    largest_log_prob_change: float | None
    changed: bool = Field(description="Whether an answer changed by more than rounding.")


class DetectionOutcome(ReportPart):
    """One claim about one mutant. `how` is the verdict that gave the mutant away, null where the claim did not notice it.

    `share_of_way_to_bound`: how far the estimate moved towards a change of the verdict. `beyond_noise`: whether a comparison with a
    baseline would flag the change.
    """

    nodeid: str
    claim: str
    how: VerdictName | None
    verdict: VerdictName
    estimate: float | None
    interval: HalfOpenInterval | None
    reason: str
    share_of_way_to_bound: float | None
    beyond_noise: bool | None


class MutantReason(ReportPart):
    """Why a mutant survived, or was not made or measured: a code of `report.messages.mutation` with its arguments."""

    code: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class MutantRecord(ReportPart):
    """One mutant: how it was made, and what became of it. `reasons` are the sentences of `reason_codes`: why it survived, or was not
    made or measured.
    """

    name: str
    operator: str | None = None
    units: tuple[str, ...] = ()
    options: dict[str, Any] = Field(default_factory=dict)
    seed: int | None = None
    donor: str | None = Field(None, alias="from", description="The model that the damage is taken from.")
    fingerprint: str | None = None
    sets: tuple[str, ...] = ()
    status: MutantStatus
    reasons: tuple[str, ...] = ()
    reason_codes: tuple[MutantReason, ...] = ()
    caught_by: dict[str, VerdictName] = Field(default_factory=dict)
    behaviour: dict[str, BehaviourChange] = Field(default_factory=dict)
    outcomes: tuple[DetectionOutcome, ...] = ()


class MutationClaim(ReportPart):
    """One claim: the mutants that it caught, by the verdict that gave them away. `study`: it expects no verdict."""

    nodeid: str
    claim: str
    expect: Expectation
    bound: StatedBound
    study: bool
    estimate: float | None
    caught: dict[str, VerdictName]
    beyond_noise: int = Field(description="How many mutants a comparison with a baseline would flag.")


class ExcludedClaim(ReportPart):
    """A claim that took no part, and why."""

    nodeid: str
    claim: str
    reason: str


class SpecMutation(ReportPart):
    """The claims of one spec about one model, its circuit, and its mutants. `score` is noticed / counted, null where none counts."""

    file: str
    model: str
    score: float | None
    noticed: int
    counted: int
    inconclusive_only: int
    invalid_only: int
    problem: str
    circuit: SpecCircuitRecord | None
    mutants: tuple[MutantRecord, ...]
    claims: tuple[MutationClaim, ...]
    left_out: tuple[ExcludedClaim, ...]


class MutationReport(ReportPart):
    """All mutants of a run. `mutants` is what `--circuits-mutate` asked for, `threshold` the score that it asked for.

    Of the mutants noticed, `inconclusive_only` and `invalid_only` were given away by no other verdict.
    """

    mutants: str
    score: float | None
    noticed: int
    counted: int
    inconclusive_only: int
    invalid_only: int
    threshold: float | None
    passed: bool
    unmeasured: int
    seconds: float
    notes: tuple[str, ...]
    specs: tuple[SpecMutation, ...]
