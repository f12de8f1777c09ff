"""The two sides of the gradient–causal comparison: what gradients say about each component, and what ablating it costs.

Properties take `GradientCausalParameters` and start with `sides = yield from gradient_causal(claim)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...attribution import METHODS
from ...core.metric_names import COMPARISONS
from ...core.units import layer_of
from ...errors import Invalid
from ...measurement.requests import ALL, Attribute, Describe, Steps, Sweep, ask_together, freeze
from ..parameters import AblationName, MethodName, Options, Parameters, TaskName, check_ablation, check_method
from ..protocol import Claim
from ..steps.examples import Examples, examples, intact, part
from ..steps.finite import check_finite

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Description, Outcome, SweepOutcome

    Table = np.ndarray[Any, np.dtype[np.float64]]

Effect = Literal["loss", "accuracy", "metric"]
TIED = 0.25  # largest share of components at the floor or the ceiling of accuracy whose ranks can be read
FEW = 0.01  # the strongest examples whose share of the summed gradients is told
HEAVY = 0.25  # share from which on G hangs on them
WHOLE = 0.95  # share of the intact accuracy above which a component counts as costing nothing
UNITS = {"loss": "nats", "accuracy": "accuracy points", "metric": "units of the metric"}


class GradientAndAblation(Parameters):
    """Parameters of the two sides."""

    task: TaskName
    gradient: Annotated[MethodName, Field(description="attribution method of the gradient side")] = "weight_gradient"
    gradient_options: Annotated[Options, Field(description="its options, e.g. normalisation")] = Field(default_factory=dict)
    ablation: Annotated[AblationName, Field(description="what an ablated component is replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _sides_fit(self) -> GradientAndAblation:
        option = METHODS.fact(self.gradient, "ablation_option")
        if option and {**_defaults(self), **self.gradient_options}.get(option) == self.ablation:
            raise ValueError(
                f"gradient {self.gradient!r} with {option} {self.ablation!r} is this very ablation, which agrees with itself; name another"
            )
        check_method(self.gradient, self.gradient_options, "component", self.metric)
        check_ablation(self.ablation, self.ablation_options)
        return self


class GradientCausalParameters(GradientAndAblation):
    """Parameters of the two sides, and what ablation is measured by."""

    effect: Annotated[Effect, Field(description="what ablation is measured by")] = "loss"


@dataclass(frozen=True)
class GradientVsCausal:
    """Both sides of one task on one model, over N components named by `units`.

    gradient [n, N]: absolute attribution scores of the discovery examples; `blocks` [n] says which of them are resampled
    together. causal [m, N]: what ablating each component alone costs on each of the other examples (larger is worse, in
    nats, accuracy points or metric units); `groups` [m] is their unit of resampling. `one_sample`: both sides are of the
    same examples and are resampled together. `base` is the intact model on the evaluation examples, whichever the causal
    examples are; `swept.baseline` is it on these.
    """

    units: tuple[str, ...]
    gradient: Table
    blocks: list[str]
    causal: Table
    groups: list[str]
    one_sample: bool
    base: Outcome
    swept: SweepOutcome
    found: Examples
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

    def as_dict(self, p: GradientAndAblation) -> dict[str, Any]:
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
            **self.found.as_dict(),
        }

    def from_strongest(self) -> dict[str, float]:
        """How many examples the strongest hundredth is, and its share of all gradients, summed over components and examples.

        Gradients of a model that is nearly always right come from the few examples on which it is not.
        """
        import numpy as np

        total = np.sort(self.gradient.sum(1))[::-1]
        few = max(1, round(FEW * len(total)))
        return {"examples": few, "share": float(total[:few].sum() / total.sum())}

    def caveats(self) -> list[str]:
        """What a reader must know of the measurements, in words."""
        from_few = self.from_strongest()
        if from_few["share"] <= HEAVY:
            return []
        share = f"{from_few['examples']} of {len(self.gradient)} discovery examples give {from_few['share']:.0%} of the summed gradients"
        return [f"{share}, so G hangs on these few"]

    def layer_profile(self) -> dict[str, list[float]]:
        """Mean G and mean C over the components of each layer, first layer first."""
        g, c = self.means
        layers = [layer_of(u) for u in self.units]
        rows = [[i for i, at in enumerate(layers) if at == layer] for layer in range(self.description.universe.layers)]
        return {name: [float(side[row].mean()) for row in rows] for name, side in (("gradient", g), ("causal", c))}


def gradient_causal(
    claim: Claim, effect: str | None = None, causal: Literal["evaluation", "discovery"] = "evaluation"
) -> Steps[GradientVsCausal]:
    """Measure both sides of the claim's task: G on discovery examples, C on the `causal` ones.

    `effect` (default: the claim's) is `loss`, the rise of the answer's cross-entropy in nats; `accuracy`, the drop of correct
    answers; or `metric`, the drop of the metric (of `kl`, the rise). Raises `Invalid` below the accuracy gate, when all
    gradients are equal, when no ablation changes anything, and for scores or effects that are not finite.
    """
    import numpy as np

    p: GradientAndAblation = claim.parameters
    effect = effect or claim.parameters.effect
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    source = claim.tasks[p.task]
    shares = p.gradient_options.get("gradient_batch", 1) != 1  # a gradient over several examples must not mix both sides of the split
    description, attribution, swept = yield from ask_together(
        Describe(claim.model),
        Attribute(
            claim.model,
            source,
            p.gradient,
            "component",
            p.metric,
            part(p, "discovery") if shares else ALL,
            None,
            freeze(p.gradient_options),
        ),
        Sweep(claim.model, source, p.ablation, p.metric, part(p, causal), part(p, "discovery"), freeze(p.ablation_options)),
    )
    rows = np.arange(len(found.discovery)) if shares else found.discovery
    batched = len(np.unique(attribution.blocks)) < len(attribution.blocks)
    strength = np.abs(attribution.scores[rows]).astype(float)
    check_ranked(strength, p.gradient)
    return GradientVsCausal(
        tuple(attribution.units),
        strength,
        # examples whose gradients were taken together are resampled together
        [str(b) for b in attribution.blocks[rows]] if batched else found.groups(found.discovery),
        cost(swept, effect, p.metric),
        found.groups(found.evaluation if causal == "evaluation" else found.discovery),
        (p.split == "in_sample" or causal == "discovery") and not batched,
        base,
        swept,
        found,
        description,
        effect,
        {k: v for k, v in attribution.details.items() if k != "site"} or _defaults(p),
    )


def check_ranked(strength: Table, gradient: str) -> None:
    """Raises `Invalid` when there are fewer than two components, or all their gradients are equal: there is no ranking."""
    import numpy as np

    means = strength.mean(0)
    if not np.isfinite(means).all():
        raise Invalid(f"{int((~np.isfinite(means)).sum())} of {len(means)} components have {gradient} scores that are NaN or infinite")
    if len(means) < 2:
        raise Invalid(f"the model has {len(means)} component, and a ranking needs at least 2", {"components": len(means)})
    if (means == means[0]).all():
        raise Invalid(
            f"all {len(means)} components have the same mean {gradient} score ({means[0]:g}), so there is no gradient ranking",
            {"components": len(means), "score": float(means[0])},
        )


def cost(swept: SweepOutcome, effect: str, metric: str) -> Table:
    """What ablation of each component costs on each example; [n_examples, n_components], larger is worse."""
    base = swept.baseline
    assert base is not None
    if effect == "loss":
        found: Any = base.log_prob[:, None].astype(float) - swept.log_prob
    elif effect == "accuracy":
        found = base.correct[:, None].astype(float) - swept.correct
    else:
        found = (base.metric[:, None].astype(float) - swept.metric) * (-1.0 if metric in COMPARISONS else 1.0)
    check_finite(found, f"effects of ablation on the {effect}")
    if not (found.std(0) > 0).any() and not (found.mean(0).std() > 0):
        raise Invalid(f"no ablation changes the {effect}: there is no causal ranking to agree with")
    return found  # type: ignore[no-any-return]


def floor_and_ceiling(swept: SweepOutcome) -> dict[str, float]:
    """Shares of the components whose ablation leaves accuracy (nearly) whole, takes all of it, and both: their accuracies tie."""
    assert swept.baseline is not None
    accuracy = swept.correct.mean(0)
    floor, ceiling = accuracy >= WHOLE * swept.baseline.correct.mean(), accuracy == 0
    return {
        "share_at_floor": float(floor.mean()),
        "share_at_ceiling": float(ceiling.mean()),
        "share_at_floor_or_ceiling": float((floor | ceiling).mean()),
    }


def tied(sides: GradientVsCausal) -> str | None:
    """Why a *ranking* by accuracy cannot be read: too many components leave it (nearly) whole, or take all of it; else None."""
    share = floor_and_ceiling(sides.swept)["share_at_floor_or_ceiling"]
    if sides.effect == "accuracy" and share > TIED:
        return (
            f"{share:.0%} of the components leave the accuracy above {WHOLE:.0%} of the intact one or take all of it, "
            f"so their ranks are ties (at most {TIED:.0%} can be read); use effect: loss"
        )
    return None


def listed(names: Sequence[str], most: int = 12) -> str:
    """A set of unit names for a line of text, shortened."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{{{', '.join(names[:most])}{more}}}"


def _defaults(p: GradientAndAblation) -> dict[str, Any]:
    """The options of the gradient's method, where their defaults are known."""
    options = METHODS.fact(p.gradient, "options")
    return dict(options) if isinstance(options, Mapping) else {}
