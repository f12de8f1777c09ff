"""Where a plan ends."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Invalid
from .base import UnmeasuredRequest
from .sessions import Session


@dataclass(frozen=True)
class PlanBoundary(UnmeasuredRequest[None]):
    """Which requests follow depends on measured results: a plan ends here with `note`, and a measuring run continues."""

    note: str

    def describe(self) -> str:
        """The note."""
        return self.note

    def answer(self, session: Session) -> None:
        """Nothing."""

    def answer_plan(self, session: Session) -> None:
        """Raises `Invalid` with the note."""
        raise Invalid(self.note)
