"""The whole report: what `--circuits-json` writes and every renderer reads."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...core.json_schema import without_noise
from .base import ReportPart
from .circuits import CircuitEvidence
from .claim import ClaimRecord
from .mutation import MutationReport
from .suite import ModelInfo, Suite

VERSION: Literal[1] = 1


class Report(ReportPart):
    """One run of pytest: the suite, its models by name, its claims in the order of the files, and how well each circuit is supported."""

    version: Literal[1] = Field(VERSION, alias="schema")
    suite: Suite
    models: dict[str, ModelInfo]
    claims: tuple[ClaimRecord, ...]
    circuits: tuple[CircuitEvidence, ...] = ()
    mutation: MutationReport | None = None


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the document."""
    schema = without_noise(Report.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": f"pytest-circuits report, version {VERSION}"}
