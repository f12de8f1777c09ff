"""Discovery of a task's shared set S_P: the components that recur in the circuits of its discovery examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core.counted import counted
from ...core.shares import needed
from ...core.units import Universe, head_mlp_split, per_layer
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..protocol import Claim
from .attribution import attribute_examples
from .circuits import checked_circuits
from .examples import CompetentTask

if TYPE_CHECKING:
    from ...core.results import Attribution, CircuitSet

SHOWN = 12
"""Unit names shown of a set."""
UNSETTLED_OVERLAP = (
    "at p: 1 a shared set shrinks with every further example, so its overlap has no value that examples could estimate "
    "(bootstrap intervals cover it in two of three cases); use p: 0.99 or less for a verdict"
)
"""Why the overlap of shared sets settles no claim at P = 1."""


@dataclass(frozen=True)
class DiscoveredTask(CompetentTask):
    """A task with scores [n, N] and circuits [n] of all its examples."""

    scores: Attribution
    circuits: CircuitSet

    @property
    def discovery(self) -> CircuitSet:
        """The circuits of the discovery examples."""
        return self.circuits.take(self.examples.discovery)

    @property
    def discovery_scores(self) -> Attribution:
        """The scores of the discovery examples."""
        return replace(self.scores, values=self.scores.values[self.examples.discovery], blocks=self.scores.blocks[:0])

    @property
    def discovery_groups(self) -> list[str]:
        """The group of each discovery example."""
        return self.examples.discovery_groups

    @property
    def details(self) -> dict[str, Any]:
        """Details of every property of a shared set."""
        return {
            "universe": len(self.circuits.units),
            "accuracy": float(self.intact.accuracy),
            "groups_discovered": len(set(self.discovery_groups)),
            **self.examples.as_dict(),
        }


@dataclass(frozen=True)
class SharedSetTask(DiscoveredTask):
    """A task with the shared set of its discovery examples, which is not empty."""

    shared: tuple[str, ...]


def discover_circuits(claim: Claim, task: CompetentTask) -> Steps[DiscoveredTask]:
    """The circuits of a task. Raises `Invalid` when no example has one, and for a P that a single discovery example reaches."""
    parameters = claim.parameters
    scores = yield from attribute_examples(claim, task.name)
    circuits = checked_circuits(scores, parameters, task.name)
    share = getattr(parameters, "p", None)
    if share is not None:
        check_share(share, len(task.examples.discovery))
    return DiscoveredTask(task.name, task.examples, task.intact, scores, circuits)


def discover_shared_set(claim: Claim, task: CompetentTask) -> Steps[SharedSetTask]:
    """The circuits of a task and their shared set. Raises `Invalid` as `discover_circuits`, and for an empty shared set."""
    discovered = yield from discover_circuits(claim, task)
    shared = shared_units(discovered.discovery, claim.parameters.p, task.name, claim.parameters.threshold)
    return SharedSetTask(task.name, task.examples, task.intact, discovered.scores, discovered.circuits, shared)


def shared_units(discovery: CircuitSet, share: float, task: str, threshold: float | None = None) -> tuple[str, ...]:
    """S_P of these circuits. Raises `Invalid` for an empty one, and for a P that a single example reaches.

    `threshold` is the parameter that cut the circuits; None where a size did.
    """
    check_share(share, len(discovery))
    shared = discovery.shared(share)
    if not shared:
        raise empty_shared_set(share, task, int(discovery.counts.max()), len(discovery), threshold)
    return shared


def check_share(share: float, n: int) -> None:
    """Raise `Invalid` for a share P that a single one of `n` discovery examples reaches: P·n ≤ 1."""
    if n > 1 and needed(share, n) < 2:
        raise Invalid(
            f"p: {share:g} of {n} discovery examples is a single one, so every component of any circuit would count as shared; raise p",
            {"p": share, "discovery": n},
            code=ReasonCode.SHARE_OF_ONE_EXAMPLE,
        )


def empty_shared_set(share: float, task: str, most: int, n: int, threshold: float | None = None) -> Invalid:
    """The refusal for an empty S_P, with the arithmetic: the most frequent unit is in `most` of `n` circuits."""
    return Invalid(
        f"the shared set of task {task!r} is empty: no component is in {needed(share, n)} of {n} circuits (P = {share:g}); "
        f"the most frequent one is in {most}. Lower p or {'raise size' if threshold is None else 'lower threshold'}",
        {"task": task, "needed": needed(share, n), "discovery": n, "most_frequent_count": most},
        code=ReasonCode.EMPTY_SHARED_SET,
    )


def unsettled_share(share: float, n: int, what: str) -> str | None:
    """Why S_P of `n` discovery examples cannot settle a claim about `what`, or None: P·n > n − 1 asks for every circuit."""
    if needed(share, n) < n:
        return None
    remedy = "use p: 0.99 or less" if share == 1 else f"use a lower p, or more than {1 / (1 - share):.0f} discovery examples"
    return (
        f"at p: {share:g} of {n} discovery examples a shared component must be in every circuit, so the set shrinks with every further "
        f"example and {what} has no value that examples could estimate; {remedy} for a verdict"
    )


def set_details(units: Sequence[str], universe: Universe) -> dict[str, Any]:
    """Details of a component set: names, size, heads and MLPs, members in each layer."""
    return {"units": list(units), "size": len(units), **head_mlp_split(units), "per_layer": per_layer(units, universe.layers)}


def most_frequent(circuits: CircuitSet, count: int = 10) -> dict[str, float]:
    """The units that most circuits contain, with their frequency, rounded; ties in the model's order."""
    frequency = circuits.counts / len(circuits)
    order = sorted(range(len(frequency)), key=lambda i: (-frequency[i], i))[:count]
    return {circuits.units[i]: round(float(frequency[i]), 4) for i in order}


def format_set(units: Sequence[str]) -> str:
    """A set as text: its first members, and how many heads and MLPs it has."""
    more = f" and {len(units) - SHOWN} more" if len(units) > SHOWN else ""
    types = head_mlp_split(units)
    return f"{{{', '.join(units[:SHOWN])}{more}}} ({counted(types['heads'], 'head')}, {counted(types['mlps'], 'MLP')})"


def set_overlap(first: Sequence[str], second: Sequence[str]) -> dict[str, Any]:
    """What two sets, not both empty, have in common: members, Jaccard index, and the share of each."""
    both = [unit for unit in first if unit in set(second)]
    union = len(set(first) | set(second))
    shares = {"share_of_first": len(both) / max(1, len(first)), "share_of_second": len(both) / max(1, len(second))}
    return {"both": both, "jaccard": len(both) / union, **shares}
