"""What pytest says of a test with claims: a word, and a letter for those that fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ORDER = ("invalid", "refuted", "inconclusive", "certified")  # the word of a test is that of its worst claim
LETTERS = {"invalid": "!", "refuted": "F", "inconclusive": "?", "certified": "F"}


def passed(records: Sequence[Mapping[str, Any]]) -> str:
    """The word of a test that passed: CERTIFIED, REFUTED (as expected), REFUTED (a study) …"""
    worst = min(records, key=lambda r: ORDER.index(r["verdict"]))
    how = ""
    if worst["passed"] and worst["verdict"] != "certified":
        how = " (a study)" if worst["expect"] == "measured" else " (as expected)"
    return str(worst["verdict"]).upper() + how


def failed(records: Sequence[Mapping[str, Any]], inconclusive: str = "fail") -> tuple[str, str] | None:
    """Letter and word of a test that failed; None when no claim of it is to blame."""
    lenient = [r for r in records if r["verdict"] == "inconclusive" and r["expect"] == "certified" and inconclusive != "fail"]
    blamed = [r for r in records if not r["passed"] and r not in lenient]
    if not blamed:
        return None
    worst = min(blamed, key=lambda r: ORDER.index(r["verdict"]))
    wanted = "" if worst["expect"] == "certified" else f" (expected {worst['expect']})"
    return LETTERS[worst["verdict"]], worst["verdict"].upper() + wanted
