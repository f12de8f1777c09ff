"""The typed report: built once at the end of a run, never changed, and all that renderers know."""

from .base import Expectation, Interval, ReportPart, StatedBound, VerdictName
from .baseline import BaselineComparison, BaselineResult, CircuitChange, Difference, DriftSummary
from .circuits import CircuitEvidence, Evidence
from .claim import Checkpoint, ClaimRecord, Cost, Look, SeriesMember, notes
from .mutation import (
    BehaviourChange,
    DetectionOutcome,
    ExcludedClaim,
    MutantReason,
    MutantRecord,
    MutationClaim,
    MutationReport,
    SpecCircuitRecord,
    SpecMutation,
)
from .report import VERSION, Report, json_schema
from .suite import UNKNOWN_MODEL, ModelInfo, Multiplicity, SpecMistake, Suite, SuiteCost

__all__ = [
    "UNKNOWN_MODEL",
    "VERSION",
    "BaselineComparison",
    "BaselineResult",
    "BehaviourChange",
    "Checkpoint",
    "CircuitChange",
    "CircuitEvidence",
    "ClaimRecord",
    "Cost",
    "DetectionOutcome",
    "Difference",
    "DriftSummary",
    "Evidence",
    "ExcludedClaim",
    "Expectation",
    "Interval",
    "Look",
    "ModelInfo",
    "Multiplicity",
    "MutantReason",
    "MutantRecord",
    "MutationClaim",
    "MutationReport",
    "Report",
    "ReportPart",
    "SeriesMember",
    "SpecCircuitRecord",
    "SpecMistake",
    "SpecMutation",
    "StatedBound",
    "Suite",
    "SuiteCost",
    "VerdictName",
    "json_schema",
    "notes",
]
