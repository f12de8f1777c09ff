"""Consistency: do the same components recur over a task's prompts?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.driver import catch_invalid
from ...measurement.requests import Steps
from ..parameters import SharedSetParameters, TaskName
from ..payload import frequencies, per_group
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.examples import competent_task, describe_model
from ..steps.removal import discover_removable_set
from ..steps.shared_sets import SharedSetTask, discover_circuits, format_set, most_frequent, set_details

if TYPE_CHECKING:
    from ...core.results import CircuitSet

HALVES = 20
"""Random splits of the discovery groups into halves."""


class Reuse(SharedSetParameters):
    """reuse@P = mean over evaluation examples of |C_i ∩ S_P| / |C_i|.

    C_i is the top-K circuit of example i; S_P are the components in at least a share P of the circuits of the discovery examples.
    `definition: size` is min(|S_P|, k)/k, as in the paper's code; at P = 1 in sample the two agree. Range [0, 1]; 0 if S_P is empty. The
    report compares it with three levels on the same circuits: the shared sets of the tasks in `beside`, random sets with as many heads
    and MLPs (chance), and S_P of one half of the discovery examples on the circuits of the other half (noise ceiling). Invalid below the
    accuracy gate, and when all attribution scores are zero. Source: arXiv 2605.08348. Interval: betting, over groups.
    """

    task: TaskName
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
    """Find the shared set of the discovery examples; average its coverage of the circuits of the evaluation examples."""
    from ...stats.betting import grouped_mean_interval

    parameters: Reuse = claim.parameters
    task = yield from competent_task(claim, parameters.task)
    universe = yield from describe_model(claim)
    discovered = yield from discover_circuits(claim, task)
    circuits, discovery = discovered.circuits, discovered.discovery
    evaluation, groups = circuits.take(task.examples.evaluation), task.groups
    mask = discovery.shared_mask(parameters.p)
    shared = discovery.shared(parameters.p)
    coverage = evaluation.coverage(mask, parameters.definition)
    value, interval, count = grouped_mean_interval(coverage, groups, parameters.confidence)
    beside: dict[str, Any] = {}
    for name in parameters.beside:
        if name != parameters.task:
            other = yield from catch_invalid(discover_removable_set(claim, name))
            beside[name] = _beside(other, evaluation, groups, parameters.definition)
    details = {
        "shared_set": set_details(shared, universe),
        "empty_shared_set": not shared,
        "most_frequent": most_frequent(discovery),
        "circuit_size": int(circuits.members.sum(1).max()),
        "universe": universe.components,
        "examples_without_circuit": int((~circuits.members.any(1)).sum()),
        "accuracy": task.intact.accuracy,
        "groups_evaluated": count,
        "chance": _chance(evaluation, mask, groups) if parameters.definition == "coverage" else None,
        "noise_ceiling": _ceiling(discovery, discovered.discovery_groups, parameters),
        "beside": beside,
        **task.examples.as_dict(),
    }
    details["notes"] = _notes(details, shared, len(discovery))
    payload = per_group(coverage, groups, 0.0, 1.0) | frequencies(discovery, discovered.discovery_groups)
    return Estimate(
        value, interval, len(coverage), parameters.confidence, "betting interval over groups", "reuse", details, payload=payload
    )


def _mean(coverage: Any, groups: list[str]) -> float:
    from ...stats.groups import group_means

    return float(group_means(coverage, groups)[0].mean())


def _beside(other: SharedSetTask | Invalid, evaluation: CircuitSet, groups: list[str], definition: str) -> dict[str, Any]:
    """The score of another task's shared set on these circuits, or why it has none."""
    if isinstance(other, Invalid):
        return {"reuse": None, "reason": str(other)}
    coverage = evaluation.coverage(_mask(evaluation, other.shared), definition)
    return {"reuse": _mean(coverage, groups), "units": list(other.shared), "size": len(other.shared)}


def _mask(circuits: CircuitSet, names: tuple[str, ...]) -> Any:
    import numpy as np

    members = set(names)
    return np.asarray([unit in members for unit in circuits.units], dtype=bool)


def _chance(evaluation: CircuitSet, shared: Any, groups: list[str]) -> float:
    """The expected coverage by a random set with as many heads and MLPs as S_P: |C ∩ type|·|S ∩ type|/|type|, summed, over |C|."""
    import numpy as np

    mlp = np.asarray([is_mlp(unit) for unit in evaluation.units])
    size = evaluation.members.sum(1)
    hits = sum(evaluation.members[:, kind].sum(1) * float(shared[kind].mean()) for kind in (mlp, ~mlp) if kind.any())
    return _mean(np.where(size > 0, hits / np.maximum(size, 1), 0.0), groups)


def _ceiling(discovery: CircuitSet, groups: list[str], parameters: Reuse) -> float | None:
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
            mask = discovery.take(inside).shared_mask(parameters.p)
            scores.append(_mean(discovery.take(outside).coverage(mask, parameters.definition), [groups[int(i)] for i in outside]))
    return float(np.mean(scores))


def _notes(details: dict[str, Any], shared: tuple[str, ...], discovery: int) -> list[str]:
    size = f"circuits have {details['circuit_size']} of {details['universe']} components"
    described = f"shared set of {discovery} discovery examples: {format_set(shared)}; {size}"
    if not shared:
        top = ", ".join(f"{unit} {share:.0%}" for unit, share in list(details["most_frequent"].items())[:5])
        described = f"the shared set is empty; most frequent: {top}"
    levels = (("random sets", details["chance"]), ("noise ceiling", details["noise_ceiling"]))
    context = [f"{name} {value:.2f}" for name, value in levels if value is not None]
    for task, other in details["beside"].items():
        context.append(f"set of {task} {'none' if other['reuse'] is None else format(other['reuse'], '.2f')}")
    compared = [f"for comparison: {', '.join(context)}"] if context else []
    return [described, f"accuracy of the intact model: {details['accuracy']:.3f}", *compared]


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
