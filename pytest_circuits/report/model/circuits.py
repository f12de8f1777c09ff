"""How well a circuit is supported: an entry of the report's `circuits`."""

from __future__ import annotations

from typing import Any, Literal, get_args

from .base import ReportPart

Tier = Literal["proposed", "suggestive", "supported", "triangulated"]
TIERS: tuple[Tier, ...] = get_args(Tier)
"""From the weakest support to the strongest."""


class Evidence(ReportPart):
    """Node ids of the certified claims, by kind; those of faithfulness by the kind of ablation."""

    necessity: tuple[str, ...] = ()
    faithfulness: dict[str, tuple[str, ...]]
    stability: tuple[str, ...] = ()
    specificity: tuple[str, ...] = ()


class CircuitEvidence(ReportPart):
    """One circuit: what it is, its tier, the claims that it rests on, those that were refuted, and what the next tier asks for.

    Circuits of components have a size or a threshold, a rounding, a share `p` and a contrast; circuits of neurons a number and a site.
    """

    model: str
    task: str
    level: Literal["component", "neuron"]
    attribution: str
    attribution_options: dict[str, Any]
    metric: str
    split: float | str
    split_seed: int
    size: int | float | str | None = None
    threshold: float | None = None
    rounding: str | None = None
    p: float | None = None
    contrast: tuple[Any, ...] = ()
    contrast_by: str | None = None
    neurons: int | str | None = None
    site: str | None = None
    evidence: Evidence
    refuted: tuple[str, ...] = ()
    tier: Tier
    missing: tuple[str, ...] = ()
