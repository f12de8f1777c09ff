"""Consistency: do the same components recur over a task's prompts?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, Share, TaskName
from ..payload import frequencies, per_group
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.examples import check_share, circuits, describe, examples, intact, set_details
from ..steps.removal import DiscoveredTask, attempt, discovered, shown

if TYPE_CHECKING:
    from ...core.results import CircuitSet

HALVES = 20
"""Random splits of the discovery groups into halves."""


class Reuse(CircuitParameters):
    """reuse@P = mean over evaluation examples of |C_i ∩ S_P| / |C_i|.

    C_i is the top-K circuit of example i, S_P the components in at least a share P of the discovery examples'
    circuits. `definition: size` is min(|S_P|, k)/k, as in the paper's code; at P = 1 in sample the two agree. Range
    [0, 1]; 0 when S_P is empty. Reported beside what the shared sets of the other tasks in `beside` would score on the same circuits,
    what random sets with as many heads and MLPs would (chance), and reuse between two halves of the discovery examples (the
    noise ceiling: S_P of one half scored on the other). Invalid below the accuracy gate, and when all attribution scores are zero.
    Source: arXiv 2605.08348. Interval: betting, over groups.
    """

    task: TaskName
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    definition: Annotated[Literal["coverage", "size"], Field(description="coverage: |C∩S|/|C|; size: min(|S|,k)/k")] = "coverage"
    beside: Annotated[
        list[TaskName],
        Field(
            json_schema_extra={"circuits": "task"},
            description="other tasks, whose shared sets are scored as well, for comparison; the task itself is left out",
        ),
    ] = []  # noqa: RUF012 (pydantic copies it)

    @model_validator(mode="after")
    def _others(self) -> Reuse:
        if len(set(self.beside)) < len(self.beside) or self.beside == [self.task]:
            raise ValueError(f"beside names other tasks than {self.task!r}, each once; got {', '.join(self.beside)}")
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Ask for the attribution of all examples and the intact model's answers; compare the two sides of the split."""
    from ...stats.betting import grouped_mean_interval

    p: Reuse = claim.parameters
    found = yield from examples(claim, p.task)
    outcome = yield from intact(claim, p.task, found)
    universe = yield from describe(claim)
    every = yield from circuits(claim, p.task)
    discovery, evaluation = every.take(found.discovery), every.take(found.evaluation)
    check_share(p.p, len(discovery))
    shared = discovery.shared_mask(p.p)
    names = [u for u, inside in zip(every.units, shared, strict=True) if inside]
    coverage = evaluation.coverage(shared, p.definition)
    groups = found.groups(found.evaluation)
    value, interval, count = grouped_mean_interval(coverage, groups, p.confidence)
    beside: dict[str, Any] = {}
    for task in (one for one in p.beside if one != p.task):
        other = yield from attempt(discovered(claim, task))
        beside[task] = _beside(other, evaluation, groups, p.definition)
    frequency = discovery.counts / len(discovery)
    order = sorted(range(len(every.units)), key=lambda i: (-frequency[i], i))[:10]
    details = {
        "shared_set": set_details(names, universe),
        "empty_shared_set": not names,
        "most_frequent": {every.units[i]: round(float(frequency[i]), 4) for i in order},
        "circuit_size": int(every.members.sum(1).max()),
        "universe": universe.components,
        "examples_without_circuit": int((~every.members.any(1)).sum()),
        "accuracy": outcome.accuracy,
        "groups_evaluated": count,
        "chance": _chance(evaluation, shared, groups) if p.definition == "coverage" else None,
        "noise_ceiling": _ceiling(discovery, found.groups(found.discovery), p),
        "beside": beside,
        **found.as_dict(),
    }
    details["notes"] = _told(details, names, len(discovery))
    kept = per_group(coverage, groups, 0.0, 1.0) | frequencies(discovery, found.groups(found.discovery))
    return Estimate(value, interval, len(coverage), p.confidence, "betting interval over groups", "reuse", details, kept=kept)


def _mean(coverage: Any, groups: list[str]) -> float:
    from ...stats.groups import group_means

    return float(group_means(coverage, groups)[0].mean())


def _beside(other: DiscoveredTask | Invalid, evaluation: CircuitSet, groups: list[str], definition: str) -> dict[str, Any]:
    """What another task's shared set would score on these circuits, or why it has none."""
    if isinstance(other, Invalid):
        return {"reuse": None, "reason": str(other)}
    coverage = evaluation.coverage(_mask(evaluation, other.shared), definition)
    return {"reuse": _mean(coverage, groups), "units": list(other.shared), "size": len(other.shared)}


def _mask(circuits: CircuitSet, names: tuple[str, ...]) -> Any:
    import numpy as np

    inside = set(names)
    return np.asarray([unit in inside for unit in circuits.units], dtype=bool)


def _chance(evaluation: CircuitSet, shared: Any, groups: list[str]) -> float:
    """The expected coverage by a random set with as many heads and MLPs as S_P: |C ∩ type|·|S ∩ type|/|type|, summed, over |C|."""
    import numpy as np

    mlp = np.asarray([is_mlp(unit) for unit in evaluation.units])
    size = evaluation.members.sum(1)
    hits = sum(evaluation.members[:, kind].sum(1) * float(shared[kind].mean()) for kind in (mlp, ~mlp) if kind.any())
    return _mean(np.where(size > 0, hits / np.maximum(size, 1), 0.0), groups)


def _ceiling(discovery: CircuitSet, groups: list[str], p: Reuse) -> float | None:
    """S_P of one random half of the discovery groups scored on the other, both ways, mean over `HALVES` splits; None for too few."""
    import numpy as np

    from ...stats.groups import group_codes
    from ...stats.overlap import halves

    codes, names = group_codes(groups)
    scores = []
    for half in halves(len(names), HALVES):
        for side in (half[codes] == 1, half[codes] == 0):
            inside, outside = np.flatnonzero(side), np.flatnonzero(~side)
            if not len(inside) or not len(outside):
                return None
            mask = discovery.take(inside).shared_mask(p.p)
            scores.append(_mean(discovery.take(outside).coverage(mask, p.definition), [groups[int(i)] for i in outside]))
    return float(np.mean(scores))


def _told(d: dict[str, Any], names: list[str], discovery: int) -> list[str]:
    size = f"circuits have {d['circuit_size']} of {d['universe']} components"
    found = f"shared set of {discovery} discovery examples: {shown(names)}; {size}"
    if not names:
        top = ", ".join(f"{unit} {share:.0%}" for unit, share in list(d["most_frequent"].items())[:5])
        found = f"the shared set is empty; most frequent: {top}"
    context = [
        f"{name} {value:.2f}" for name, value in (("random sets", d["chance"]), ("noise ceiling", d["noise_ceiling"])) if value is not None
    ]
    others = [f"set of {task} {'none' if one['reuse'] is None else format(one['reuse'], '.2f')}" for task, one in d["beside"].items()]
    compared = [f"for comparison: {', '.join([*context, *others])}"] if context or others else []
    return [found, f"accuracy of the intact model: {d['accuracy']:.3f}", *compared]


REUSE = Property(
    "reuse",
    Reuse,
    estimate,
    0.0,
    1.0,
    "the same components recur over a task's prompts (reuse@P)",
    "share of a circuit",
    preflight=best_case(0, 1),
)
