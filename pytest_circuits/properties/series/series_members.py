"""The models of a series with both sides of the gradient–causal comparison, and whether they can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import Invalid, ReasonCode
from ...measurement.requests import Describe, Steps, ask
from ..gradients.gradient_vs_causal import GradientVsCausal, measure_sides
from ..protocol import Claim

if TYPE_CHECKING:
    from ...core.sources import ModelSource

FEWEST = 3
"""Models that stability over models needs at least."""


@dataclass(frozen=True)
class Member:
    """One model of the series, with its two sides, or the reason why they could not be measured."""

    model: ModelSource
    fingerprint: str
    sides: GradientVsCausal | None
    reason: str | None = None


MeasuredMember = tuple[Member, GradientVsCausal]


def measure_member(claim: Claim, model: ModelSource) -> Steps[Member]:
    """Measure both sides of one model."""
    from ...stats import ranks

    description = yield from ask(Describe(model))
    try:
        sides = yield from measure_sides(claim.about(model))
        ranks.spearman(*sides.means)  # refuses constant rankings
    except Invalid as problem:
        return Member(model, description.fingerprint, None, str(problem))
    return Member(model, description.fingerprint, sides)


def comparable(p: Any, members: Sequence[Member]) -> list[MeasuredMember]:
    """The members that were measured. Raises `Invalid` if they cannot be compared; `p` are the parameters of `role_stability`."""
    missing = [member for member in members if member.sides is None]
    reasons = {"left_out": {member.model.name: member.reason for member in missing}}
    if missing and p.invalid == "fail":
        first_missing = missing[0]
        raise Invalid(
            f"{first_missing.model.name!r} cannot be measured (`invalid: skip` leaves such models out): {first_missing.reason}",
            reasons,
            code=ReasonCode.MODEL_CANNOT_BE_MEASURED,
        )
    measured = [(member, member.sides) for member in members if member.sides is not None]
    if len(measured) < FEWEST:
        last = f"; {missing[-1].model.name!r}: {missing[-1].reason}" if missing else ""
        raise Invalid(
            f"{len(measured)} of {len(members)} models could be measured, and {FEWEST} are needed{last}",
            reasons,
            code=ReasonCode.TOO_FEW_MODELS,
        )
    first, first_sides = measured[0]
    n = len(first_sides.units)
    for member, sides in measured[1:]:
        if sides.units != first_sides.units:
            raise Invalid(
                f"{first.model.name!r} has {n} components and {member.model.name!r} {len(sides.units)}, and they are not the same: "
                "roles are compared component by component",
                {"components": {other.model.name: len(s.units) for other, s in measured}},
                code=ReasonCode.DIFFERENT_COMPONENTS,
            )
    fingerprints = [member.fingerprint for member, _ in measured]
    twin = next((i for i, fingerprint in enumerate(fingerprints) if fingerprint in fingerprints[:i]), None)
    if twin is not None:
        other = measured[fingerprints.index(fingerprints[twin])][0].model.name
        raise Invalid(
            f"{measured[twin][0].model.name!r} and {other!r} have the same weights, and a model agrees with itself: leave one out",
            code=ReasonCode.SAME_WEIGHTS,
        )
    if p.gap >= n:
        raise Invalid(
            f"the ranks of {n} components differ by at most {n - 1}, so gap: {p.gap} can never be reached",
            {"components": n},
            code=ReasonCode.GAP_OUT_OF_REACH,
        )
    return measured
