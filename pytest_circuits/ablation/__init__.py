"""Ablation kinds. One file each, plus one line in `ABLATIONS`; importing this package imports no torch.

Facts of a kind, in the `FACTS` of its file, or keywords of `ABLATIONS.add` for one from elsewhere:

- options: its options and their defaults (names alone will do); levels: the levels it works at, if not all;
- values: where the values come from that units get: `constant`; `activation`, the unit's own; `corrupt`, the example's own corrupt prompt;
  `donor`, another prompt of the task, the same whichever examples are ablated; `reference`, the reference examples together.
"""

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
)
