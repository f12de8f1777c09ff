"""Size of the shared set: how many components recur over a task's prompts?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ...core.shares import Size
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, Share, TaskName
from ..protocol import Claim, Property
from ..steps.examples import set_details
from ..steps.shared_sets import DiscoveredCircuits, discovered, unsettled

if TYPE_CHECKING:
    from ...core.results import Attribution


class SharedSize(CircuitParameters):
    """|S_P| / N, the share of all components that are in at least a share P of the discovery examples' circuits.

    `of: circuit` divides by the circuit size K instead (with `threshold`, by the mean size of the circuits): what share of
    a circuit is shared, which can be more than 1. Range [0, 1], or [0, 1/P] of a circuit; 0 when S_P is empty, which the report says.
    The report adds heads, MLPs and layers. Invalid below the accuracy gate, and when all attribution scores are zero. At a P at which
    every discovery example counts, nothing is settled. Source: arXiv 2605.08348. Interval: bias-corrected bootstrap over groups,
    sets recomputed, with the upper end at least the number of components whose frequency is not clearly below P; approximate.
    """

    task: TaskName
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    of: Annotated[Literal["universe", "circuit"], Field(description="what the size is a share of: all components, or a circuit")] = (
        "universe"
    )
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000


def estimate(claim: Claim) -> Steps[Estimate]:
    """Ask for the attribution; bootstrap the size of the shared set."""
    import numpy as np

    from ...stats import bootstrap, membership, overlap

    p: SharedSize = claim.parameters
    found = yield from discovered(claim, p.task)
    n = len(found.circuits)
    mean = float(found.circuits.members.sum(1).mean())
    if mean == 0:
        raise Invalid(f"none of the {n} discovery examples of task {p.task!r} has a circuit", {"discovery": n})
    whole = _whole(p, found, mean)
    tallies, sizes = overlap.group_tallies(found.circuits.members, found.groups)

    def statistic(counts: Any) -> Any:
        count = overlap.shared_rows(counts, tallies, sizes, p.p).sum(1)
        if p.of == "circuit" and p.threshold is not None:
            return count * (counts @ sizes) / np.maximum((counts @ tallies).sum(1), 1)
        return count / whole

    value, interval, parts = bootstrap.bootstrap_interval(statistic, [len(sizes)], p.confidence, 0, p.resamples, *_limits(p))
    # resampling hardly ever moves a component across P that is a few points from it, and the population may well have it on the other side
    maybe = int(membership.possible(tallies, sizes, p.p, p.confidence).sum())
    interval = interval[0], max(interval[1], min(maybe / whole, _limits(p)[1]))
    parts["possible"] = maybe
    names = found.circuits.shared(p.p)
    shared = set_details(names, found.universe)
    of = f"{found.universe.components} components" if p.of == "universe" else f"a circuit of {whole:.3g}"
    set_words = f"{shared['heads']} heads and {shared['mlps']} MLPs" if names else "it is empty"
    frequency = found.circuits.counts / n
    order = sorted(range(len(frequency)), key=lambda i: (-frequency[i], i))[:10]
    details = {
        "shared_set": shared,
        "empty_shared_set": not names,
        "count": len(names),
        "of": p.of,
        "divided_by": whole,
        "mean_circuit_size": mean,
        "most_frequent": {found.circuits.units[i]: round(float(frequency[i]), 4) for i in order},
        "bootstrap": parts,
        "notes": [
            f"shared set of {n} discovery examples: {len(names)} of {of} ({set_words}); circuits have {mean:.3g} on average",
            *(["no resample of the examples changed its size"] if parts["distinct"] == 1 else []),
        ],
        **found.common,
    }
    return Estimate(
        value, interval, n, p.confidence, "bias-corrected bootstrap over groups; approximate", "shared_size", details,
        unsettled(p.p, n, "its size"), shrinks=False,
    )  # fmt: skip


def _whole(p: SharedSize, found: DiscoveredCircuits, mean: float) -> float:
    if p.of == "universe":
        return float(found.universe.components)
    scores: Attribution = found.scores
    return mean if p.threshold is not None else float(Size.parse(p.size).of(len(scores.units), p.rounding))


def _limits(p: SharedSize) -> tuple[float, float]:
    return 0.0, 1.0 if p.of == "universe" else 1 / p.p


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
