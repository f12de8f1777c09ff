"""The metrics by name, and what is known of them without torch."""

from __future__ import annotations

METRICS = ("logit_diff", "log_prob", "prob", "kl")
HOMOGENEOUS = ("logit_diff",)  # metrics that double when the logits double
COMPARISONS = ("kl",)  # metrics that compare with the intact model, where they and their derivatives are zero


def inhomogeneous(metric: str) -> str:
    """Why relevance cannot add up to a metric."""
    return (
        f"relevance adds up to a metric that doubles when the logits double, and {metric} does not: "
        f"conservation says nothing about it; use the metric {' or '.join(HOMOGENEOUS)}"
    )
