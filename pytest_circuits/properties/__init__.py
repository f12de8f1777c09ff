"""Properties: what a claim can assert. One file each, plus one line in `PROPERTIES`."""

from __future__ import annotations

from ..registry import Registry

PROPERTIES = Registry(
    "property",
    "pytest_circuits.properties",
    {
        "reuse": "pytest_circuits.properties.reuse:REUSE",
        "necessity": "pytest_circuits.properties.necessity:NECESSITY",
        "jaccard": "pytest_circuits.properties.jaccard:JACCARD",
        "gradient_ablation_agreement": "pytest_circuits.properties.gradient_ablation_agreement:GRADIENT_ABLATION_AGREEMENT",
        "neuron_faithfulness": "pytest_circuits.properties.neuron_faithfulness:NEURON_FAITHFULNESS",
        "neuron_completeness": "pytest_circuits.properties.neuron_completeness:NEURON_COMPLETENESS",
        "conservation": "pytest_circuits.properties.conservation:CONSERVATION",
    },
)
