"""Quantiles of the distributions used here. Imports of scipy only `scipy.special`, which is quick."""

from __future__ import annotations

from scipy.special import betaincinv, ndtr, ndtri, stdtrit  # type: ignore[import-untyped]

from .groups import level


def normal_cdf(z: float) -> float:
    """Φ(z)."""
    return float(ndtr(z))


def normal_quantile(p: float) -> float:
    """Φ⁻¹(p)."""
    return float(ndtri(p))


def t_quantile(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's t: |t| stays below it with probability `confidence`."""
    return float(stdtrit(freedom, 1 - level(confidence) / 2))


def beta_quantile(p: float, a: float, b: float) -> float:
    """The p-quantile of the beta distribution with parameters a and b."""
    return float(betaincinv(a, b, p))
