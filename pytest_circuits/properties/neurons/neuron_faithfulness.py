"""Are a few neurons enough? Faithfulness of a neuron circuit."""

from __future__ import annotations

from ...core.verdict import Estimate
from ...measurement.requests import Steps
from ..protocol import Claim, Property
from .neuron_circuit import NeuronCircuit, circuit_ratio


class NeuronFaithfulness(NeuronCircuit):
    """faithfulness(C) = (F(keep C) − F(∅)) / (F(M) − F(∅)), F the mean metric on evaluation examples.

    C: the `neurons` of largest |mean score| over the discovery examples. keep C ablates all MLP neurons but C (∅: all of them); attention
    stays live. Near 1 if C is enough; above 1 if the rest works against it. Unbounded. The report also gives
    completeness(C) = (F(remove C) − F(∅)) / (F(M) − F(∅)), which is near 0 if the neurons outside C are not enough. With
    attribution_options {positions: each} a neuron at one position is a unit by itself. Invalid: if F(M) − F(∅) is not clearly away from
    zero, below the accuracy gate, and if fewer than `neurons` have a score. Sources: Language model circuits are sparse in the neuron
    basis; Marks et al. 2025. Interval: Fieller's (a linear contrast) over groups.
    """


def estimate(claim: Claim) -> Steps[Estimate]:
    """Keep the circuit; the same measurements also give its completeness."""
    return (yield from circuit_ratio(claim, "faithfulness"))


NEURON_FAITHFULNESS = Property(
    "neuron_faithfulness",
    NeuronFaithfulness,
    estimate,
    summary="a few neurons carry the behaviour: faithfulness of a neuron circuit",
    unit="ratio",
)
