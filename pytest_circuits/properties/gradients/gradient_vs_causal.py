"""The two sides of the gradient–causal comparison: the gradients of each component, and the effect of ablating it.

Properties take `GradientCausalParameters` and start with `sides = yield from measure_sides(claim)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ...core.metric_names import COMPARISONS
from ...core.units import layer_of
from ...errors import Invalid, ReasonCode
from ...measurement.requests import ALL, Attribute, Describe, Steps, Sweep, ask_together, freeze
from ..protocol import Claim
from ..steps.examples import Examples, measure_intact, part, split_examples
from ..steps.numeric_checks import check_finite
from .parameters import GradientParameters, default_options

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Description, Outcome, SweepOutcome

    Table = np.ndarray[Any, np.dtype[np.float64]]

LARGEST_TIED_SHARE = 0.25  # of the components, at the floor or the ceiling of accuracy; beyond it the ranks mean nothing
STRONGEST = 0.01  # share of the examples whose part in the summed gradients is reported
DOMINANT = 0.25  # part of the summed gradients from which on a few examples decide G
UNHARMED = 0.95  # share of the intact accuracy above which ablation counts as having no effect


@dataclass(frozen=True)
class GradientVsCausal:
    """Both sides of one task on one model, over N components named by `units`.

    `gradient` [n, N] are absolute attribution scores of the discovery examples; examples with the same entry in `blocks` [n] are
    resampled together. `causal` [m, N] is the effect of ablating each component by itself on the causal examples (larger is worse; nats,
    accuracy points or units of the metric); `groups` [m] is their unit of resampling. With `one_sample` both sides are of the same
    examples and are resampled together. `base` is the intact model on the evaluation examples, `swept.baseline` on the causal ones.
    """

    units: tuple[str, ...]
    gradient: Table
    blocks: list[str]
    causal: Table
    groups: list[str]
    one_sample: bool
    base: Outcome
    swept: SweepOutcome
    examples: Examples
    description: Description
    effect: str
    gradient_options: dict[str, Any]

    @property
    def means(self) -> tuple[Table, Table]:
        """G and C of each component: means over examples; [N] each."""
        return self.gradient.mean(0), self.causal.mean(0)

    @property
    def sums(self) -> tuple[tuple[Table, Any], tuple[Table, Any]]:
        """(sums [blocks, N], sizes [blocks]) of the gradient side and (sums [groups, N], sizes [groups]) of the causal side."""
        from ...stats.groups import group_sums

        return group_sums(self.gradient, self.blocks), group_sums(self.causal, self.groups)

    def bootstrap(
        self,
        statistic: Callable[[Table, Table], Any],
        confidence: float,
        resamples: int,
        lowest: float,
        highest: float,
    ) -> tuple[float, tuple[float, float], dict[str, Any]]:
        """Bias-corrected bootstrap of `statistic(G rows [B, N], C rows [B, N]) -> [B]`, both sides resampled by block and group."""
        from ...stats.bootstrap import bootstrap_interval, weighted_means

        gradient_side, causal_side = self.sums

        def resampled(a: Any, b: Any | None = None) -> Any:
            return statistic(weighted_means(a, *gradient_side), weighted_means(a if b is None else b, *causal_side))

        sizes = [len(gradient_side[1])] if self.one_sample else [len(gradient_side[1]), len(causal_side[1])]
        return bootstrap_interval(resampled, sizes, confidence, 0, resamples, lowest=lowest, highest=highest)

    def as_dict(self, p: GradientParameters) -> dict[str, Any]:
        """What was measured, for the report."""
        g, c = self.means
        return {
            "components": len(self.units),
            "gradient": p.gradient,
            "gradient_options": self.gradient_options,
            "ablation": p.ablation,
            "effect": self.effect,
            "architecture": self.description.architecture,
            "accuracy": self.base.accuracy,
            "by_component": {u: [float(g[i]), float(c[i])] for i, u in enumerate(self.units)},
            "layer_profile": self.layer_profile(),
            "gradient_from_strongest": self.from_strongest(),
            "gradient_blocks": len(set(self.blocks)),
            "causal_groups": len(set(self.groups)),
            **floor_and_ceiling(self.swept),
            **self.examples.as_dict(),
        }

    def from_strongest(self) -> dict[str, float]:
        """The number of examples in the strongest hundredth, and their share of the gradients summed over components and examples.

        In a model that is nearly always right, most of the gradient comes from the few examples that it gets wrong.
        """
        import numpy as np

        total = np.sort(self.gradient.sum(1))[::-1]
        few = max(1, round(STRONGEST * len(total)))
        return {"examples": few, "share": float(total[:few].sum() / total.sum())}

    def caveats(self) -> list[str]:
        """What limits the measurements, for the reader of the report."""
        strongest = self.from_strongest()
        if strongest["share"] <= DOMINANT:
            return []
        share = f"{strongest['examples']} of {len(self.gradient)} discovery examples give {strongest['share']:.0%} of the summed gradients"
        return [f"{share}, so G depends on these few examples"]

    def layer_profile(self) -> dict[str, list[float]]:
        """Mean G and mean C over the components of each layer, first layer first."""
        g, c = self.means
        layers = [layer_of(u) for u in self.units]
        rows = [[i for i, at in enumerate(layers) if at == layer] for layer in range(self.description.universe.layers)]
        return {name: [float(side[row].mean()) for row in rows] for name, side in (("gradient", g), ("causal", c))}


def measure_sides(
    claim: Claim, effect: str | None = None, causal: Literal["evaluation", "discovery"] = "evaluation"
) -> Steps[GradientVsCausal]:
    """Measure both sides of the claim's task: G on discovery examples, C on the `causal` ones.

    `effect` (default: the claim's) is `loss`, the rise of the answer's cross-entropy in nats; `accuracy`, the drop in accuracy; or
    `metric`, the drop of the metric (for `kl`, the rise). Raises `Invalid` below the accuracy gate, if all gradients are equal, if no
    ablation changes anything, and for scores or effects that are not finite.
    """
    import numpy as np

    p: GradientParameters = claim.parameters
    effect = effect or claim.parameters.effect
    split = yield from split_examples(claim, p.task)
    base = yield from measure_intact(claim, p.task, split)
    source = claim.tasks[p.task]
    batched_gradient = p.gradient_options.get("gradient_batch", 1) != 1  # such a batch must not mix both sides of the split
    description, attribution, swept = yield from ask_together(
        Describe(claim.model),
        Attribute(
            claim.model,
            source,
            p.gradient,
            "component",
            p.metric,
            part(p, "discovery") if batched_gradient else ALL,
            None,
            freeze(p.gradient_options),
        ),
        Sweep(claim.model, source, p.ablation, p.metric, part(p, causal), part(p, "discovery"), freeze(p.ablation_options)),
    )
    rows = np.arange(len(split.discovery)) if batched_gradient else split.discovery
    batched = len(np.unique(attribution.blocks)) < len(attribution.blocks)
    strength = np.abs(attribution.scores[rows]).astype(float)
    check_ranked(strength, p.gradient)
    return GradientVsCausal(
        tuple(attribution.units),
        strength,
        # examples whose gradients were taken together are resampled together
        [str(b) for b in attribution.blocks[rows]] if batched else split.groups(split.discovery),
        ablation_effects(swept, effect, p.metric),
        split.groups(split.evaluation if causal == "evaluation" else split.discovery),
        (p.split == "in_sample" or causal == "discovery") and not batched,
        base,
        swept,
        split,
        description,
        effect,
        {k: v for k, v in attribution.details.items() if k != "site"} or default_options(p.gradient),
    )


def check_ranked(strength: Table, gradient: str) -> None:
    """Raise `Invalid` if there is no gradient ranking: fewer than two components, or equal gradients."""
    import numpy as np

    means = strength.mean(0)
    if not np.isfinite(means).all():
        raise Invalid(
            f"{int((~np.isfinite(means)).sum())} of {len(means)} components have {gradient} scores that are NaN or infinite",
            code=ReasonCode.NOT_FINITE,
        )
    if len(means) < 2:
        raise Invalid(
            f"the model has {len(means)} component, and a ranking needs at least 2",
            {"components": len(means)},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    if (means == means[0]).all():
        raise Invalid(
            f"all {len(means)} components have the same mean {gradient} score ({means[0]:g}), so there is no gradient ranking",
            {"components": len(means), "score": float(means[0])},
            code=ReasonCode.CONSTANT_RANKING,
        )


def ablation_effects(swept: SweepOutcome, effect: str, metric: str) -> Table:
    """The effect of ablating each component on each example; [n_examples, n_components], larger is worse."""
    base = swept.baseline
    assert base is not None
    if effect == "loss":
        effects: Any = base.log_prob[:, None].astype(float) - swept.log_prob
    elif effect == "accuracy":
        effects = base.correct[:, None].astype(float) - swept.correct
    else:
        effects = (base.metric[:, None].astype(float) - swept.metric) * (-1.0 if metric in COMPARISONS else 1.0)
    check_finite(effects, f"effects of ablation on the {effect}")
    if not (effects.std(0) > 0).any() and not (effects.mean(0).std() > 0):
        raise Invalid(f"no ablation changes the {effect}: there is no causal ranking to agree with", code=ReasonCode.NO_EFFECT)
    return effects  # type: ignore[no-any-return]


def floor_and_ceiling(swept: SweepOutcome) -> dict[str, float]:
    """Shares of the components whose ablation leaves the accuracy (nearly) intact, takes it to 0, and both; their ranks are ties."""
    assert swept.baseline is not None
    accuracy = swept.correct.mean(0)
    floor, ceiling = accuracy >= UNHARMED * swept.baseline.correct.mean(), accuracy == 0
    return {
        "share_at_floor": float(floor.mean()),
        "share_at_ceiling": float(ceiling.mean()),
        "share_at_floor_or_ceiling": float((floor | ceiling).mean()),
    }


def tied(sides: GradientVsCausal) -> str | None:
    """Why a *ranking* by accuracy means nothing: too many components leave it (nearly) intact, or take it to 0. None otherwise."""
    share = floor_and_ceiling(sides.swept)["share_at_floor_or_ceiling"]
    if sides.effect == "accuracy" and share > LARGEST_TIED_SHARE:
        return (
            f"ablating {share:.0%} of the components leaves the accuracy above {UNHARMED:.0%} of the intact one or takes it to 0, "
            f"so their ranks are ties (at most {LARGEST_TIED_SHARE:.0%} are allowed); use effect: loss"
        )
    return None


def listed(names: Sequence[str], most: int = 12) -> str:
    """A set of unit names, shortened for a line of text."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{{{', '.join(names[:most])}{more}}}"
