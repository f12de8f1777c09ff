"""The metrics by name, and facts about them that need no torch."""

from __future__ import annotations

METRICS = ("logit_diff", "log_prob", "prob", "kl")
HOMOGENEOUS = ("logit_diff",)  # doubles when the logits double
COMPARISONS = ("kl",)  # compares with the intact model, where it and its derivatives are zero


def inhomogeneous(metric: str) -> str:
    """Why relevance does not add up to this metric; for an error message."""
    return (
        f"relevance is conserved only for a metric that doubles when the logits double, which {metric} does not; "
        f"use the metric {' or '.join(HOMOGENEOUS)}"
    )
