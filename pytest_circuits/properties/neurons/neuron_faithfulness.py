"""Are a few neurons enough? Faithfulness of a neuron circuit."""

from __future__ import annotations

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .neuron_circuit import NeuronCircuit, told, two_sided


class NeuronFaithfulness(NeuronCircuit):
    """faithfulness(C) = (F(keep C) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples.

    C: the `neurons` of largest |mean score| over the discovery examples. keep C ablates all MLP neurons but C (∅: all
    of them); attention stays live. Near 1 when C is enough; above 1 when the rest works against it. Unbounded. The
    report also gives completeness(C) = (F(remove C) − F(∅)) / (F(M) − F(∅)), which is near 0 when nothing outside C
    is enough. With attribution_options {positions: each} a neuron at one position is a unit of its own. Invalid when
    F(M) − F(∅) is not clearly away from zero, below the accuracy gate, and when fewer neurons have a score than asked
    for. Sources: Language model circuits are sparse in the neuron basis; Marks et al. 2025. Interval: Fieller's, a
    linear contrast, over groups.
    """


def estimate(claim: Claim) -> Steps[Estimate]:
    """Keep the circuit; the same measurements also give its completeness."""
    p: NeuronFaithfulness = claim.parameters
    found = yield from two_sided(claim)
    value, interval = found.ground.ratio(found.keep)
    completeness, complete = found.ground.ratio(found.remove)
    details = {
        **found.details,
        "faithfulness": value,
        "completeness": completeness,
        "completeness_interval": list(complete),
    }
    details["notes"] = told(details, "completeness")
    n = len(found.ground.groups)
    return Estimate(value, interval, n, p.confidence, "Fieller interval over groups", "neuron_faithfulness", details)


NEURON_FAITHFULNESS = Property(
    "neuron_faithfulness",
    NeuronFaithfulness,
    estimate,
    summary="a few neurons carry the behaviour: faithfulness of a neuron circuit",
    unit="ratio",
)
