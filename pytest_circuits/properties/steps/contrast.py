"""Contrastive attribution: what a component scores on a task beyond what it scores on other tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import Invalid
from ...measurement.requests import Steps, ask_all
from ..parameters import CircuitParameters
from ..protocol import Claim
from .finite import check_finite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from ...core.results import Attribution

    Array = np.ndarray[Any, np.dtype[np.float64]]

NOISE = 1e-6  # differences of shares, or of ranks over N, that float32 scores cannot tell from 0


def against(claim: Claim, task: str, p: CircuitParameters) -> Steps[Attribution]:
    """Contrastive scores of all examples of a task, float32 [n, N]: t_i(u) − mean over tasks B of mean over examples j of B of t_j(u).

    t is the unit's share of the example's Σ|score| (`contrast_by: share`), or its rank by |score| over N (`rank`), 0 for a score of 0.
    Of the other tasks, discovery examples are used. Scores lie in [−1, 1]; those within 1e-6 of 0 are 0, as are those of an
    example without any score. The idea is the outlook of arXiv 2605.08348.
    Raises `Invalid` when no other task is named, the model cannot do one of them, or all scores of one are zero or some not finite.
    """
    import numpy as np

    from .examples import examples, intact, scores_of

    others = [name for name in p.contrast if name != task]
    if not others:
        raise Invalid(f"contrast names only {task!r}, whose circuits are to be found: a task does not stand out from itself; name others")
    found: Attribution
    found, *rest = yield from ask_all([scores_of(claim, name, p) for name in (task, *others)])
    for name, attribution in zip((task, *others), (found, *rest), strict=True):
        check_finite(attribution.values, f"{p.attribution} scores of task {name!r}")
    means = []
    for name, attribution in zip(others, rest, strict=True):
        sides = yield from examples(claim, name)
        yield from intact(claim, name, sides)
        scores = attribution.scores[sides.discovery]
        scored = scores[(scores != 0).any(1)]
        if not len(scored):
            raise Invalid(
                f"all {p.attribution} scores of contrast task {name!r} are zero, so nothing can stand out from it", {"task": name}
            )
        means.append(strength(scored, p.contrast_by).mean(0))
    here = strength(found.scores, p.contrast_by)
    difference = here - np.mean(means, axis=0)
    difference[(np.abs(difference) < NOISE) | ~here.any(1, keepdims=True)] = 0
    return replace(found, values=difference.astype(np.float32), indices=None, method=f"{found.method}, contrastive")


def strength(scores: ArrayLike, by: str) -> Array:
    """How strong each unit is within each example, in [0, 1]; [n, N]. A score of 0 has strength 0.

    `share`: |score| / Σ|score|. `rank`: the rank of |score| from below, over N; equal scores share the mean of their ranks.
    """
    import numpy as np

    from ...stats.ranks import ranks

    size = np.abs(np.asarray(scores, dtype=np.float64))
    if by == "rank":
        return np.where(size > 0, ranks(size) / size.shape[1], 0.0)
    shares: Array = size / np.maximum(size.sum(1, keepdims=True), np.finfo(np.float64).tiny)
    return shares
