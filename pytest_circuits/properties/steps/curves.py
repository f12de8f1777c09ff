"""Steps of properties that keep, or remove, the first units of a ranking: rank on discovery examples, ablate on evaluation examples.

F is the mean metric over evaluation examples, M the model, ∅ the model with the whole universe ablated. What a set keeps is
compared with what there is to keep, F(M) − F(∅), example by example.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.metric_names import COMPARISONS
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Ablate, Attribute, Steps, ask, freeze
from ..parameters import CurveParameters
from ..protocol import Claim
from .examples import Examples, part
from .numeric_checks import check_finite

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Outcome

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

SHOWN = 20
"""Units of a ranking that details name."""


@dataclass(frozen=True)
class UnitSpace:
    """The units that are ranked: a level, and at neuron level the site."""

    level: str
    site: str

    @property
    def options(self) -> dict[str, str]:
        """Options of a request in addition to the level."""
        return {"site": self.site} if self.level == "neuron" else {}

    def description(self, positions: object = None) -> str:
        """The universe as text, for the report."""
        if self.level == "neuron":
            each = ", each position a unit of its own" if positions == "each" else ""
            return f"all {self.site} coordinates of the MLPs{each}; attention stays live"
        return "all attention heads and MLPs" if self.level == "component" else "all edges between components, and to the logits"


@dataclass(frozen=True)
class Ranking:
    """Units in the model's order, their mean signed scores [units] over the discovery examples, and the order by strength.

    `passes`: the forward and backward passes that the scores of one discovery example cost.
    """

    space: UnitSpace
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
    """The intact model against nothing kept, which every set of a claim is compared with.

    `whole` [n] is F(M) − F(∅) for each evaluation example, with the sign that makes more better; `groups` [n] are the units of
    resampling.
    """

    base: Outcome
    nothing: Outcome
    whole: Array
    groups: list[str]
    sign: float
    confidence: float

    def gains(self, outcome: Outcome) -> Array:
        """F(set) − F(∅) for each set and example; [sets, n]."""
        gains: Array = self.sign * (outcome.metric.astype(float) - self.nothing.metric[0])
        return gains

    def ratio(self, gain: Array, confidence: float | None = None) -> tuple[float, tuple[float, float]]:
        """mean(gain) / mean(whole) with Fieller's interval. Raises `Invalid` when `whole` is not clearly away from zero."""
        from ...stats.ratio import fieller

        return fieller(gain, self.whole, self.groups, self.confidence if confidence is None else confidence)


def metric_sign(metric: str) -> float:
    """1 where a higher metric is better; −1 for a distance to the intact model."""
    return -1.0 if metric in COMPARISONS else 1.0


def rank_units(claim: Claim, space: UnitSpace, signed: bool = False) -> Steps[Ranking]:
    """Rank all units by |mean score| over the discovery examples; or `signed`, by how much ablating them is expected to hurt.

    Raises `Invalid` when all scores are zero, or some not finite.
    """
    import numpy as np

    parameters: CurveParameters = claim.parameters
    attribution = yield from ask(Attribute(
        claim.model, claim.tasks[parameters.task], parameters.attribution, space.level, parameters.metric,
        part(parameters, "discovery"), "mean", freeze({**parameters.attribution_options, **space.options}),
    ))  # fmt: skip
    scores = attribution.scores[0]
    check_finite(scores, f"{parameters.attribution} scores of {space.level}s on task {parameters.task!r}")
    if not scores.any():
        raise Invalid(
            f"all {parameters.attribution} scores of the {len(scores)} {space.level}s on task {parameters.task!r} are zero, "
            "so nothing can be ranked",
            {"task": parameters.task, "universe": len(scores)},
            code=ReasonCode.NOTHING_TO_RANK,
        )
    strength = -metric_sign(parameters.metric) * scores if signed else np.abs(scores)
    order = np.argsort(-strength, kind="stable")
    return Ranking(space, attribution.units, scores.astype(float), order, attribution.details.get("passes"))


def unit_ablation_request(claim: Claim, space: UnitSpace, sets: Sequence[Sequence[str]], mode: str = "keep") -> Ablate:
    """The request for outcomes of these sets on the evaluation examples, means taken over the discovery examples."""
    parameters: CurveParameters = claim.parameters
    return Ablate(
        claim.model, claim.tasks[parameters.task], tuple(tuple(sorted(units)) for units in sets), mode, parameters.ablation,
        space.level, parameters.metric, part(parameters, "evaluation"), part(parameters, "discovery"),
        freeze({**parameters.ablation_options, **space.options}),
    )  # fmt: skip


def empty_circuit_request(claim: Claim, space: UnitSpace) -> Ablate:
    """The request for ∅, the whole universe ablated. It does not depend on the circuit, so all claims share it."""
    return unit_ablation_request(claim, space, [()])


def normalize_effect(claim: Claim, space: UnitSpace, examples: Examples, base: Outcome, nothing: Outcome) -> NormalizedEffect:
    """The intact model against ∅. Raises `Invalid` where ablating everything does not lower the metric."""
    parameters: CurveParameters = claim.parameters
    sign = metric_sign(parameters.metric)
    whole = sign * (base.metric.astype(float) - nothing.metric[0])
    if whole.mean() <= 0:
        raise Invalid(
            f"the mean {parameters.metric} is {mean_metric(base):.4g} intact and {mean_metric(nothing):.4g} with all {space.level}s "
            f"ablated: ablation does not {'raise' if sign < 0 else 'lower'} it, so there is nothing for a circuit to keep; "
            "use another metric or ablation",
            {"intact": mean_metric(base), "nothing": mean_metric(nothing)},
            code=ReasonCode.NOTHING_TO_EXPLAIN,
        )
    return NormalizedEffect(base, nothing, whole, examples.evaluation_groups, sign, parameters.confidence)


def mean_metric(outcome: Outcome) -> float:
    """The mean metric."""
    return float(outcome.metric.mean())


def ranking_details(claim: Claim, ranking: Ranking) -> dict[str, Any]:
    """How units were ranked and ablated, for the report."""
    parameters: CurveParameters = claim.parameters
    return {
        "level": ranking.space.level,
        **ranking.space.options,
        "universe": len(ranking.units),
        "universe_is": ranking.space.description(parameters.attribution_options.get("positions")),
        "scored": ranking.scored,
        "attribution": parameters.attribution,
        "attribution_options": dict(parameters.attribution_options),
        "attribution_passes": None if ranking.passes is None else dict(ranking.passes),
        "ablation": parameters.ablation,
        "ablation_options": dict(parameters.ablation_options),
    }


def unit_plural(details: Mapping[str, Any]) -> str:
    """The plural of the units that are counted, from the details that `ranking_details` returns."""
    return "neurons at positions" if details["attribution_options"].get("positions") == "each" else f"{details['level']}s"
