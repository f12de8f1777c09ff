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
        "eap": {"levels": ("component",)},
        "atp": {"levels": ("component", "neuron")},
        "eap_ig": {"levels": ("component",)},
        "ig_activations": {"levels": ("component", "neuron")},
        "relp": {"levels": ("component", "neuron")},
        "gradient": {"levels": ("component", "neuron")},
        "weight_gradient": {"levels": ("component",)},
        "exact": {"levels": ("component",)},
    },
)
METRICS = ("logit_diff", "log_prob", "prob")
