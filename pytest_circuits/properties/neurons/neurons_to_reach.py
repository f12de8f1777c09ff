"""How many neurons does it take? The smallest circuit that reaches a given faithfulness."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from ..steps.curves import CurveParameters, SiteName, UnitSpace
from .size_search import reaching, told

Reach = Annotated[float, Field(gt=0, le=1, description="the faithfulness to reach")]


class NeuronsToReach(CurveParameters):
    """The smallest n for which the n neurons of largest |mean score| have faithfulness ≥ `reach`: a count of neurons.

    faithfulness(n) = (F(keep C_n) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples; C_n is ranked on
    discovery examples; ∅: all MLP neurons ablated; attention stays live. Found on a grid 1, 2, 4 … and by bisection: the
    smallest *probed* n, where n − 1 was probed and falls short. Faithfulness need not grow with n, so a smaller n that
    was not probed may reach it too; the report lists all probes. Range 1 to all neurons (there faithfulness is 1).
    Invalid when it is not reached by the neurons that have a score (with the best value), when F(M) − F(∅) is not
    clearly away from zero, and below the accuracy gate. Source: Language model circuits are sparse in the neuron basis.
    Interval: Fieller's interval of each probe inverted: from the smallest probed n whose upper end reaches it to the
    smallest whose lower end does. Nominal where faithfulness grows with n, and about the ranking that was found; where
    the curve turns back around `reach` it can be short.
    """

    reach: Reach = 0.9
    site: SiteName = "mlp_activation"


def estimate(claim: Claim) -> Steps[Estimate]:
    """Probe sizes until each end of the interval is settled."""
    p: NeuronsToReach = claim.parameters
    reached = yield from reaching(claim, UnitSpace("neuron", p.site), p.reach, p.confidence)
    details = {**reached.details, **reached.found.as_dict(), "notes": told(reached)}
    n = len(reached.ground.groups)
    kind = "Fieller intervals over groups, inverted"
    ends = float(reached.low), float(reached.high)
    return Estimate(float(reached.value), ends, n, p.confidence, kind, "neurons_to_reach", details, shrinks=False)


NEURONS_TO_REACH = Property(
    "neurons_to_reach",
    NeuronsToReach,
    estimate,
    1.0,
    None,
    "the smallest number of neurons whose circuit reaches a given faithfulness",
    "neurons",
)
