"""The failure text of a claim."""

from __future__ import annotations

from ..messages.claims import explanation
from ..model import ClaimRecord

FACTS = {"purpose": "test"}


class ExplanationRenderer:
    """Several lines: verdict, estimate, interval and bound; the claim and its place; what was compared with what; how to rerun it."""

    def explain(self, claim: ClaimRecord, nodeid: str | None = None) -> str:
        """The first line is a summary, because pytest's short summary shows only that one.

        `nodeid` is the node id as seen from the working directory, where that differs from the record's.
        """
        return "\n".join(explanation(claim, nodeid or claim.nodeid))
