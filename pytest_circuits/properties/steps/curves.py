"""Steps of properties that keep, or remove, the first units of a ranking: rank on discovery examples, ablate on evaluation examples.

F is the mean metric over evaluation examples, M the model, ∅ the model with the whole universe ablated. What a set keeps is
compared with what there is to keep, F(M) − F(∅), example by example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.metric_names import COMPARISONS
from ...errors import Invalid
from ...measurement.requests import Ablate, Attribute, Steps, ask, freeze
from ..parameters import AblationName, MethodName, Options, Parameters, TaskName, check_ablation, check_method
from ..protocol import Claim
from .examples import Examples, part
from .numeric_checks import check_finite

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Outcome

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

SiteName = Annotated[Literal["mlp_activation", "mlp_output"], Field(description="input, or output, of the down projection")]
SHOWN = 20  # units of a ranking that details name


class CurveParameters(Parameters):
    """Parameters of properties that rank units and ablate by rank: neurons, unless a subclass has a parameter `level`."""

    task: TaskName
    attribution: Annotated[MethodName, Field(description="attribution method that ranks units")] = "relp"
    attribution_options: Annotated[Options, Field(description="options of the attribution method, e.g. positions: each")] = Field(
        default_factory=dict
    )
    ablation: Annotated[AblationName, Field(description="what ablated units are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts: corrupt")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> CurveParameters:
        check_method(self.attribution, self.attribution_options, getattr(self, "level", "neuron"), self.metric)
        check_ablation(self.ablation, self.ablation_options)
        return self


@dataclass(frozen=True)
class UnitSpace:
    """The units: a level, and at neuron level the site."""

    level: str
    site: str

    @property
    def options(self) -> dict[str, str]:
        """What a request has to be told beside the level."""
        return {"site": self.site} if self.level == "neuron" else {}

    def in_words(self, positions: object = None) -> str:
        """The universe, for the report."""
        if self.level == "neuron":
            each = ", each position a unit of its own" if positions == "each" else ""
            return f"all {self.site} coordinates of the MLPs{each}; attention stays live"
        return "all attention heads and MLPs" if self.level == "component" else "all edges between components, and to the logits"


@dataclass(frozen=True)
class Ranking:
    """Units in the model's order, their mean signed scores [units] over the discovery examples, and the order by strength.

    `passes` is what the scores cost: forward and backward passes for each discovery example.
    """

    place: UnitSpace
    units: tuple[str, ...]
    scores: Array
    order: Ints
    passes: Mapping[str, float] | None = None

    @property
    def scored(self) -> int:
        """How many units have a score other than zero."""
        return int((self.scores != 0).sum())

    def top(self, k: int) -> tuple[str, ...]:
        """The first `k` units, strongest first; ties by the model's order."""
        return tuple(self.units[int(i)] for i in self.order[:k])


@dataclass(frozen=True)
class NormalizedEffect:
    """What every set of a claim is measured against. `whole` [n] is F(M) − F(∅) for each evaluation example, counted so that
    more is better whatever the metric; `groups` [n] are the units of resampling.
    """

    base: Outcome
    nothing: Outcome
    whole: Array
    groups: list[str]
    sign: float
    confidence: float

    def gains(self, outcome: Outcome) -> Array:
        """F(set) − F(∅) for each set and example; [sets, n]."""
        found: Array = self.sign * (outcome.metric.astype(float) - self.nothing.metric[0])
        return found

    def ratio(self, gain: Array, confidence: float | None = None) -> tuple[float, tuple[float, float]]:
        """mean(gain) / mean(whole) with Fieller's interval. Raises `Invalid` when `whole` is not clearly away from zero."""
        from ...stats.ratio import fieller

        return fieller(gain, self.whole, self.groups, self.confidence if confidence is None else confidence)


def direction(metric: str) -> float:
    """1 where a higher metric is better; −1 for a distance to the intact model."""
    return -1.0 if metric in COMPARISONS else 1.0


def ranking(claim: Claim, place: UnitSpace, signed: bool = False) -> Steps[Ranking]:
    """Rank all units by |mean score| over the discovery examples; or `signed`, by how much ablating them is expected to hurt.

    Raises `Invalid` when all scores are zero, or some not finite.
    """
    import numpy as np

    p: CurveParameters = claim.parameters
    found = yield from ask(Attribute(
        claim.model, claim.tasks[p.task], p.attribution, place.level, p.metric, part(p, "discovery"), "mean",
        freeze({**p.attribution_options, **place.options}),
    ))  # fmt: skip
    scores = found.scores[0]
    check_finite(scores, f"{p.attribution} scores of {place.level}s on task {p.task!r}")
    if not scores.any():
        raise Invalid(
            f"all {p.attribution} scores of the {len(scores)} {place.level}s on task {p.task!r} are zero, so nothing can be ranked",
            {"task": p.task, "universe": len(scores)},
        )
    strength = -direction(p.metric) * scores if signed else np.abs(scores)
    return Ranking(place, found.units, scores.astype(float), np.argsort(-strength, kind="stable"), found.details.get("passes"))


def ablation(claim: Claim, place: UnitSpace, sets: Sequence[Sequence[str]], mode: str = "keep") -> Ablate:
    """The request for outcomes of these sets on the evaluation examples, means taken over the discovery examples."""
    p: CurveParameters = claim.parameters
    return Ablate(
        claim.model, claim.tasks[p.task], tuple(tuple(sorted(s)) for s in sets), mode, p.ablation, place.level, p.metric,
        part(p, "evaluation"), part(p, "discovery"), freeze({**p.ablation_options, **place.options}),
    )  # fmt: skip


def nothing_kept(claim: Claim, place: UnitSpace) -> Ablate:
    """The request for ∅: the whole universe ablated. The same whatever the circuit, so that all claims share it."""
    return ablation(claim, place, [()])


def footing(claim: Claim, place: UnitSpace, found: Examples, base: Outcome, nothing: Outcome) -> NormalizedEffect:
    """The intact model against ∅. Raises `Invalid` where ablating everything does not lower the metric."""
    p: CurveParameters = claim.parameters
    sign = direction(p.metric)
    whole = sign * (base.metric.astype(float) - nothing.metric[0])
    if whole.mean() <= 0:
        raise Invalid(
            f"the mean {p.metric} is {mean(base):.4g} intact and {mean(nothing):.4g} with all {place.level}s ablated: "
            f"ablation does not {'raise' if sign < 0 else 'lower'} it, so there is nothing for a circuit to keep; "
            "use another metric or ablation",
            {"intact": mean(base), "nothing": mean(nothing)},
        )
    return NormalizedEffect(base, nothing, whole, found.groups(found.evaluation), sign, p.confidence)


def mean(outcome: Outcome) -> float:
    """The mean metric."""
    return float(outcome.metric.mean())


def how(claim: Claim, ranked: Ranking) -> dict[str, Any]:
    """How units were ranked and ablated, for the report."""
    p: CurveParameters = claim.parameters
    return {
        "level": ranked.place.level,
        **ranked.place.options,
        "universe": len(ranked.units),
        "universe_is": ranked.place.in_words(p.attribution_options.get("positions")),
        "scored": ranked.scored,
        "attribution": p.attribution,
        "attribution_options": dict(p.attribution_options),
        "attribution_passes": None if ranked.passes is None else dict(ranked.passes),
        "ablation": p.ablation,
        "ablation_options": dict(p.ablation_options),
    }


def unit_words(details: Mapping[str, Any]) -> str:
    """The plural of what is counted, from the details that `how` gave."""
    return "neurons at positions" if details["attribution_options"].get("positions") == "each" else f"{details['level']}s"
