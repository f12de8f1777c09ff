"""Do a few neurons carry everything? Completeness of a neuron circuit."""

from __future__ import annotations

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .neuron_circuit import NeuronCircuit, circuit_ratio


class NeuronCompleteness(NeuronCircuit):
    """completeness(C) = (F(remove C) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples.

    C: the `neurons` of largest |mean score| over the discovery examples. remove C ablates C and nothing else; ∅: all MLP neurons ablated;
    attention stays live. Near 0 if the neurons outside C cannot do the task; 1 if C makes no difference; below 0 if the rest works against
    the task. Unbounded. It is the faithfulness of C's complement, and equals 1 − faithfulness(C) only if the effects of neurons add up. The
    literature also uses the two names the other way round. The report also gives faithfulness(C). Invalid: if F(M) − F(∅) is not clearly
    away from zero, below the accuracy gate, and if fewer than `neurons` have a score. Sources: Language model circuits are sparse in the
    neuron basis; Marks et al. 2025. Interval: Fieller's (a linear contrast) over groups.
    """


def estimate(claim: Claim) -> Steps[Estimate]:
    """Remove the circuit; the same measurements also give its faithfulness."""
    return (yield from circuit_ratio(claim, "completeness"))


NEURON_COMPLETENESS = Property(
    "neuron_completeness",
    NeuronCompleteness,
    estimate,
    summary="nothing outside a few neurons carries the behaviour: completeness of a neuron circuit",
    unit="ratio",
)
