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


def as_expected(verdict: str, expect: str) -> bool:
    """Whether a claim with this verdict passes."""
    return verdict != INVALID if expect == MEASURED else verdict == expect


@dataclass(frozen=True)
class Estimate:
    """A measured number with its uncertainty. Prints as value, interval and n.

    `n` counts examples; `kind` names the kind of interval; `details` is what a reader needs to believe it. `kept` is what a
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
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)
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

    `tried` counts the distinct examples; `counterexample` describes one that fails, or is None; `fails_at_most`
    bounds, at the confidence of the estimate, the share of independent draws that fail.
    """

    tried: int
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
    """Certified, refuted, inconclusive or invalid, with the reason in words."""

    kind: str
    reason: str


def decide(estimate: Estimate, bound: Bound, supply: SampleSize | None = None) -> Verdict:
    """Certified: the whole interval meets the bound. Refuted: all of it misses. Otherwise inconclusive.

    An estimate or interval that is not finite is invalid: it was not measured. Where the bound requires all examples of a search to hold,
    a counterexample refutes; without one the claim is certified as not refuted by the search. `supply` is the sample that further examples
    would extend.
    """
    low, high = estimate.interval
    if not all(map(isfinite, (estimate.value, low, high))):
        return Verdict(INVALID, f"the estimate is not a finite number: {estimate}")
    if estimate.unsettled:
        return Verdict(INCONCLUSIVE, f"{estimate}: {estimate.unsettled}")
    if estimate.search is not None and bound.universal:
        return _searched(estimate, estimate.search)
    floor = bound.at_least if bound.at_least is not None else -float("inf")
    ceiling = bound.at_most if bound.at_most is not None else float("inf")
    shown = f"{estimate.value:.3f} with {estimate.confidence:.0%} interval [{low:.3f}, {high:.3f}]"
    if floor <= low and high <= ceiling:
        return Verdict(CERTIFIED, f"{shown}: the whole interval is {bound}")
    if high < floor or low > ceiling:
        return Verdict(REFUTED, f"{shown}: the whole interval misses '{bound}'")
    return Verdict(INCONCLUSIVE, f"{shown}: the interval straddles '{bound}'{_more(estimate, floor, ceiling, supply)}")


def _searched(estimate: Estimate, search: Search) -> Verdict:
    """One counterexample refutes, whatever share of examples holds; the absence of one is not a proof."""
    if search.counterexample is not None:
        return Verdict(REFUTED, f"a counterexample among {search.tried} examples: {search.counterexample}")
    return Verdict(
        CERTIFIED,
        f"no counterexample among {search.tried} examples, which is a search and not a proof: with {estimate.confidence:.0%} confidence "
        f"at most {search.fails_at_most:.2%} of independent draws fail",
    )


def _more(estimate: Estimate, floor: float, ceiling: float, supply: SampleSize | None) -> str:
    """How many examples would probably settle it: interval widths shrink with the square root of n, or of the number of groups."""
    if not estimate.shrinks:
        return "; its ends move in steps, so the number of examples that would settle it is unknown: add prompts, or move the bound"
    gap = min(abs(estimate.value - edge) for edge in (floor, ceiling) if isfinite(edge))
    half = max(estimate.value - estimate.interval[0], estimate.interval[1] - estimate.value)
    if gap * 100 <= half:
        return "; the estimate lies on the bound, so no affordable number of examples is likely to settle it"
    factor = (half / gap) ** 2 * 1.1
    if factor > AFFORDABLE:
        times = _two_digits(factor)
        return f"; the estimate is so close to the bound that settling it would take about {times} times as many examples: move the bound"
    grouped = supply is not None and supply.groups < supply.examples
    now = supply.groups if supply is not None and grouped else estimate.n
    wanted = max(_two_digits(now * factor), now + 1)
    noun = "groups of prompts" if grouped else "examples"
    if supply is not None and supply.most is not None and wanted > supply.most:
        return (
            f"; about {wanted} {noun} instead of {now} would probably settle it, and task {supply.task!r} has no more than {supply.most} "
            "for this: widen the task, or move the bound"
        )
    return f"; about {wanted} {noun} instead of {now} would probably settle it"


def _two_digits(number: float) -> int:
    step: int = 10 ** max(0, len(str(int(number))) - 2)
    return round(number / step) * step
