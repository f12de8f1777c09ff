"""Attribution methods. One file each, plus one line in `METHODS`; importing this package imports no torch.

Facts of a method, in the `FACTS` of its file, or keywords of `METHODS.add` for one from elsewhere:

- levels: the levels it works at; options: its options and their defaults (names alone will do);
- clean_gradient: whether scores are derivatives at the clean input, where a comparison with the intact model has none;
- nonnegative: levels at which scores are magnitudes;
- sums_readers: whether scores are sums over readers, of which early components have more;
- ablation_option: the option that names an ablation, of a method that measures one;
- passes: (forwards, backwards) per `batch`, and per `step` (of the option steps), `sublayer`, or `sweep` over all components.
"""

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
)


def vanishing(method: str, metric: str) -> str:
    """Why a metric does not work with a method that takes gradients at the clean input; for an error message."""
    able = ", ".join(name for name in METHODS if not METHODS.fact(name, "clean_gradient", False))
    return (
        f"{method} takes the gradient at the clean input, where {metric} to the intact model is at its minimum, so the gradient is 0: "
        f"use the metric logit_diff, log_prob or prob, or one of the methods {able}"
    )
