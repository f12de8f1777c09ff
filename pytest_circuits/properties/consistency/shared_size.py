"""Size of the shared set: how many components recur over a task's prompts?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ...core.shares import Size
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..parameters import BootstrapParameters, SharedSetParameters, TaskName
from ..protocol import Claim, Property
from ..steps.examples import competent_task, describe_model
from ..steps.shared_sets import DiscoveredTask, discover_circuits, most_frequent, set_details, unsettled_share


class SharedSize(BootstrapParameters, SharedSetParameters):
    """|S_P| / N, the share of all components that are in at least a share P of the circuits of the discovery examples.

    `of: circuit` divides by the circuit size K instead (with `threshold`, by the mean size of the circuits), which can give more than 1.
    Range [0, 1], or [0, 1/P] of a circuit; 0 if S_P is empty, which the report says. The report adds heads, MLPs and layers. Invalid below
    the accuracy gate, and when all attribution scores are zero. Inconclusive if P asks for every discovery example. Source: arXiv
    2605.08348. Interval: bias-corrected bootstrap over groups, sets recomputed; its upper end is at least the number of components whose
    frequency is not clearly below P; approximate.
    """

    task: TaskName
    of: Annotated[Literal["universe", "circuit"], Field(description="what the size is a share of: all components, or a circuit")] = (
        "universe"
    )


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the shared set of the discovery examples; bootstrap its size."""
    import numpy as np

    from ...stats import bootstrap, membership, overlap

    parameters: SharedSize = claim.parameters
    task = yield from competent_task(claim, parameters.task)
    universe = yield from describe_model(claim)
    discovered = yield from discover_circuits(claim, task)
    circuits = discovered.discovery
    n = len(circuits)
    mean = float(circuits.members.sum(1).mean())
    if mean == 0:
        raise Invalid(
            f"none of the {n} discovery examples of task {parameters.task!r} has a circuit", {"discovery": n}, code=ReasonCode.NO_CIRCUIT
        )
    whole = _whole(parameters, discovered, mean)
    tallies, sizes = overlap.group_tallies(circuits.members, discovered.discovery_groups)

    def statistic(counts: Any) -> Any:
        count = overlap.shared_rows(counts, tallies, sizes, parameters.p).sum(1)
        if parameters.of == "circuit" and parameters.threshold is not None:
            return count * (counts @ sizes) / np.maximum((counts @ tallies).sum(1), 1)
        return count / whole

    value, interval, parts = bootstrap.bootstrap_interval(
        statistic, [len(sizes)], parameters.confidence, 0, parameters.resamples, *_limits(parameters)
    )
    # resampling rarely moves a component across P that is a few points away, though in the population it may lie on the other side
    possible = int(membership.possible(tallies, sizes, parameters.p, parameters.confidence).sum())
    interval = interval[0], max(interval[1], min(possible / whole, _limits(parameters)[1]))
    parts["possible"] = possible
    names = circuits.shared(parameters.p)
    shared = set_details(names, universe)
    of = f"{universe.components} components" if parameters.of == "universe" else f"a circuit of {whole:.3g}"
    set_words = f"{shared['heads']} heads and {shared['mlps']} MLPs" if names else "it is empty"
    details = {
        "shared_set": shared,
        "empty_shared_set": not names,
        "count": len(names),
        "of": parameters.of,
        "divided_by": whole,
        "mean_circuit_size": mean,
        "most_frequent": most_frequent(circuits),
        "bootstrap": parts,
        "notes": [
            f"shared set of {n} discovery examples: {len(names)} of {of} ({set_words}); circuits have {mean:.3g} on average",
            *(["no resample of the examples changed its size"] if parts["distinct"] == 1 else []),
        ],
        **discovered.details,
    }
    return Estimate(
        value, interval, n, parameters.confidence, "bias-corrected bootstrap over groups; approximate", "shared_size", details,
        unsettled_share(parameters.p, n, "its size"), shrinks=False,
    )  # fmt: skip


def _whole(parameters: SharedSize, discovered: DiscoveredTask, mean: float) -> float:
    """The number of components that the size is a share of."""
    units = len(discovered.circuits.units)
    if parameters.of == "universe":
        return float(units)
    return mean if parameters.threshold is not None else float(Size.parse(parameters.size).of(units, parameters.rounding))


def _limits(parameters: SharedSize) -> tuple[float, float]:
    return 0.0, 1.0 if parameters.of == "universe" else 1 / parameters.p


SHARED_SIZE = Property(
    "shared_size",
    SharedSize,
    estimate,
    0.0,
    None,
    "how many components recur over a task's prompts: the size of the shared set",
    "share of components",
    limits=_limits,
    grows=False,
)
