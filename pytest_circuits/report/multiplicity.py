"""Holm's step-down correction of a suite's refutations, from records alone.

Holm, A simple sequentially rejective multiple test procedure, 1979: with p-values p_(1) ≤ … ≤ p_(m), the i-th smallest stands if
p_(j) ≤ α/(m − j + 1) for all j ≤ i. The probability that any true claim of the suite is among those that stand is at most α,
whatever the dependence between claims.
"""

from __future__ import annotations

from collections.abc import Sequence

from .model import ClaimRecord, Multiplicity


def step_down(levels: Sequence[float], claims: int, alpha: float) -> list[bool]:
    """Which of the refutations stand, in the given order. `levels` are their p-values or upper bounds of them; `claims` how many
    claims have an estimate in all, those that were not refuted counting as p = 1.
    """
    stands = [False] * len(levels)
    for place, i in enumerate(sorted(range(len(levels)), key=lambda i: levels[i])):
        if levels[i] > alpha / (claims - place):
            break
        stands[i] = True
    return stands


def correct(claims: Sequence[ClaimRecord], alpha: float) -> tuple[list[bool | None], Multiplicity]:
    """For each claim whether its refutation survives (None: it is not refuted), and counts of claims, refuted and surviving.

    The claims that count are those with an estimate. Verdicts and passing do not depend on this: a test must not fail or pass by what
    other tests there are, nor by which of them were selected.
    """
    refuted = [i for i, claim in enumerate(claims) if claim.verdict == "refuted"]
    estimated = sum(claim.estimate is not None for claim in claims)
    stands = step_down([level for i in refuted if (level := claims[i].refuted_at) is not None], estimated, alpha)
    survives: list[bool | None] = [None] * len(claims)
    for i, is_standing in zip(refuted, stands, strict=True):
        survives[i] = is_standing
    return survives, Multiplicity(claims=estimated, refuted=len(refuted), surviving=sum(stands))
