"""The set of components that a claim is about: named, or selected on discovery examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...core.shares import Size
from ...core.units import Universe
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, Share
from ..protocol import Claim
from ..steps.attribution import attribute_examples
from ..steps.circuits import cut_circuits, find_circuits
from ..steps.examples import Examples, describe_model, measure_intact, split_examples
from ..steps.shared_sets import set_details, shared_units
from .gradient_roles import Role, by_rank_gap, certified
from .gradient_vs_causal import measure_sides
from .parameters import BothRules, Effect, GradientParameters
from .role_count import role_thresholds

if TYPE_CHECKING:
    from ...core.results import Outcome


class NamedUnits(BaseModel):
    """Components by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    units: Annotated[list[str], Field(min_length=1, description="component names such as L1H2 or L0MLP")]

    @field_validator("units")
    @classmethod
    def _distinct(cls, units: list[str]) -> list[str]:
        repeated = sorted({u for u in units if units.count(u) > 1})
        if repeated:
            raise ValueError(f"{', '.join(repeated)} is named twice")
        return units


class SetParameters(BothRules, GradientParameters, CircuitParameters):
    """A set of components, named or selected."""

    set: Annotated[
        NamedUnits | Literal["heroes", "bloats", "shared", "top"],
        Field(description="{units: [...]}, or selected on discovery examples: heroes, bloats, shared (S_P), top (K by mean |attribution|)"),
    ]
    chosen_by: Annotated[Effect, Field(description="heroes and bloats: the effect of ablation that defines them")] = "loss"
    p: Annotated[Share, Field(description="shared: share of examples whose circuit a component must be in")] = 0.95


Selection = tuple[Sequence[str], str, dict[str, Any]]  # names, how they were selected, details of the selection


@dataclass(frozen=True)
class SelectedSet:
    """The set in universe order, how it was selected, and the intact model on the evaluation examples that it is measured on."""

    units: tuple[str, ...]
    how: str
    base: Outcome
    examples: Examples
    universe: Universe
    evidence: dict[str, Any]

    @property
    def groups(self) -> list[str]:
        """The group of each evaluation example."""
        return self.examples.groups(self.examples.evaluation)

    def as_dict(self, p: SetParameters) -> dict[str, Any]:
        """For the report."""
        return {
            "set": {**set_details(self.units, self.universe), "chosen": self.how, **self.evidence},
            "ablation": p.ablation,
            "accuracy": self.base.accuracy,
            "evaluation_groups": len(set(self.groups)),
            **self.examples.as_dict(),
        }


def select(claim: Claim) -> Steps[SelectedSet]:
    """The set of the claim. Raises `Invalid` for an empty set, for all components, and where the selection is not possible."""
    p: SetParameters = claim.parameters
    universe = yield from describe_model(claim)
    selection: Selection = ((), "named", {})
    if isinstance(p.set, NamedUnits):
        selection = p.set.units, "named", {}
        universe.index(p.set.units)  # refuses names that the model does not have
    split = yield from split_examples(claim, p.task)
    base = yield from measure_intact(claim, p.task, split)
    if p.set == "heroes" or p.set == "bloats":
        selection = yield from _role(claim, p.set)
    elif p.set == "shared":
        selection = yield from _shared(claim, split)
    elif p.set == "top":
        selection = yield from _top(claim, split)
    names, how, evidence = selection
    members = set(names)
    units = tuple(u for u in universe.component_names if u in members)
    if len(units) == universe.components:
        raise Invalid(
            f"the set is all {len(units)} components: nothing is left to compare with",
            {"components": len(units)},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    return SelectedSet(units, how, base, split, universe, evidence)


def _role(claim: Claim, role: Role) -> Steps[Selection]:
    p: SetParameters = claim.parameters
    sides = yield from measure_sides(claim, p.chosen_by, "discovery")
    if p.rule == "rank_gap":
        members = by_rank_gap(sides, role, p.gap)
        evidence = {"expected_by_chance": members.details["expected_by_chance"]}
    else:
        members = certified(sides, role, *role_thresholds(p, role), p.confidence)
        evidence = {"undecided": members.details["undecided"]}
    if not members.sure:
        possible = f"; {', '.join(members.possible[:8])} could be: use more examples, or rule: rank_gap" if members.possible else ""
        raise Invalid(
            f"none of {len(sides.units)} components is one of the {role} by rule {p.rule} ({members.details['rule']}) on "
            f"{len(sides.causal)} discovery examples{possible}",
            {"rule": p.rule, "possible": members.possible},
            code=ReasonCode.EMPTY_SET,
        )
    return members.sure, f"{role} by rule {p.rule}: {members.details['rule']}, on {len(sides.causal)} discovery examples", evidence


def _shared(claim: Claim, split: Examples) -> Steps[Selection]:
    p: SetParameters = claim.parameters
    discovery = (yield from find_circuits(claim, p.task)).take(split.discovery)
    shared = shared_units(discovery, p.p, p.task, p.threshold)
    cut = f"size {p.size}" if p.threshold is None else f"threshold {p.threshold:g}"
    return shared, f"in {p.p:.0%} of the {p.attribution} circuits ({cut}) of {len(discovery)} discovery examples", {}


def _top(claim: Claim, split: Examples) -> Steps[Selection]:
    import numpy as np

    p: SetParameters = claim.parameters
    attribution = yield from attribute_examples(claim, p.task)
    scores = attribution.scores[split.discovery].astype(float)
    strength = (scores if p.contrast else np.abs(scores)).mean(0)
    row = replace(attribution, values=strength[None].astype(np.float32), indices=None)
    names = cut_circuits(row, p).shared(1.0)
    size = Size.parse(p.size).of(len(strength), p.rounding)
    if not names or (p.threshold is None and len(names) < size):
        least = "other than zero" if p.threshold is None else f"that is {p.threshold:g} of the sum"
        remedy = f"size {p.size} needs {size}" if p.threshold is None else "lower threshold"
        raise Invalid(
            f"only {len(names)} of {len(strength)} components have a mean {p.attribution} score {least} on discovery examples; {remedy}",
            {"scored": len(names), "components": len(strength)},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    return names, f"the {len(names)} of largest mean |{p.attribution} score| on {len(split.discovery)} discovery examples", {}
