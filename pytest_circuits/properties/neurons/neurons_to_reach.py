"""How many neurons are needed? The smallest circuit that reaches a given faithfulness."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..parameters import CurveParameters, SiteName
from ..protocol import Claim, Property
from ..steps.curves import UnitSpace
from .size_search import search_notes, smallest_circuit

Reach = Annotated[float, Field(gt=0, le=1, description="the faithfulness to reach")]


class NeuronsToReach(CurveParameters):
    """The smallest n for which the n neurons of largest |mean score| have faithfulness ≥ `reach`: a count of neurons.

    faithfulness(n) = (F(keep C_n) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples; C_n is ranked on discovery examples;
    ∅: all MLP neurons ablated; attention stays live. Searched on the grid 1, 2, 4 … and by bisection: the value is the smallest *probed*
    n, and n − 1 was probed and falls short. Faithfulness need not grow with n, so a smaller n that was not probed may reach it too; the
    report lists all probes. Range 1 to all neurons, where faithfulness is 1. Invalid: if no circuit of neurons with a score reaches it (the
    best value is reported), if F(M) − F(∅) is not clearly away from zero, and below the accuracy gate. Source: Language model circuits are
    sparse in the neuron basis.

    Interval: Fieller's interval of each probe, inverted: from the smallest probed n whose upper end reaches it to the smallest whose lower
    end does, given the ranking. It has its nominal coverage if faithfulness grows with n, and can be too short if the curve turns back
    around `reach`.
    """

    reach: Reach = 0.9
    site: SiteName = "mlp_activation"


def estimate(claim: Claim) -> Steps[Estimate]:
    """Probe sizes until each end of the interval is settled."""
    p: NeuronsToReach = claim.parameters
    circuit = yield from smallest_circuit(claim, UnitSpace("neuron", p.site), p.reach, p.confidence)
    details = {**circuit.details, **circuit.examples.as_dict(), "notes": search_notes(circuit)}
    n = len(circuit.effect.groups)
    kind = "Fieller intervals over groups, inverted"
    ends = float(circuit.low), float(circuit.high)
    return Estimate(float(circuit.value), ends, n, p.confidence, kind, "neurons_to_reach", details, shrinks=False)


NEURONS_TO_REACH = Property(
    "neurons_to_reach",
    NeuronsToReach,
    estimate,
    1.0,
    None,
    "the smallest number of neurons whose circuit reaches a given faithfulness",
    "neurons",
)
