"""Properties of a test in JUnit's XML: verdict, estimate and interval of its claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..model import ClaimRecord

FACTS = {"purpose": "test"}

PREFIX = "circuits_"
FIELDS = ("verdict", "estimate", "interval")


class JunitRenderer:
    """User properties of a test, which pytest writes with `--junitxml`."""

    def properties(self, claims: Sequence[ClaimRecord]) -> list[tuple[str, Any]]:
        """Name and value of each property, in the order of the claims; what is null is left out."""
        values = [{key: value for key, value in claim.as_json().items() if key in FIELDS and value is not None} for claim in claims]
        return [(f"{PREFIX}{key}", claim[key]) for claim in values for key in FIELDS if key in claim]
