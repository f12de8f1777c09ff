"""Does the gradient ranking of components agree with what happens when they are ablated?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ..attribution import COMPARISONS
from ..errors import Invalid
from ..requests import ALL, Attribute, Describe, Sweep, freeze
from ..verdict import Estimate
from .base import Claim, Kind, Method, Options, Parameters, Property, Steps, TaskName, check_kind, check_method
from .measured import examples, intact, part

if TYPE_CHECKING:
    import numpy as np

    from ..results import SweepOutcome

GAP = 6  # the published rule for heroes and bloats, among 20 components
TIED = 0.25  # largest share of components at the floor or the ceiling of accuracy


class GradientAblationAgreement(Parameters):
    """Rank correlation over all components between a gradient ranking G and causal importance C.

    G: mean over discovery examples of the absolute score of `gradient` (`weight_gradient` is the paper's). C: mean
    over evaluation examples of what ablating the component alone costs — `effect: loss` the rise of the answer's
    cross-entropy, `accuracy` the drop of correct answers (the paper's; inconclusive when more than a quarter of the
    components sit at its floor or ceiling), `metric` the drop of the metric (of `kl`, the rise). Spearman's ρ (average ranks) or
    Kendall's τ-b; both are reported. Range [−1, 1]. Invalid when one ranking is constant. Source: The Gradient-Causal
    Gap. Interval: bias-corrected bootstrap over discovery groups and evaluation groups, both rankings recomputed; approximate.
    """

    task: TaskName
    gradient: Annotated[Method, Field(description="attribution method of the gradient side")] = "weight_gradient"
    gradient_options: Annotated[Options, Field(description="its options, e.g. normalisation")] = Field(default_factory=dict)
    ablation: Annotated[Kind, Field(description="what an ablated component is replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation")] = Field(default_factory=dict)
    effect: Annotated[Literal["loss", "accuracy", "metric"], Field(description="what ablation is measured by")] = "loss"
    correlation: Annotated[Literal["spearman", "kendall"], Field(description="spearman: ρ; kendall: τ-b")] = "spearman"
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000

    @model_validator(mode="after")
    def _fits(self) -> GradientAblationAgreement:
        if self.gradient == "exact" and self.gradient_options.get("kind", "counterfactual") == self.ablation:
            raise ValueError(f"gradient 'exact' with kind {self.ablation!r} is this very ablation, which agrees with itself; name another")
        check_method(self.gradient, self.gradient_options, "component", self.metric)
        check_kind(self.ablation, self.ablation_options)
        return self


def judge(claim: Claim) -> Steps:
    """Ask for the attribution and the sweep; correlate their means."""
    import numpy as np

    from ..stats import bootstrap, ranks
    from ..stats.groups import group_sums

    p: GradientAblationAgreement = claim.parameters
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    description = yield Describe(claim.model)
    source = claim.tasks[p.task]
    attribution, swept = yield [
        Attribute(claim.model, source, p.gradient, "component", p.metric, ALL, None, freeze(p.gradient_options)),
        Sweep(claim.model, source, p.ablation, p.metric, part(p, "evaluation"), part(p, "discovery"), freeze(p.ablation_options)),
    ]
    strength = np.abs(attribution.scores[found.discovery]).astype(float)
    cost = _cost(swept, p.effect, p.metric)
    # examples whose gradients were taken together are resampled together
    blocks = [str(b) for b in attribution.blocks[found.discovery]] if _batched(attribution.blocks) else found.groups(found.discovery)
    gradient_side, causal_side = group_sums(strength, blocks), group_sums(cost, found.groups(found.evaluation))
    correlate = ranks.spearman_rows if p.correlation == "spearman" else ranks.kendall_tau_b_rows
    one_sample = p.split == "in_sample" and not _batched(attribution.blocks)

    def statistic(a: Any, b: Any | None = None) -> Any:
        g = bootstrap.weighted_means(a, *gradient_side)
        c = bootstrap.weighted_means(a if b is None else b, *causal_side)
        return correlate(g, c)

    g, c = strength.mean(0), cost.mean(0)
    rho, tau = ranks.spearman(g, c), ranks.kendall_tau_b(g, c)
    sizes = [len(gradient_side[1])] if one_sample else [len(gradient_side[1]), len(causal_side[1])]
    value, interval, parts = bootstrap.bootstrap_interval(statistic, sizes, p.confidence, 0, p.resamples, lowest=-1.0, highest=1.0)
    units = list(attribution.units)
    details = {
        "spearman": rho,
        "kendall_tau_b": tau,
        "components": len(units),
        "null_standard_deviation": 1 / max(1, len(units) - 1) ** 0.5,
        "gradient": p.gradient,
        "gradient_options": {k: v for k, v in attribution.details.items() if k != "site"} or _defaults(p),
        "ablation": p.ablation,
        "effect": p.effect,
        "architecture": description.architecture,
        "accuracy": base.accuracy,
        "by_component": {u: [float(g[i]), float(c[i])] for i, u in enumerate(units)},
        "rank_gap": _rank_gap(g, c, units),
        "bootstrap": parts,
        **found.as_dict(),
    }
    unsettled = _tied(swept, p.effect, details)
    return Estimate(
        value, interval, len(cost), p.confidence, "bias-corrected bootstrap over groups", "gradient_ablation_agreement", details, unsettled
    )


def _batched(blocks: Any) -> bool:
    import numpy as np

    return len(np.unique(blocks)) < len(blocks)


def _defaults(p: GradientAblationAgreement) -> dict[str, Any]:
    return {"normalisation": "sqrt_parameters", "gradient_batch": 1} if p.gradient == "weight_gradient" else {}


def _cost(swept: SweepOutcome, effect: str, metric: str) -> np.ndarray[Any, Any]:
    """What ablation of each component costs on each example; [n_examples, n_components], larger is worse."""
    base = swept.baseline
    assert base is not None
    if effect == "loss":
        cost: Any = base.log_prob[:, None].astype(float) - swept.log_prob
    elif effect == "accuracy":
        cost = base.correct[:, None].astype(float) - swept.correct
    else:
        cost = (base.metric[:, None].astype(float) - swept.metric) * (-1.0 if metric in COMPARISONS else 1.0)
    if not (cost.std(0) > 0).any() and not (cost.mean(0).std() > 0):
        raise Invalid(f"no ablation changes the {effect}: there is no causal ranking to agree with")
    return cost  # type: ignore[no-any-return]


def _rank_gap(g: Any, c: Any, units: list[str]) -> dict[str, Any]:
    """Hidden heroes and gradient bloats by the published rule, with the number that random rankings would give."""
    from ..stats import ranks

    gap = ranks.rank_gap(g, c)
    return {
        "rule": f"|rank(G) − rank(C)| ≥ {GAP}",
        "heroes": [u for u, d in zip(units, gap, strict=True) if d <= -GAP],
        "bloats": [u for u, d in zip(units, gap, strict=True) if d >= GAP],
        "expected_by_chance": len(units) * ranks.chance_of_gap(len(units), GAP) if len(units) > GAP else 0.0,
    }


def _tied(swept: SweepOutcome, effect: str, details: dict[str, Any]) -> str | None:
    """Why a ranking by accuracy cannot be read: too many components leave it (nearly) whole, or take it all."""
    assert swept.baseline is not None
    accuracy = swept.correct.mean(0)
    share = float(((accuracy >= 0.95 * swept.baseline.correct.mean()) | (accuracy == 0)).mean())
    details["share_at_floor_or_ceiling"] = share
    if effect == "accuracy" and share > TIED:
        return (
            f"{share:.0%} of the components leave the accuracy above 95% of the intact one or take all of it, so their ranks are ties "
            f"(at most {TIED:.0%} can be read); use effect: loss"
        )
    return None


GRADIENT_ABLATION_AGREEMENT = Property(
    "gradient_ablation_agreement", GradientAblationAgreement, judge, -1.0, 1.0,
    "the gradient ranking of components agrees with their causal importance", "rank correlation",
)  # fmt: skip
