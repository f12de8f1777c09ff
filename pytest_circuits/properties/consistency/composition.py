"""Composition: what are circuits made of, heads or MLPs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ...core.units import Universe, is_mlp
from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, TaskName
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.circuits import find_evaluation_circuits

if TYPE_CHECKING:
    from ...core.results import CircuitSet


class Composition(CircuitParameters):
    """The share of MLPs in an example's circuit, mean over evaluation examples (`what: mlp_share`).

    `head_share_of_heads` is the share of all heads that are in the circuit, `mlp_share_of_mlps` the share of all MLPs. Circuits are those
    of single examples, of size K, not shared sets. Range [0, 1]. A random circuit has an MLP share of 1/(H+1). The report adds the counts
    per layer. Examples without a circuit are left out and counted. Invalid below the accuracy gate, and when no evaluation example has a
    circuit. Source: arXiv 2605.08348. Interval: betting, over groups.
    """

    task: TaskName
    what: Annotated[
        Literal["mlp_share", "head_share_of_heads", "mlp_share_of_mlps"],
        Field(description="MLPs in the circuit, heads of all heads, or MLPs of all MLPs"),
    ] = "mlp_share"


WORDS = {
    "mlp_share": "MLPs in a circuit",
    "head_share_of_heads": "all heads that are in a circuit",
    "mlp_share_of_mlps": "all MLPs that are",
}


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the circuits of the evaluation examples; average the shares over the evaluation examples."""
    from ...stats.betting import grouped_mean_interval

    parameters: Composition = claim.parameters
    evaluation = yield from find_evaluation_circuits(claim, parameters.task)
    shares = _shares(evaluation.circuits, evaluation.universe)
    value, interval, groups = grouped_mean_interval(shares[parameters.what], evaluation.groups, parameters.confidence)
    means = {name: float(share.mean()) for name, share in shares.items()}
    chance = _chance(evaluation.circuits, evaluation.universe)
    details = {
        "what": parameters.what,
        "means": means,
        "chance": chance,
        "mean_counts": {"heads": means["head_share_of_heads"] * evaluation.universe.layers * evaluation.universe.heads,
                        "mlps": means["mlp_share_of_mlps"] * evaluation.universe.layers},
        "per_layer": _per_layer(evaluation.circuits, evaluation.universe),
        "groups_evaluated": groups,
        "notes": [
            f"circuits have {evaluation.circuits.members.sum(1).mean():.3g} of {evaluation.universe.components} components on average: "
            f"{means['mlp_share']:.0%} of a circuit are MLPs; it holds {means['head_share_of_heads']:.0%} of the heads and "
            f"{means['mlp_share_of_mlps']:.0%} of the MLPs",
            f"random circuits of the same sizes: {chance[parameters.what]:.3f}",
        ],
        **evaluation.details,
    }  # fmt: skip
    return Estimate(value, interval, len(evaluation.groups), parameters.confidence, "betting interval over groups", "composition", details)


def _shares(circuits: CircuitSet, universe: Universe) -> dict[str, Any]:
    """Each share per example [n]; no circuit is empty."""
    import numpy as np

    mlp = np.array([is_mlp(unit) for unit in circuits.units])
    mlps, size = circuits.members[:, mlp].sum(1), circuits.members.sum(1)
    heads = universe.layers * universe.heads
    return {"mlp_share": mlps / size, "head_share_of_heads": (size - mlps) / heads, "mlp_share_of_mlps": mlps / universe.layers}


def _chance(circuits: CircuitSet, universe: Universe) -> dict[str, float]:
    """The expected shares of random circuits of the same sizes, in which every component is equally likely."""
    expected = float(circuits.members.sum(1).mean()) / universe.components
    return {"mlp_share": 1 / (universe.heads + 1), "head_share_of_heads": expected, "mlp_share_of_mlps": expected}


def _per_layer(circuits: CircuitSet, universe: Universe) -> dict[str, list[float]]:
    """How many heads of each layer, and how often its MLP, are in a circuit on average."""
    frequency = circuits.members.mean(0).reshape(universe.layers, universe.heads + 1)
    return {"heads": [round(float(f), 4) for f in frequency[:, :-1].sum(1)], "mlps": [round(float(f), 4) for f in frequency[:, -1]]}


COMPOSITION = Property(
    "composition", Composition, estimate, 0.0, 1.0, "what circuits are made of: heads or MLPs", "share", preflight=best_case(0, 1)
)
