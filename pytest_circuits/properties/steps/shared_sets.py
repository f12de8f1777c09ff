"""What properties of a task's shared set have in common: its discovery examples, and when a set says nothing about further examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.shares import needed
from ...core.units import Universe
from ...measurement.requests import Steps
from ..protocol import Claim
from .examples import Examples, attributed, check_share, describe, examples, intact, selected

if TYPE_CHECKING:
    from ...core.results import Attribution, CircuitSet

AT_ONE = (
    "at p: 1 a shared set shrinks with every further example, so its overlap has no value that examples could estimate "
    "(bootstrap intervals cover it in two of three cases); use p: 0.99 or less for a verdict"
)


@dataclass(frozen=True)
class DiscoveredCircuits:
    """A task's discovery examples: scores and circuits [n], each row's group; and the accuracy on the evaluation ones."""

    scores: Attribution
    circuits: CircuitSet
    groups: list[str]
    examples: Examples
    accuracy: float
    universe: Universe

    @property
    def common(self) -> dict[str, Any]:
        """Details of every property of a shared set."""
        return {
            "universe": self.universe.components,
            "accuracy": self.accuracy,
            "groups_discovered": len(set(self.groups)),
            **self.examples.as_dict(),
        }


def discovered(claim: Claim, task: str) -> Steps[DiscoveredCircuits]:
    """The discovery examples' circuits. Raises `Invalid` below the accuracy gate, without any circuit, and for a P that asks for one."""
    from dataclasses import replace

    found = yield from examples(claim, task)
    outcome = yield from intact(claim, task, found)
    universe = yield from describe(claim)
    scores = yield from attributed(claim, task)
    every = selected(scores, claim.parameters, task)
    rows = found.discovery
    share = getattr(claim.parameters, "p", None)
    if share is not None:
        check_share(share, len(rows))
    here = replace(scores, values=scores.values[rows], blocks=scores.blocks[:0])
    return DiscoveredCircuits(here, every.take(rows), found.groups(rows), found, float(outcome.accuracy), universe)


def unsettled(p: float, n: int, what: str) -> str | None:
    """Why S_P of n discovery examples cannot settle a claim about `what`, or None. So it is where P·n is more than n − 1."""
    if needed(p, n) < n:
        return None
    more = "use p: 0.99 or less" if p == 1 else f"use a lower p, or more than {1 / (1 - p):.0f} discovery examples"
    return (
        f"at p: {p:g} of {n} discovery examples a shared component must be in every circuit, so the set shrinks with every further example "
        f"and {what} has no value that examples could estimate; {more} for a verdict"
    )
