"""How many components have high gradients although they do not matter?"""

from __future__ import annotations

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .parameters import BloatRule, RoleCountParameters
from .role_count import count_role


class GradientBloats(BloatRule, RoleCountParameters):
    """Number of gradient bloats: components with high gradients that do not matter when they are ablated.

    G: mean over discovery examples of the absolute score of `gradient`. C: mean over evaluation examples of the effect of ablating the
    component by itself (`effect`: nats of the answer's cross-entropy, accuracy points, or units of the metric).

    `rule: certified`: C < `epsilon`, and at least N − floor(`high`·N) of the N components have a smaller G. Bounds on all C and on all
    differences of G hold at once. The value is the number of components that meet the rule everywhere inside these bounds; the interval
    runs from it to the number that meet it somewhere. Bounds: betting for accuracy (exact, wide), otherwise skewness-corrected t over
    groups (approximate; they cannot account for effects that no example showed, so a bloat by loss may matter on rare examples).

    `rule: rank_gap`: the published rank(G) − rank(C) ≥ `gap` (6 of 20). Random rankings have 5.25 of 20 such components; the number
    expected by chance is reported. Interval: bias-corrected bootstrap over discovery and evaluation groups, everything recomputed;
    approximate. With `effect: accuracy` it is inconclusive if more than a quarter of the components sit at the floor or ceiling.

    Unit: components, 0 to N. Invalid: below the accuracy gate, if all gradients are equal, if no ablation changes anything, and for a share
    or gap that no component can meet. A component that does not matter by itself may still be used: others may back it up
    (`superadditivity`). Source: The Gradient-Causal Gap; rule `certified` is this package's.
    """


def estimate(claim: Claim) -> Steps[Estimate]:
    """Count the bloats."""
    return (yield from count_role(claim, "bloats"))


GRADIENT_BLOATS = Property(
    "gradient_bloats",
    GradientBloats,
    estimate,
    0.0,
    None,
    "how many components have high gradients although they do not matter",
    "components",
)
