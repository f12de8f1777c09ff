"""What pytest says of a test with claims: a word, and a letter for those that fail."""

from __future__ import annotations

from collections.abc import Sequence

from ..messages.claims import failed_word, passed_word
from ..model import ClaimRecord

FACTS = {"purpose": "test"}

ORDER = ("invalid", "refuted", "inconclusive", "certified")  # the word of a test is that of its worst claim
LETTERS = {"invalid": "!", "refuted": "F", "inconclusive": "?", "certified": "F"}


class StatusRenderer:
    """Words and letters of tests."""

    def passed(self, claims: Sequence[ClaimRecord]) -> str:
        """The word of a test that passed: CERTIFIED, REFUTED (as expected), REFUTED (a study) …"""
        return passed_word(min(claims, key=_badness))

    def failed(self, claims: Sequence[ClaimRecord], inconclusive: str = "fail") -> tuple[str, str] | None:
        """Letter and word of a test that failed; None if it failed for another reason than its claims.

        `inconclusive` is the option: skip and pass excuse inconclusive claims that are expected to be certified.
        """

        def is_excused(claim: ClaimRecord) -> bool:
            return claim.verdict == "inconclusive" and claim.expect == "certified" and inconclusive != "fail"

        failing = [claim for claim in claims if not claim.passed and not is_excused(claim)]
        if not failing:
            return None
        worst = min(failing, key=_badness)
        return LETTERS[worst.verdict], failed_word(worst)


def _badness(claim: ClaimRecord) -> int:
    return ORDER.index(claim.verdict)
