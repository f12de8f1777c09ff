"""Properties: what a claim can assert. One file each, plus one line in `PROPERTIES`."""

from __future__ import annotations

from ..registry import Registry

PROPERTIES = Registry(
    "property",
    "pytest_circuits.properties",
    {
        "accuracy": "pytest_circuits.properties.consistency.accuracy:ACCURACY",
        "reuse": "pytest_circuits.properties.consistency.reuse:REUSE",
        "shared_size": "pytest_circuits.properties.consistency.shared_size:SHARED_SIZE",
        "necessity": "pytest_circuits.properties.consistency.necessity:NECESSITY",
        "sufficiency": "pytest_circuits.properties.consistency.sufficiency:SUFFICIENCY",
        "jaccard": "pytest_circuits.properties.specificity.jaccard:JACCARD",
        "composition": "pytest_circuits.properties.consistency.composition:COMPOSITION",
        "layer_profile": "pytest_circuits.properties.consistency.layer_profile:LAYER_PROFILE",
        "circuit_match": "pytest_circuits.properties.consistency.circuit_match:CIRCUIT_MATCH",
        "cross_task_ablation": "pytest_circuits.properties.specificity.cross_task_ablation:CROSS_TASK_ABLATION",
        "specificity": "pytest_circuits.properties.specificity.specificity:SPECIFICITY",
        "decomposition": "pytest_circuits.properties.specificity.decomposition:DECOMPOSITION",
        "stability": "pytest_circuits.properties.consistency.stability:STABILITY",
        "gradient_ablation_agreement": "pytest_circuits.properties.gradients.gradient_ablation_agreement:GRADIENT_ABLATION_AGREEMENT",
        "hidden_heroes": "pytest_circuits.properties.gradients.hidden_heroes:HIDDEN_HEROES",
        "gradient_bloats": "pytest_circuits.properties.gradients.gradient_bloats:GRADIENT_BLOATS",
        "superadditivity": "pytest_circuits.properties.gradients.superadditivity:SUPERADDITIVITY",
        "joint_ablation": "pytest_circuits.properties.gradients.joint_ablation:JOINT_ABLATION",
        "neuron_faithfulness": "pytest_circuits.properties.neurons.neuron_faithfulness:NEURON_FAITHFULNESS",
        "neuron_completeness": "pytest_circuits.properties.neurons.neuron_completeness:NEURON_COMPLETENESS",
        "neurons_to_reach": "pytest_circuits.properties.neurons.neurons_to_reach:NEURONS_TO_REACH",
        "sparsity_ratio": "pytest_circuits.properties.neurons.sparsity_ratio:SPARSITY_RATIO",
        "cpr": "pytest_circuits.properties.neurons.cpr:CPR",
        "cmd": "pytest_circuits.properties.neurons.cmd:CMD",
        "conservation": "pytest_circuits.properties.neurons.conservation:CONSERVATION",
        "role_stability": "pytest_circuits.properties.series.role_stability:ROLE_STABILITY",
        "trajectory": "pytest_circuits.properties.series.trajectory:TRAJECTORY",
        "drift": "pytest_circuits.properties.release.drift:DRIFT",
        "steering": "pytest_circuits.properties.neurons.steering:STEERING",
        "for_all": "pytest_circuits.properties.search.for_all:FOR_ALL",
    },
)
