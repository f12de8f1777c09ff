"""Where a plan ends."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Request


@dataclass(frozen=True)
class PlanBoundary(Request[None]):
    """What is asked for from here on depends on what was measured: a plan ends here with `note`, a measuring run continues."""

    note: str
