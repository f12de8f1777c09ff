"""Ablation kinds. One file each, plus one line in `ABLATIONS`; importing this package imports no torch."""

from __future__ import annotations

from ..registry import Registry

ABLATIONS = Registry(
    "ablation",
    "pytest_circuits.ablations",
    {
        "zero": "pytest_circuits.ablation.zero:Zero",
        "mean": "pytest_circuits.ablation.mean:Mean",
        "counterfactual": "pytest_circuits.ablation.counterfactual:Counterfactual",
        "resample": "pytest_circuits.ablation.resample:Resample",
        "scale": "pytest_circuits.ablation.scale:Scale",
        "residual_slice": "pytest_circuits.ablation.residual_slice:ResidualSlice",
    },
    {
        "zero": {"options": ()},
        "mean": {"options": ("prompts", "positions")},
        "counterfactual": {"options": ()},
        "resample": {"options": ("seed",)},
        "scale": {"options": ("factor",), "levels": ("component", "neuron")},
        "residual_slice": {"options": (), "levels": ("component",)},
    },
)
