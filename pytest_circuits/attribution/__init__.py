"""Attribution methods. One file each, plus one line in `METHODS`; importing this package imports no torch."""

from __future__ import annotations

from ..registry import Registry

METHODS = Registry(
    "attribution method",
    "pytest_circuits.attributions",
    {
        "eap": "pytest_circuits.attribution.eap:Eap",
        "atp": "pytest_circuits.attribution.atp:Atp",
        "eap_ig": "pytest_circuits.attribution.eap_ig:EapIg",
        "ig_activations": "pytest_circuits.attribution.ig_activations:IgActivations",
        "relp": "pytest_circuits.attribution.relp:Relp",
        "gradient": "pytest_circuits.attribution.gradient:Gradient",
        "weight_gradient": "pytest_circuits.attribution.weight_gradient:WeightGradient",
        "exact": "pytest_circuits.attribution.exact:Exact",
    },
    {
        "eap": {"levels": ("component",), "options": ()},
        "atp": {"levels": ("component", "neuron"), "options": ()},
        "eap_ig": {"levels": ("component",), "options": ("steps", "rule")},
        "ig_activations": {"levels": ("component", "neuron"), "options": ("steps", "rule", "unpaired")},
        "relp": {"levels": ("component", "neuron"), "options": ("unpaired",)},
        "gradient": {"levels": ("component", "neuron"), "options": ()},
        "weight_gradient": {"levels": ("component",), "options": ("normalisation", "gradient_batch")},
        "exact": {"levels": ("component",), "options": ("kind",)},
    },
)
METRICS = ("logit_diff", "log_prob", "prob")
