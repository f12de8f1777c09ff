"""Ratios of two pieces of work, timed turn by turn so that a noisy machine disturbs both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

Work = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One line of the table: what was compared, the ratio with its spread over rounds, and the bar it should meet."""

    name: str
    ratio: float
    low: float
    high: float
    bar: str
    met: bool | None
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratios(numerator: Work, denominator: Work, rounds: int) -> tuple[float, float, float]:
    """(median, lowest, highest) of numerator/denominator over rounds; the order alternates, and one round is thrown away."""
    numerator(), denominator()
    found = []
    for i in range(rounds):
        if i % 2:
            below, above = seconds(denominator), seconds(numerator)
        else:
            above, below = seconds(numerator), seconds(denominator)
        found.append(above / below)
    return statistics.median(found), min(found), max(found)


def at_most(name: str, bar: float, numerator: Work, denominator: Work, rounds: int, note: str = "") -> Row:
    middle, low, high = ratios(numerator, denominator, rounds)
    return Row(name, middle, low, high, f"≤ {bar:g}", middle <= bar, note)


def at_least(name: str, bar: float, numerator: Work, denominator: Work, rounds: int, note: str = "") -> Row:
    middle, low, high = ratios(numerator, denominator, rounds)
    return Row(name, middle, low, high, f"≥ {bar:g}", middle >= bar, note)


def timed_row(name: str, numerator: Work, denominator: Work, rounds: int, note: str = "") -> Row:
    """A ratio without a bar."""
    return Row(name, *ratios(numerator, denominator, rounds), "—", None, note)
