"""Exact intervals for a share of successes (Clopper & Pearson, 1934)."""

from __future__ import annotations

from ..errors import Invalid, OptionError
from .distributions import beta_quantile
from .groups import level


def binomial_lower(successes: int, n: int, confidence: float = 0.95) -> float:
    """One-sided lower bound of a probability: exceeds the truth with chance at most 1 − confidence. Exact (conservative)."""
    _check(successes, n)
    return 0.0 if successes == 0 else beta_quantile(level(confidence), successes, n - successes + 1)


def binomial_upper(successes: int, n: int, confidence: float = 0.95) -> float:
    """One-sided upper bound of a probability. Exact (conservative)."""
    return 1 - binomial_lower(n - successes, n, confidence)


def binomial_interval(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided interval: both one-sided bounds at half the error each. Assumes n independent trials. Exact (conservative)."""
    one_sided = 1 - level(confidence) / 2
    return binomial_lower(successes, n, one_sided), binomial_upper(successes, n, one_sided)


def _check(successes: int, n: int) -> None:
    if n < 1:
        raise Invalid("there are no trials, so no probability can be estimated", {"n": n})
    if not 0 <= successes <= n:
        raise OptionError(f"{successes} successes in {n} trials are impossible")
