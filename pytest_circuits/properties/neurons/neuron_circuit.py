"""A neuron circuit of a given size, kept and removed: what faithfulness and completeness of neurons are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ...core.shares import Size
from ...core.units import per_layer
from ...errors import Invalid
from ...measurement.requests import Steps, ask_all
from ..parameters import CircuitSize
from ..protocol import Claim
from ..steps.curves import (
    SHOWN,
    CurveParameters,
    NormalizedEffect,
    Ranking,
    SiteName,
    UnitSpace,
    ablation,
    footing,
    how,
    mean,
    nothing_kept,
    ranking,
    unit_words,
)
from ..steps.examples import describe, examples, intact

if TYPE_CHECKING:
    from ..steps.curves import Array


class NeuronCircuit(CurveParameters):
    """Parameters of a circuit of the strongest MLP neurons."""

    neurons: Annotated[CircuitSize, Field(description="how many neurons are kept: a count, or a share of all")]
    site: SiteName = "mlp_activation"


@dataclass(frozen=True)
class TwoSided:
    """F(keep C) − F(∅) and F(remove C) − F(∅) for each evaluation example, [n]; and what a report says of them."""

    ground: NormalizedEffect
    keep: Array
    remove: Array
    details: dict[str, Any]


def two_sided(claim: Claim) -> Steps[TwoSided]:
    """Rank neurons on discovery examples; measure the circuit, its complement and nothing on evaluation examples."""
    p: NeuronCircuit = claim.parameters
    place = UnitSpace("neuron", p.site)
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    universe = yield from describe(claim)
    ranked = yield from ranking(claim, place)
    names = ranked.top(_size(p, ranked))
    nothing, kept, removed = yield from ask_all(
        [nothing_kept(claim, place), ablation(claim, place, [names]), ablation(claim, place, [names], "remove")]
    )
    ground = footing(claim, place, found, base, nothing)
    details = {
        "neurons": len(names),
        **how(claim, ranked),
        "per_layer": per_layer(names, universe.layers),
        "strongest": list(names[:SHOWN]),
        "mean_metric": {"intact": mean(base), "kept": mean(kept), "removed": mean(removed), "nothing": mean(nothing)},
        "accuracy": base.accuracy,
        "accuracy_kept": float(kept.correct.mean()),
        "accuracy_removed": float(removed.correct.mean()),
        "accuracy_nothing": float(nothing.correct.mean()),
        **found.as_dict(),
    }
    return TwoSided(ground, ground.gains(kept)[0], ground.gains(removed)[0], details)


def told(details: dict[str, Any], other: str) -> list[str]:
    """The comparison in words; `other` names the second number, completeness beside faithfulness or the reverse."""
    d, m = details, details["mean_metric"]
    return [
        f"{d['neurons']} of {d['universe']} {unit_words(d)} ({d['attribution']}, {d['site']}, {d['ablation']} ablation); "
        f"{other} {d[other]:.2f}; attention stays live",
        f"mean metric: intact {m['intact']:.3g}, circuit kept {m['kept']:.3g}, circuit removed {m['removed']:.3g}, "
        f"all neurons ablated {m['nothing']:.3g}",
    ]


def _size(p: NeuronCircuit, ranked: Ranking) -> int:
    """How many neurons the circuit has. Raises `Invalid` for more than have a score, and for all."""
    units = len(ranked.units)
    k = Size.parse(p.neurons).of(units)
    if Size.parse(p.neurons).count is not None and k < int(p.neurons):
        raise Invalid(f"{p.neurons} neurons are asked for, but the model has {units} at site {p.site}", {"universe": units})
    if k == units:
        raise Invalid(f"{p.neurons} neurons are all {units} of the model: nothing is left to ablate", {"universe": units})
    if k > ranked.scored:
        raise Invalid(
            f"only {ranked.scored} of {units} neurons have a {p.attribution} score other than zero, fewer than the {k} asked for",
            {"scored": ranked.scored, "asked": k},
        )
    return k
