"""Overlap of the shared sets of two tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ...core.units import is_mlp, layer_of
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, Share, TaskName
from ..protocol import Claim, Property
from ..steps.examples import check_share, circuits, describe, empty_set, examples, intact, set_details
from ..steps.removal import COMMON, shown
from ..steps.shared_sets import AT_ONE

if TYPE_CHECKING:
    from ...core.results import CircuitSet


class Jaccard(CircuitParameters):
    """|S_A ∩ S_B| / |S_A ∪ S_B| of the shared sets S_P of two tasks, from their discovery examples.

    Reported beside its chance level (random sets with as many heads and MLPs; and as many in each layer) and its
    noise ceiling (the Jaccard of S_P between two disjoint halves of one task's discovery examples): a low overlap
    with a low ceiling says nothing about mechanisms. Range [0, 1]. `over_chance: true` subtracts the chance level, the mean
    Jaccard of random sets with as many heads and MLPs as these two: 0 is what counting alone gives, the highest possible value is 1 minus
    that level, and a negative one says that the sets avoid each other; range [−1, 1]. (A difference, not the quotient
    (J − chance)/(1 − chance), which explodes where MLP-heavy sets must overlap.) Invalid when a shared set is empty, below the accuracy
    gate, and for tasks with prompts in common. Source: arXiv 2605.08348. Interval: bias-corrected bootstrap over the groups of both
    tasks, sets and chance level recomputed; approximate: measured coverage of 95% intervals 95–100%, but 86–91% where frequencies lie
    within 5 points of P at 32 discovery examples, the upper end then being too low.
    """

    tasks: Annotated[list[TaskName], Field(min_length=2, max_length=2, description="two tasks")]
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    over_chance: Annotated[bool, Field(description="subtract the mean Jaccard of random sets with as many heads and MLPs")] = False
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000


def estimate(claim: Claim) -> Steps[Estimate]:
    """Ask for both tasks' attribution; bootstrap the overlap of their shared sets."""
    from ...stats import bootstrap, overlap

    p: Jaccard = claim.parameters
    if p.tasks[0] == p.tasks[1]:
        raise Invalid(f"both tasks are {p.tasks[0]!r}: a set overlaps with itself by definition; name two tasks")
    universe = yield from describe(claim)
    sides: list[tuple[CircuitSet, list[str]]] = []
    details: dict[str, Any] = {"shared_sets": {}, "accuracy": {}, "noise_ceiling": {}, "examples": {}}
    prompts: set[str] = set()
    for task in p.tasks:
        found = yield from examples(claim, task)
        outcome = yield from intact(claim, task, found)
        common = prompts & set(found.encoded.prompts)
        if len(common) > COMMON * min(len(prompts) or found.encoded.n, found.encoded.n):
            raise Invalid(
                f"tasks {p.tasks[0]!r} and {p.tasks[1]!r} have {len(common)} clean prompts in common, so their sets are not independent; "
                "name tasks without common prompts",
                {"common_prompts": len(common)},
            )
        prompts |= set(found.encoded.prompts)
        every = yield from circuits(claim, task)
        discovery, groups = every.take(found.discovery), found.groups(found.discovery)
        check_share(p.p, len(discovery))
        names = discovery.shared(p.p)
        if not names:
            raise empty_set(p, task, int(discovery.counts.max()), len(discovery))
        sides.append((discovery, groups))
        details["shared_sets"][task] = set_details(names, universe)
        details["accuracy"][task] = outcome.accuracy
        details["noise_ceiling"][task] = _ceiling(discovery, groups, p.p)
        details["examples"][task] = found.as_dict()

    tallies = [overlap.group_tallies(c.members, g) for c, g in sides]
    units = sides[0][0].units
    kinds = ["mlp" if is_mlp(u) else "head" for u in units]

    def statistic(a: Any, b: Any) -> Any:
        rows = [overlap.shared_rows(w, t, s, p.p) for w, (t, s) in zip((a, b), tallies, strict=True)]
        return overlap.agreement_rows(rows[0], rows[1], kinds if p.over_chance else None)

    value, interval, parts = bootstrap.bootstrap_interval(
        statistic, [len(s) for _, s in tallies], p.confidence, 0, p.resamples, lowest=-1.0 if p.over_chance else 0.0, highest=1.0
    )
    masks = [c.shared_mask(p.p) for c, _ in sides]
    by_type = overlap.typed_null(masks[0], masks[1], kinds)
    by_layer = overlap.typed_null(masks[0], masks[1], [f"{k}{layer_of(u)}" for k, u in zip(kinds, units, strict=True)])
    details |= {
        "both": [u for u, x, y in zip(units, *masks, strict=True) if x and y],
        "chance": {"by_type": vars(by_type), "by_type_and_layer": vars(by_layer)},
        "jaccard": overlap.jaccard(*masks),
        "over_chance": overlap.jaccard(*masks) - by_type.mean,
        "overlap_coefficient": overlap.overlap_coefficient(*masks),
        "containment": {
            f"{p.tasks[0]} in {p.tasks[1]}": overlap.containment(masks[0], masks[1]),
            f"{p.tasks[1]} in {p.tasks[0]}": overlap.containment(masks[1], masks[0]),
        },
        "bootstrap": parts,
    }
    n = min(len(c) for c, _ in sides)
    unsettled = AT_ONE if p.p == 1 else None
    details["notes"] = _told(p, details)
    return Estimate(value, interval, n, p.confidence, "bias-corrected bootstrap over groups", "jaccard", details, unsettled)


def _ceiling(discovery: CircuitSet, groups: list[str], p: float) -> float | None:
    """Split-half Jaccard, or None where no half has a shared set."""
    from ...stats.overlap import split_half

    try:
        return split_half(discovery.members, groups, p)[0]
    except Invalid:
        return None


def _told(p: Jaccard, details: dict[str, Any]) -> list[str]:
    """The sets, and what their overlap is to be compared with."""
    sets = [f"{task}: {shown(found['units'])}" for task, found in details["shared_sets"].items()]
    ceiling = ", ".join(f"{task} {'none' if c is None else format(c, '.2f')}" for task, c in details["noise_ceiling"].items())
    by_type = details["chance"]["by_type"]
    chance = f"chance level (same numbers of heads and MLPs): {by_type['mean']:.2f} [{by_type['low']:.2f}, {by_type['high']:.2f}]"
    beside = f"{chance}; noise ceiling (split halves): {ceiling}"
    return [*sets, beside, *([f"Jaccard {details['jaccard']:.3f}, of which {by_type['mean']:.3f} by chance"] if p.over_chance else [])]


def _limits(p: Jaccard) -> tuple[float, float]:
    return (-1.0, 1.0) if p.over_chance else (0.0, 1.0)


JACCARD = Property(
    "jaccard",
    Jaccard,
    estimate,
    0.0,
    1.0,
    "overlap of the shared sets of two tasks, beside chance and noise ceiling",
    "Jaccard index",
    limits=_limits,
    grows=False,
)
