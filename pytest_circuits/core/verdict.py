"""Estimates, bounds, and the verdict that follows from both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

CERTIFIED, REFUTED, INCONCLUSIVE, INVALID = "certified", "refuted", "inconclusive", "invalid"
VERDICTS = (CERTIFIED, REFUTED, INCONCLUSIVE, INVALID)
AFFORDABLE = 1000  # a larger factor of examples is not suggested
MEASURED = "measured"  # what a study expects: any verdict but invalid
EXPECTATIONS = (*VERDICTS, MEASURED)
REASONS = (
    "interval-inside-bound", "interval-misses-bound", "interval-straddles-bound", "not-finite", "counterexample", "no-counterexample",
    "unsettled",
)  # fmt: skip


def as_expected(verdict: str, expect: str) -> bool:
    """Whether a claim with this verdict passes."""
    return verdict != INVALID if expect == MEASURED else verdict == expect


@dataclass(frozen=True)
class Estimate:
    """A measured number with its uncertainty. Prints as value, interval and n.

    `n` counts examples; `kind` names the kind of interval; `details` is what a reader needs to believe it. `payload` is what a
    baseline stores besides, so that a later model can be compared on the same examples (`pytest_circuits.properties.payload`).
    """

    value: float
    interval: tuple[float, float]
    n: int
    confidence: float = 0.95
    kind: str = ""
    property: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    unsettled: str | None = None  # why no interval can settle the claim
    payload: Mapping[str, Any] = field(default_factory=dict, repr=False)
    search: Search | None = None
    shrinks: bool = True  # whether the interval narrows as 1/√n; those of counts and of yes or no do not

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3g} [{low:.3g}, {high:.3g}] (n={self.n}, {self.confidence:.0%})"


@dataclass(frozen=True)
class SampleSize:
    """The sample behind an estimate: `groups` of `examples` of a task, which can have at most `most` groups (None: unknown)."""

    task: str
    groups: int
    examples: int
    most: int | None = None


@dataclass(frozen=True)
class Search:
    """A search for counterexamples, behind the estimate of a share of examples that hold.

    `searched` counts the distinct examples; `counterexample` describes one that fails, or is None; `fails_at_most`
    bounds, at the confidence of the estimate, the share of independent draws that fail.
    """

    searched: int
    counterexample: str | None
    fails_at_most: float


@dataclass(frozen=True)
class Bound:
    """`at_least`, `at_most`, or both (`within`)."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def universal(self) -> bool:
        """Whether it requires a share of 1, so that every example must hold."""
        return self.at_least == 1 and self.at_most is None

    @property
    def within(self) -> bool:
        """Whether the bound has two sides."""
        return self.at_least is not None and self.at_most is not None

    def as_dict(self) -> dict[str, Any]:
        """As written in a spec: one key."""
        if self.within:
            return {"within": [self.at_least, self.at_most]}
        return {"at_least": self.at_least} if self.at_least is not None else {"at_most": self.at_most}

    def __str__(self) -> str:
        if self.within:
            return f"within [{self.at_least:g}, {self.at_most:g}]"
        return f"at least {self.at_least:g}" if self.at_least is not None else f"at most {self.at_most:g}"

    def vacuous(self, lowest: float | None, highest: float | None) -> str | None:
        """Why every value, or none, in [lowest, highest] meets this bound; None if some do and some do not."""
        low = -float("inf") if lowest is None else lowest
        high = float("inf") if highest is None else highest
        floor = self.at_least if self.at_least is not None else -float("inf")
        ceiling = self.at_most if self.at_most is not None else float("inf")
        values = f"values lie in [{low:g}, {high:g}]"
        if floor > ceiling:
            return f"no value can be {self}: the lower end is above the upper one"
        if floor > high or ceiling < low:
            return f"no value can be {self}: {values}"
        if floor <= low and ceiling >= high:
            return f"every value is {self}: {values}"
        return None


@dataclass(frozen=True)
class Verdict:
    """One of certified, refuted, inconclusive, invalid, with the facts behind it.

    `code` is one of `REASONS`, or that of the error that made the claim invalid; `arguments` are plain values, from which
    `report.messages.verdicts.reason` makes a sentence.
    """

    kind: str
    code: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def invalid(code: str, message: str) -> Verdict:
    """The verdict on a claim that could not be measured; the message is that of the error."""
    return Verdict(INVALID, code, {"message": message})


def decide(estimate: Estimate, bound: Bound, supply: SampleSize | None = None) -> Verdict:
    """Certified: the whole interval meets the bound. Refuted: all of it misses. Otherwise inconclusive.

    An estimate or interval that is not finite is invalid: it was not measured. Where the bound requires all examples of a search to hold,
    a counterexample refutes; without one the claim is certified as not refuted by the search. `supply` is the sample that further examples
    would extend.
    """
    low, high = estimate.interval
    measured = {"estimate": estimate.value, "interval": [low, high], "confidence": estimate.confidence}
    if not all(map(isfinite, (estimate.value, low, high))):
        return Verdict(INVALID, "not-finite", {**measured, "n": estimate.n})
    if estimate.unsettled:
        return Verdict(INCONCLUSIVE, "unsettled", {**measured, "n": estimate.n, "why": estimate.unsettled})
    if estimate.search is not None and bound.universal:
        return _decide_search(estimate, estimate.search)
    floor = bound.at_least if bound.at_least is not None else -float("inf")
    ceiling = bound.at_most if bound.at_most is not None else float("inf")
    facts = {**measured, "bound": bound.as_dict()}
    if floor <= low and high <= ceiling:
        return Verdict(CERTIFIED, "interval-inside-bound", facts)
    if high < floor or low > ceiling:
        return Verdict(REFUTED, "interval-misses-bound", facts)
    return Verdict(INCONCLUSIVE, "interval-straddles-bound", {**facts, **_outlook(estimate, floor, ceiling, supply)})


def _decide_search(estimate: Estimate, search: Search) -> Verdict:
    """One counterexample refutes, whatever share of examples holds; a search without one is not a proof."""
    if search.counterexample is not None:
        return Verdict(REFUTED, "counterexample", {"searched": search.searched, "counterexample": search.counterexample})
    arguments = {"searched": search.searched, "confidence": estimate.confidence, "fails_at_most": search.fails_at_most}
    return Verdict(CERTIFIED, "no-counterexample", arguments)


def _outlook(estimate: Estimate, floor: float, ceiling: float, supply: SampleSize | None) -> dict[str, Any]:
    """What would probably settle it: interval widths shrink with the square root of n, or of the number of groups."""
    if not estimate.shrinks:
        return {"outlook": "steps"}
    gap = min(abs(estimate.value - edge) for edge in (floor, ceiling) if isfinite(edge))
    half = max(estimate.value - estimate.interval[0], estimate.interval[1] - estimate.value)
    if gap * 100 <= half:
        return {"outlook": "on-bound"}
    factor = (half / gap) ** 2 * 1.1
    if factor > AFFORDABLE:
        return {"outlook": "near-bound", "times": _two_digits(factor)}
    grouped = supply is not None and supply.groups < supply.examples
    now = supply.groups if supply is not None and grouped else estimate.n
    needed = max(_two_digits(now * factor), now + 1)
    facts = {"outlook": "more-examples", "needed": needed, "now": now, "unit": "groups" if grouped else "examples"}
    if supply is not None and supply.most is not None and needed > supply.most:
        return {**facts, "outlook": "task-exhausted", "task": supply.task, "available": supply.most}
    return facts


def _two_digits(number: float) -> int:
    step: int = 10 ** max(0, len(str(int(number))) - 2)
    return round(number / step) * step
