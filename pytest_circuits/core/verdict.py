"""From an estimate with an interval, and a bound, to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

CERTIFIED, REFUTED, INCONCLUSIVE, INVALID = "certified", "refuted", "inconclusive", "invalid"
VERDICTS = (CERTIFIED, REFUTED, INCONCLUSIVE, INVALID)
AFFORDABLE = 1000  # times as many examples as there are
MEASURED = "measured"  # expected of a study: any verdict but invalid
EXPECTATIONS = (*VERDICTS, MEASURED)


def as_expected(verdict: str, expect: str) -> bool:
    """Whether a claim with this verdict passes."""
    return verdict != INVALID if expect == MEASURED else verdict == expect


@dataclass(frozen=True)
class Estimate:
    """A measured number with its uncertainty. Prints as value, interval and n.

    `n` counts examples; `kind` names how the interval was made; `details` is what a reader needs to believe it. `kept` is what a
    baseline keeps besides, so that a later model can be compared on the same examples (`pytest_circuits.properties.payload`).
    """

    value: float
    interval: tuple[float, float]
    n: int
    confidence: float = 0.95
    kind: str = ""
    property: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    unsettled: str | None = None  # why the number cannot settle a claim, whatever its interval
    kept: Mapping[str, Any] = field(default_factory=dict, repr=False)
    search: Search | None = None
    shrinks: bool = True  # whether the interval gets narrower as 1/√n: those of counts, and of yes or no, do not

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3g} [{low:.3g}, {high:.3g}] (n={self.n}, {self.confidence:.0%})"


@dataclass(frozen=True)
class SampleSize:
    """What an estimate is made of: `groups` of `examples` of a task, of which there are at most `most` groups (None: not known)."""

    task: str
    groups: int
    examples: int
    most: int | None = None


@dataclass(frozen=True)
class Search:
    """A search for counterexamples, behind the estimate of a share of examples that hold.

    `tried` counts the different examples that were judged; `counterexample` is one that fails, in words, or None; `fails_at_most`
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
        """Whether it asks a share to be 1, that is, something of all examples."""
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
        """Why this bound says nothing about a value in [lowest, highest], or None if it says something."""
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
    """One of certified, refuted, inconclusive, invalid; with the reason in words."""

    kind: str
    reason: str


def decide(estimate: Estimate, bound: Bound, supply: SampleSize | None = None) -> Verdict:
    """Certified: the whole interval meets the bound. Refuted: all of it misses. Otherwise inconclusive.

    An estimate or interval that is not finite is invalid: it was not measured. Where a bound asks all examples of a search to hold, a
    counterexample refutes, and without one the claim is certified as not refuted by the search. `supply` is where further examples would
    have to come from.
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
    """One counterexample refutes, whatever share of examples holds; that none was found is no proof."""
    if search.counterexample is not None:
        return Verdict(REFUTED, f"a counterexample among {search.tried} examples: {search.counterexample}")
    return Verdict(
        CERTIFIED,
        f"no counterexample among {search.tried} examples, which is a search and no proof: with {estimate.confidence:.0%} confidence "
        f"at most {search.fails_at_most:.2%} of independent draws fail",
    )


def _more(estimate: Estimate, floor: float, ceiling: float, supply: SampleSize | None) -> str:
    """How many examples would probably settle it: interval widths shrink with the square root of n, or of the number of groups."""
    if not estimate.shrinks:
        return "; its ends move in steps, so how many more examples would settle it cannot be told from it: add prompts, or move the bound"
    gap = min(abs(estimate.value - edge) for edge in (floor, ceiling) if isfinite(edge))
    half = max(estimate.value - estimate.interval[0], estimate.interval[1] - estimate.value)
    if gap * 100 <= half:
        return "; the estimate lies on the bound, so no affordable number of examples is likely to settle it"
    factor = (half / gap) ** 2 * 1.1
    if factor > AFFORDABLE:
        many = _two_digits(factor)
        return f"; the estimate lies so close to the bound that it would take about {many} times as many examples: move the bound"
    grouped = supply is not None and supply.groups < supply.examples
    now = supply.groups if supply is not None and grouped else estimate.n
    wanted = max(_two_digits(now * factor), now + 1)
    what = "groups of prompts" if grouped else "examples"
    if supply is not None and supply.most is not None and wanted > supply.most:
        return (
            f"; about {wanted} {what} instead of {now} would probably settle it, and task {supply.task!r} has no more than {supply.most} "
            "for this: widen the task, or move the bound"
        )
    return f"; about {wanted} {what} instead of {now} would probably settle it"


def _two_digits(number: float) -> int:
    step: int = 10 ** max(0, len(str(int(number))) - 2)
    return round(number / step) * step
