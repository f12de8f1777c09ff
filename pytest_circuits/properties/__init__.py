"""Properties: what a claim can assert. One file each, plus one line in `PROPERTIES`."""

from __future__ import annotations

from ..registry import Registry

PROPERTIES = Registry(
    "property",
    "pytest_circuits.properties",
    {
        "accuracy": "pytest_circuits.properties.accuracy:ACCURACY",
        "reuse": "pytest_circuits.properties.reuse:REUSE",
        "shared_size": "pytest_circuits.properties.shared_size:SHARED_SIZE",
        "necessity": "pytest_circuits.properties.necessity:NECESSITY",
        "sufficiency": "pytest_circuits.properties.sufficiency:SUFFICIENCY",
        "jaccard": "pytest_circuits.properties.jaccard:JACCARD",
        "composition": "pytest_circuits.properties.composition:COMPOSITION",
        "layer_profile": "pytest_circuits.properties.layer_profile:LAYER_PROFILE",
        "circuit_match": "pytest_circuits.properties.circuit_match:CIRCUIT_MATCH",
        "cross_task_ablation": "pytest_circuits.properties.cross_task_ablation:CROSS_TASK_ABLATION",
        "specificity": "pytest_circuits.properties.specificity:SPECIFICITY",
        "decomposition": "pytest_circuits.properties.decomposition:DECOMPOSITION",
        "stability": "pytest_circuits.properties.stability:STABILITY",
        "gradient_ablation_agreement": "pytest_circuits.properties.gradient_ablation_agreement:GRADIENT_ABLATION_AGREEMENT",
        "hidden_heroes": "pytest_circuits.properties.hidden_heroes:HIDDEN_HEROES",
        "gradient_bloats": "pytest_circuits.properties.gradient_bloats:GRADIENT_BLOATS",
        "superadditivity": "pytest_circuits.properties.superadditivity:SUPERADDITIVITY",
        "joint_ablation": "pytest_circuits.properties.joint_ablation:JOINT_ABLATION",
        "neuron_faithfulness": "pytest_circuits.properties.neuron_faithfulness:NEURON_FAITHFULNESS",
        "neuron_completeness": "pytest_circuits.properties.neuron_completeness:NEURON_COMPLETENESS",
        "neurons_to_reach": "pytest_circuits.properties.neurons_to_reach:NEURONS_TO_REACH",
        "sparsity_ratio": "pytest_circuits.properties.sparsity_ratio:SPARSITY_RATIO",
        "cpr": "pytest_circuits.properties.cpr:CPR",
        "cmd": "pytest_circuits.properties.cmd:CMD",
        "conservation": "pytest_circuits.properties.conservation:CONSERVATION",
        "role_stability": "pytest_circuits.properties.role_stability:ROLE_STABILITY",
        "trajectory": "pytest_circuits.properties.trajectory:TRAJECTORY",
        "drift": "pytest_circuits.properties.drift:DRIFT",
        "steering": "pytest_circuits.properties.steering:STEERING",
        "for_all": "pytest_circuits.properties.for_all:FOR_ALL",
    },
)
