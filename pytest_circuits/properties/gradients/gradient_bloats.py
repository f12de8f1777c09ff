"""How many components have high gradients although they do not matter?"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .gradient_roles import BloatRule, count
from .gradient_vs_causal import GradientCausalParameters, gradient_causal


class GradientBloats(BloatRule, GradientCausalParameters):
    """Number of gradient bloats: components whose gradients are high, and which do not matter when they are ablated.

    G: mean over discovery examples of the absolute score of `gradient`. C: mean over evaluation examples of what ablating the
    component alone costs (`effect`: nats of the answer's cross-entropy, accuracy points, or units of the metric).
    `rule: certified`: C < `epsilon`, and at least N − floor(`high`·N) of the N components have a smaller G. The value is
    the number that bounds on all C and on all differences of G, which hold at once, leave no doubt about; the interval
    runs from it to the number that they do not exclude. Bounds: betting for accuracy (exact, wide), skewness-corrected
    t over groups otherwise (approximate; effects that no example showed are not seen, so a bloat by loss may matter on
    rare examples). `rule: rank_gap`: the published rank(G) − rank(C) ≥ `gap` (6 of 20), of which random rankings have
    5.25 of 20: the number expected by chance is reported. Interval: bias-corrected bootstrap over discovery and
    evaluation groups, everything recomputed; approximate. With accuracy, a rank gap is inconclusive when more than a
    quarter of the components sit at its floor or ceiling. Unit: components, 0 to N. Invalid below the accuracy gate, when all
    gradients are equal, when no ablation changes anything, and for a share or gap that no component can meet. That a
    component alone does not matter does not say that it is unused: others may back it up (`superadditivity`).
    Source: The Gradient-Causal Gap; the sound rule is this package's.
    """

    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples of rule rank_gap")] = 2000


def estimate(claim: Claim) -> Steps[Estimate]:
    """Measure both sides; count."""
    p: GradientBloats = claim.parameters
    sides = yield from gradient_causal(claim)
    return count(sides, "bloats", p, p.epsilon, p.high, p.resamples, "gradient_bloats")


GRADIENT_BLOATS = Property(
    "gradient_bloats",
    GradientBloats,
    estimate,
    0.0,
    None,
    "how many components have high gradients although they do not matter",
    "components",
)
