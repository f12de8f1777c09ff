"""Is nothing left outside a few neurons? Completeness of a neuron circuit."""

from __future__ import annotations

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .neuron_circuit import NeuronCircuit, told, two_sided


class NeuronCompleteness(NeuronCircuit):
    """completeness(C) = (F(remove C) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples.

    C: the `neurons` of largest |mean score| over the discovery examples. remove C ablates C and nothing else; ∅: all MLP
    neurons ablated; attention stays live. Near 0 when nothing outside C does the task; 1 when C makes no difference; below 0
    when the rest works against it. Unbounded. It is the faithfulness of C's complement; 1 − faithfulness(C) only where
    neurons add up. The literature also uses the two names the other way round. The report gives faithfulness(C) beside it.
    Invalid when F(M) − F(∅) is not clearly away from zero, below the accuracy gate, and when fewer neurons have a score
    than asked for. Sources: Language model circuits are sparse in the neuron basis; Marks et al. 2025. Interval:
    Fieller's, a linear contrast, over groups.
    """


def estimate(claim: Claim) -> Steps[Estimate]:
    """Remove the circuit; the same measurements also give its faithfulness."""
    p: NeuronCompleteness = claim.parameters
    found = yield from two_sided(claim)
    value, interval = found.ground.ratio(found.remove)
    faithfulness, faithful = found.ground.ratio(found.keep)
    details = {
        **found.details,
        "completeness": value,
        "faithfulness": faithfulness,
        "faithfulness_interval": list(faithful),
    }
    details["notes"] = told(details, "faithfulness")
    n = len(found.ground.groups)
    return Estimate(value, interval, n, p.confidence, "Fieller interval over groups", "neuron_completeness", details)


NEURON_COMPLETENESS = Property(
    "neuron_completeness",
    NeuronCompleteness,
    estimate,
    summary="nothing outside a few neurons carries the behaviour: completeness of a neuron circuit",
    unit="ratio",
)
