"""Sets of components that a claim names or lets choose: found on discovery examples, to be measured on evaluation ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...core.shares import Size
from ...core.units import Universe
from ...errors import Invalid
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, Share
from ..protocol import Claim
from ..steps.examples import Examples, attributed, check_share, circuits, describe, empty_set, examples, intact, set_details
from ..steps.examples import chosen as members_of
from .gradient_roles import BothRules, Role, by_rank_gap, certified
from .gradient_vs_causal import Effect, GradientAndAblation, gradient_causal

if TYPE_CHECKING:
    from ...core.results import Outcome


class NamedUnits(BaseModel):
    """Components by name."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    units: Annotated[list[str], Field(min_length=1, description="component names such as L1H2 or L0MLP")]

    @field_validator("units")
    @classmethod
    def _distinct(cls, units: list[str]) -> list[str]:
        twice = sorted({u for u in units if units.count(u) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} is named twice")
        return units


class SetParameters(BothRules, GradientAndAblation, CircuitParameters):
    """A set of components, and how it is chosen where it is not named."""

    set: Annotated[
        NamedUnits | Literal["heroes", "bloats", "shared", "top"],
        Field(description="{units: [...]}, or chosen on discovery examples: heroes, bloats, shared (S_P), top (K by mean |attribution|)"),
    ]
    chosen_by: Annotated[Effect, Field(description="heroes and bloats: the effect of ablation by which they are told")] = "loss"
    p: Annotated[Share, Field(description="shared: share of examples whose circuit a component must be in")] = 0.95


Picked = tuple[Sequence[str], str, dict[str, Any]]  # names, how they came about, what is told of that


@dataclass(frozen=True)
class Chosen:
    """The set in universe order, how it came about, and the intact model on the evaluation examples that it is measured on."""

    units: tuple[str, ...]
    how: str
    base: Outcome
    found: Examples
    universe: Universe
    evidence: dict[str, Any]

    def as_dict(self, p: SetParameters) -> dict[str, Any]:
        """For the report."""
        return {
            "set": {**set_details(self.units, self.universe), "chosen": self.how, **self.evidence},
            "ablation": p.ablation,
            "accuracy": self.base.accuracy,
            "evaluation_groups": len(set(self.found.groups(self.found.evaluation))),
            **self.found.as_dict(),
        }


def choose(claim: Claim) -> Steps[Chosen]:
    """The set of the claim. Raises `Invalid` for an empty set, one of all components, and what the way of choosing it refuses."""
    p: SetParameters = claim.parameters
    universe = yield from describe(claim)
    picked: Picked = ((), "named", {})
    if isinstance(p.set, NamedUnits):
        picked = p.set.units, "named", {}
        universe.index(p.set.units)  # refuses names that the model does not have
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    if p.set == "heroes" or p.set == "bloats":
        picked = yield from _role(claim, p.set)
    elif p.set == "shared":
        picked = yield from _shared(claim, found)
    elif p.set == "top":
        picked = yield from _top(claim, found)
    names, how, evidence = picked
    members = set(names)
    units = tuple(u for u in universe.component_names if u in members)
    if len(units) == universe.components:
        raise Invalid(f"the set is all {len(units)} components: nothing is left to compare with", {"components": len(units)})
    return Chosen(units, how, base, found, universe, evidence)


def _role(claim: Claim, role: Role) -> Steps[Picked]:
    p: SetParameters = claim.parameters
    sides = yield from gradient_causal(claim, p.chosen_by, "discovery")
    if p.rule == "rank_gap":
        found = by_rank_gap(sides, role, p.gap)
        evidence = {"expected_by_chance": found.details["expected_by_chance"]}
    else:
        limits = (p.delta, p.low) if role == "heroes" else (p.epsilon, p.high)
        found = certified(sides, role, *limits, p.confidence)
        evidence = {"undecided": found.details["undecided"]}
    if not found.sure:
        raise Invalid(
            f"none of {len(sides.units)} components is one of the {role} by rule {p.rule} ({found.details['rule']}) on "
            f"{len(sides.causal)} discovery examples{_close(found.possible)}",
            {"rule": p.rule, "possible": found.possible},
        )
    return found.sure, f"{role} by rule {p.rule}: {found.details['rule']}, on {len(sides.causal)} discovery examples", evidence


def _close(possible: list[str]) -> str:
    if not possible:
        return ""
    return f"; {', '.join(possible[:8])} could be: give more examples, or use rule: rank_gap"


def _shared(claim: Claim, found: Examples) -> Steps[Picked]:
    p: SetParameters = claim.parameters
    discovery = (yield from circuits(claim, p.task)).take(found.discovery)
    check_share(p.p, len(discovery))
    shared = discovery.shared(p.p)
    if not shared:
        raise empty_set(p, p.task, int(discovery.counts.max()), len(discovery))
    cut = f"size {p.size}" if p.threshold is None else f"threshold {p.threshold:g}"
    return shared, f"in {p.p:.0%} of the {p.attribution} circuits ({cut}) of {len(discovery)} discovery examples", {}


def _top(claim: Claim, found: Examples) -> Steps[Picked]:
    import numpy as np

    p: SetParameters = claim.parameters
    attribution = yield from attributed(claim, p.task)
    scores = attribution.scores[found.discovery].astype(float)
    strength = (scores if p.contrast else np.abs(scores)).mean(0)
    row = replace(attribution, values=strength[None].astype(np.float32), indices=None)
    names = members_of(row, p).shared(1.0)
    wanted = Size.parse(p.size).of(len(strength), p.rounding)
    if not names or (p.threshold is None and len(names) < wanted):
        raise Invalid(
            f"only {len(names)} of {len(strength)} components have the mean {p.attribution} score on discovery examples that "
            f"{f'a size of {p.size}, {wanted} components,' if p.threshold is None else f'threshold {p.threshold:g}'} asks for",
            {"scored": len(names), "components": len(strength)},
        )
    return names, f"the {len(names)} of largest mean |{p.attribution} score| on {len(found.discovery)} discovery examples", {}
