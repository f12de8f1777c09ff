"""Many studies of one population, each judged by the property itself: how often the interval misses the truth, on which side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pytest_circuits.core.verdict import CERTIFIED, REFUTED, Bound, Estimate, decide
from pytest_circuits.errors import Invalid
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.stats.binomial import binomial_interval, binomial_lower

from .world import World

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
SURE = 0.999  # confidence with which a rate must be above the nominal one to be called so; a page has some hundred rates
HAIR = 1e-6  # distance from the truth of a bound that is just wrong, in the property's units: above float32's rounding

Rng = np.random.Generator
Worlds = World | Mapping[str, World]


@dataclass(frozen=True)
class Scenario:
    """A population and a claim about it.

    `draw(rng, n)` is a study of n examples (for a series, worlds by name); `truth(study, estimate)` what the estimate is of, which may
    depend on the sets that the study found. `gap`: power is the share of studies that certify `at_least: truth − gap`. `cost`: how many
    studies a cheap one stands for. `known`: the property's docstring says that its interval can fall short here.
    """

    property: str
    population: str
    parameters: Mapping[str, Any]
    draw: Callable[[Rng, int], Worlds]
    truth: Callable[[Worlds, Estimate], float]
    gap: float = 0.2
    sizes: tuple[int, ...] = (32, 128)
    cost: float = 1.0
    known: bool = False

    @property
    def name(self) -> str:
        """For seeds and tests."""
        return f"{self.property}: {self.population}"


@dataclass
class Tally:
    """What became of `studies` studies of n examples each.

    low_above, high_below: intervals that lie wholly above, or below, the truth. With the bound at the truth these are the false verdicts of
    both kinds: `at_least` falsely certified and `at_most` falsely refuted, or `at_least` falsely refuted and `at_most` falsely certified.
    """

    property: str
    population: str
    n: int
    studies: int = 0
    invalid: int = 0
    unsettled: int = 0
    low_above: int = 0
    high_below: int = 0
    powerful: int = 0
    width: float = 0.0
    truth: float = 0.0
    gap: float = 0.0
    kind: str = ""
    known: bool = False
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """Studies with an interval."""
        return self.studies - self.invalid

    def rate(self, count: int) -> float:
        """Of those that were judged."""
        return count / self.judged if self.judged else float("nan")

    @property
    def coverage(self) -> float:
        """Share of intervals that hold the truth."""
        return 1 - self.rate(self.low_above + self.high_below)

    @property
    def exceeds(self) -> bool:
        """Whether false verdicts on one side are more frequent than nominal, beyond Monte-Carlo error."""
        return any(self.judged and binomial_lower(count, self.judged, SURE) > TAIL for count in (self.low_above, self.high_below))

    def as_dict(self) -> dict[str, Any]:
        """Counts and rates, for the page."""
        found = asdict(self)
        if self.judged:
            found |= {
                "judged": self.judged,
                "false_high": self.rate(self.low_above),
                "false_low": self.rate(self.high_below),
                "coverage": self.coverage,
                "coverage_interval": binomial_interval(self.judged - self.low_above - self.high_below, self.judged, 0.95),
                "power": self.rate(self.powerful),
                "mean_width": self.width / self.judged,
                "mean_truth": self.truth / self.judged,
            }
        return found | {"exceeds": self.exceeds}


def verdicts(estimate: Estimate, truth: float) -> tuple[bool, bool]:
    """Whether a bound just above the truth is certified as `at_least`, and whether one just below it is refuted; both are wrong."""
    too_high = decide(estimate, Bound(at_least=truth + HAIR)).kind == CERTIFIED
    too_low = decide(estimate, Bound(at_least=truth - HAIR)).kind == REFUTED
    return too_high, too_low


def run(scenario: Scenario, n: int, studies: int, seed: int = 0) -> Tally:
    """Judge `studies` independent studies of n examples."""
    tally = Tally(scenario.property, scenario.population, n, gap=scenario.gap, known=scenario.known)
    for i in range(studies):
        study = scenario.draw(np.random.default_rng([seed, n, i, *scenario.name.encode()]), n)
        tally.studies += 1
        try:
            estimate = ask(scenario, study, i)
        except Invalid as problem:
            tally.invalid += 1
            reason = str(problem)[:90]
            tally.reasons[reason] = tally.reasons.get(reason, 0) + 1
            continue
        note(tally, estimate, scenario.truth(study, estimate))
    return tally


def ask(scenario: Scenario, study: Worlds, number: int = 0) -> Estimate:
    """The property's estimate in one study; each study draws controls of its own."""
    parameters = dict(scenario.parameters)
    if "control_seed" in PROPERTIES.get(scenario.property).parameters.model_fields:
        parameters["control_seed"] = number
    if isinstance(study, World):
        return study.ask(scenario.property, **parameters)
    first = next(iter(study.values()))
    return first.ask(scenario.property, dict(study), **parameters)


def note(tally: Tally, estimate: Estimate, truth: float) -> None:
    """Hold an estimate against the truth."""
    too_high, too_low = verdicts(estimate, truth)
    tally.low_above += too_high
    tally.high_below += too_low
    tally.unsettled += estimate.unsettled is not None
    tally.powerful += decide(estimate, Bound(at_least=truth - tally.gap)).kind == CERTIFIED
    tally.width += estimate.interval[1] - estimate.interval[0]
    tally.truth += truth
    tally.kind = estimate.kind


def run_all(scenarios: Iterable[Scenario], studies: int, seed: int = 0, tell: Callable[[Tally], None] = lambda tally: None) -> list[Tally]:
    """All scenarios at all their sizes; dear ones with fewer studies."""
    found = []
    for scenario in scenarios:
        for n in scenario.sizes:
            found.append(run(scenario, n, max(20, round(studies / scenario.cost)), seed))
            tell(found[-1])
    return found
