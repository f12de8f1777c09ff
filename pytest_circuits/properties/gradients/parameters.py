"""Parameters that properties about gradients share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ...attribution import METHODS
from ...core.shares import exact
from ..parameters import AblationName, MethodName, Options, Parameters, TaskName, check_ablation, check_method

Effect = Literal["loss", "accuracy", "metric"]
EFFECT_UNITS = {"loss": "nats", "accuracy": "accuracy points", "metric": "units of the metric"}
PortionOfUnits = Annotated[float, Field(gt=0, lt=1)]


def default_options(method: str) -> dict[str, Any]:
    """The options of an attribution method with their defaults, if the method declares them."""
    options = METHODS.fact(method, "options")
    return dict(options) if isinstance(options, Mapping) else {}


class GradientParameters(Parameters):
    """A gradient ranking of the components of one task, and the ablation that it is compared with."""

    task: TaskName
    gradient: Annotated[MethodName, Field(description="attribution method of the gradient ranking")] = "weight_gradient"
    gradient_options: Annotated[Options, Field(description="options of `gradient`, e.g. normalisation")] = Field(default_factory=dict)
    ablation: Annotated[AblationName, Field(description="what an ablated component is replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _rankings_differ(self) -> GradientParameters:
        option = METHODS.fact(self.gradient, "ablation_option")
        if option and {**default_options(self.gradient), **self.gradient_options}.get(option) == self.ablation:
            raise ValueError(
                f"gradient {self.gradient!r} with {option} {self.ablation!r} is the same ablation, which agrees with itself; use another"
            )
        check_method(self.gradient, self.gradient_options, "component", self.metric)
        check_ablation(self.ablation, self.ablation_options)
        return self


class GradientCausalParameters(GradientParameters):
    """A gradient ranking, and causal importance measured by the effect of ablation."""

    effect: Annotated[Effect, Field(description="what ablation is measured by")] = "loss"


class RoleRule(Parameters):
    """The rule by which a component is a hidden hero or a gradient bloat."""

    rule: Annotated[
        Literal["certified", "rank_gap"],
        Field(description="certified: bounds on C and on the place of G; rank_gap: the published difference of ranks"),
    ] = "certified"
    gap: Annotated[int, Field(ge=1, description="rule rank_gap: least difference of ranks; published: 6 of 20")] = 6


class HeroRule(RoleRule):
    """The thresholds of hidden heroes."""

    delta: Annotated[float, Field(ge=0, description="rule certified: least effect of a hero, in nats, accuracy points or metric")] = 0.1
    low: Annotated[PortionOfUnits, Field(description="rule certified: share of components whose gradients count as low")] = 0.5


class BloatRule(RoleRule):
    """The thresholds of gradient bloats."""

    epsilon: Annotated[float, Field(gt=0, description="rule certified: largest effect of a bloat, in nats, accuracy points or metric")] = (
        0.05
    )
    high: Annotated[PortionOfUnits, Field(description="rule certified: share of components whose gradients count as high")] = 0.5


class BothRules(HeroRule, BloatRule):
    """The thresholds of both roles."""

    @model_validator(mode="after")
    def _portions_are_disjoint(self) -> BothRules:
        if exact(self.low) + exact(self.high) > 1:
            raise ValueError(f"low {self.low:g} and high {self.high:g} overlap: a gradient would count as both low and high")
        return self


class RoleCountParameters(RoleRule, GradientCausalParameters):
    """Parameters of properties that count the components in a role."""

    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples of rule rank_gap")] = 2000
