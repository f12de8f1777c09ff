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
        "eap": {"levels": ("component", "edge"), "options": (), "clean_gradient": True},
        "atp": {"levels": ("component", "neuron"), "options": ("positions",), "clean_gradient": True},
        "eap_ig": {"levels": ("component", "edge"), "options": ("steps", "rule")},
        "ig_activations": {"levels": ("component", "neuron"), "options": ("steps", "rule", "unpaired", "positions")},
        "relp": {"levels": ("component", "neuron"), "options": ("unpaired", "positions"), "clean_gradient": True},
        "gradient": {"levels": ("component", "neuron"), "options": ("positions",), "clean_gradient": True},
        "weight_gradient": {"levels": ("component",), "options": ("normalisation", "gradient_batch"), "clean_gradient": True},
        "exact": {"levels": ("component",), "options": ("kind",)},
    },
)


def vanishing(method: str, metric: str) -> str:
    """Why a metric has no gradient for a method that takes it at the clean input."""
    able = ", ".join(name for name in METHODS if not METHODS.fact(name, "clean_gradient", False))
    return (
        f"{method} takes the gradient at the clean input, where {metric} to the intact model is at its minimum and its gradient vanishes: "
        f"use the metric logit_diff, log_prob or prob, or one of the methods {able}"
    )
