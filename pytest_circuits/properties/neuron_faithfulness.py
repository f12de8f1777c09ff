"""Are a few neurons enough? Faithfulness of a neuron circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ..amounts import Size
from ..attribution import COMPARISONS
from ..errors import Invalid
from ..requests import Ablate, Attribute, freeze
from ..units import per_layer
from ..verdict import Estimate
from .base import CircuitSize, Claim, Kind, Method, Options, Parameters, Property, Steps, TaskName, check_kind, check_method
from .measured import describe, examples, intact, part

if TYPE_CHECKING:
    from ..results import Outcome


class NeuronFaithfulness(Parameters):
    """faithfulness(C) = (F(keep C) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples.

    C: the `neurons` of largest |mean score| over the discovery examples. keep C ablates all MLP neurons but C (∅: all
    of them); attention stays live. Near 1 when C is enough; above 1 when the rest works against it. Unbounded. The
    report also gives completeness(C) = (F(remove C) − F(∅)) / (F(M) − F(∅)), which is near 0 when nothing outside C
    is enough. Invalid when F(M) − F(∅) is not clearly away from zero, below the accuracy gate, and when fewer neurons
    have a score than asked for. Sources: Language model circuits are sparse in the neuron basis; Marks et al. 2025.
    Interval: Fieller's, a linear contrast, over groups.
    """

    task: TaskName
    neurons: Annotated[CircuitSize, Field(description="how many neurons are kept: a count, or a share of all")]
    site: Annotated[Literal["mlp_activation", "mlp_output"], Field(description="input, or output, of the down projection")] = (
        "mlp_activation"
    )
    attribution: Annotated[Method, Field(description="attribution method that ranks neurons")] = "relp"
    attribution_options: Annotated[Options, Field(description="options of the attribution method")] = Field(default_factory=dict)
    ablation: Annotated[Kind, Field(description="what ablated neurons are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts: corrupt")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> NeuronFaithfulness:
        check_method(self.attribution, self.attribution_options, "neuron", self.metric)
        check_kind(self.ablation, self.ablation_options)
        return self


def judge(claim: Claim) -> Steps:
    """Rank neurons on discovery examples; measure the circuit, its complement and nothing on evaluation examples."""
    import numpy as np

    from ..stats.ratio import fieller

    p: NeuronFaithfulness = claim.parameters
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    universe = yield from describe(claim)
    options = {**p.attribution_options, "site": p.site}
    attribution = yield Attribute(
        claim.model, claim.tasks[p.task], p.attribution, "neuron", p.metric, part(p, "discovery"), "mean", freeze(options)
    )
    names = _top(attribution.units, np.abs(attribution.scores[0]), p)
    sign = -1.0 if p.metric in COMPARISONS else 1.0  # a distance to the intact model falls where other metrics rise
    kept, nothing, removed = yield [
        _ablation(claim, names, "keep"),
        _ablation(claim, (), "keep"),
        _ablation(claim, names, "remove"),
    ]
    groups = found.groups(found.evaluation)
    whole = sign * (base.metric.astype(float) - nothing.metric[0])
    if whole.mean() <= 0:
        raise Invalid(
            f"the mean {p.metric} is {_mean(base):.4g} intact and {_mean(nothing):.4g} with all neurons ablated: "
            f"ablation does not {'raise' if sign < 0 else 'lower'} it, so there is nothing for a circuit to keep; "
            "use another metric or ablation",
            {"intact": _mean(base), "nothing": _mean(nothing)},
        )
    value, interval = fieller(sign * (kept.metric[0].astype(float) - nothing.metric[0]), whole, groups, p.confidence)
    completeness, complete = fieller(sign * (removed.metric[0].astype(float) - nothing.metric[0]), whole, groups, p.confidence)
    details = {
        "neurons": len(names),
        "universe": len(attribution.units),
        "universe_is": f"all {p.site} coordinates of the MLPs; attention stays live",
        "per_layer": per_layer(names, universe.layers),
        "strongest": list(names[:20]),
        "completeness": completeness,
        "completeness_interval": list(complete),
        "mean_metric": {"intact": _mean(base), "kept": _mean(kept), "removed": _mean(removed), "nothing": _mean(nothing)},
        "accuracy": base.accuracy,
        "accuracy_kept": float(kept.correct.mean()),
        "accuracy_nothing": float(nothing.correct.mean()),
        "site": p.site,
        "ablation": p.ablation,
        "attribution": p.attribution,
        **found.as_dict(),
    }
    return Estimate(value, interval, len(groups), p.confidence, "Fieller interval over groups", "neuron_faithfulness", details)


def _mean(outcome: Outcome) -> float:
    return float(outcome.metric.mean())


def _top(units: tuple[str, ...], strength: Any, p: NeuronFaithfulness) -> tuple[str, ...]:
    """The strongest neurons, strongest first; ties by order."""
    import numpy as np

    k = Size.parse(p.neurons).of(len(units))
    if Size.parse(p.neurons).count is not None and k < int(p.neurons):
        raise Invalid(f"{p.neurons} neurons are asked for, but the model has {len(units)} at site {p.site}", {"universe": len(units)})
    if k == len(units):
        raise Invalid(f"{p.neurons} neurons are all {len(units)} of the model: nothing is left to ablate", {"universe": len(units)})
    order = np.argsort(-strength, kind="stable")[:k]
    if not (strength[order] > 0).all():
        raise Invalid(
            f"only {int((strength > 0).sum())} of {len(units)} neurons have a {p.attribution} score other than zero, "
            f"fewer than the {k} asked for",
            {"scored": int((strength > 0).sum()), "asked": k},
        )
    return tuple(units[int(i)] for i in order)


def _ablation(claim: Claim, names: tuple[str, ...], mode: str) -> Ablate:
    p: NeuronFaithfulness = claim.parameters
    return Ablate(
        claim.model, claim.tasks[p.task], (tuple(sorted(names)),), mode, p.ablation, "neuron", p.metric,
        part(p, "evaluation"), part(p, "discovery"), freeze({**p.ablation_options, "site": p.site}),
    )  # fmt: skip


NEURON_FAITHFULNESS = Property(
    "neuron_faithfulness",
    NeuronFaithfulness,
    judge,
    summary="a few neurons carry the behaviour: faithfulness of a neuron circuit",
    unit="ratio",
)
