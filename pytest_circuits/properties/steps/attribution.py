"""Attribution scores of a task's examples, and those beyond other tasks (contrastive attribution)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import Invalid, ReasonCode
from ...measurement.requests import ALL, Attribute, Steps, ask, ask_all, freeze
from ..parameters import CircuitParameters
from ..protocol import Claim
from .examples import measure_intact, split_examples
from .numeric_checks import check_finite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from ...core.results import Attribution

    Array = np.ndarray[Any, np.dtype[np.float64]]

NOISE = 1e-6
"""Differences of shares, or of ranks over N, that float32 scores cannot tell from 0."""


def attribute_examples(claim: Claim, task: str, parameters: CircuitParameters | None = None) -> Steps[Attribution]:
    """Scores of all examples of a task, `values` [n, n_units]; with `contrast`, how far each unit stands out from the other tasks, signed.

    Raises `Invalid` as `contrastive_scores`, and for scores that are not finite.
    """
    chosen: CircuitParameters = claim.parameters if parameters is None else parameters
    if chosen.contrast:
        return (yield from contrastive_scores(claim, task, chosen))
    scores = yield from ask(attribution_request(claim, task, chosen))
    check_finite(scores.values, f"{chosen.attribution} scores of task {task!r}")
    return scores


def attribution_request(claim: Claim, task: str, parameters: CircuitParameters) -> Attribute:
    """The request for the component scores of all examples of a task."""
    options = freeze(parameters.attribution_options)
    return Attribute(claim.model, claim.tasks[task], parameters.attribution, "component", parameters.metric, ALL, None, options)


def contrastive_scores(claim: Claim, task: str, parameters: CircuitParameters) -> Steps[Attribution]:
    """Contrastive scores of all examples of a task, float32 [n, N]: t_i(u) − mean over tasks B of mean over examples j of B of t_j(u).

    t is the unit's share of the example's Σ|score| (`contrast_by: share`), or its rank by |score| over N (`rank`), 0 for a score of 0.
    The other tasks contribute their discovery examples. Scores lie in [−1, 1]; those within 1e-6 of 0 are 0, as are those of an
    example without any score. After the outlook of arXiv 2605.08348.

    Raises `Invalid` when no other task is named, the model cannot do one of them, all scores of one are zero, or some are not finite.
    """
    import numpy as np

    others = [name for name in parameters.contrast if name != task]
    if not others:
        raise Invalid(
            f"contrast names only {task!r}, the task whose circuits are ranked: name other tasks",
            code=ReasonCode.NOTHING_TO_CONTRAST,
        )
    scores, *contrasts = yield from ask_all([attribution_request(claim, name, parameters) for name in (task, *others)])
    for name, attribution in zip((task, *others), (scores, *contrasts), strict=True):
        check_finite(attribution.values, f"{parameters.attribution} scores of task {name!r}")
    means = []
    for name, attribution in zip(others, contrasts, strict=True):
        examples = yield from split_examples(claim, name)
        yield from measure_intact(claim, name, examples)
        discovery = attribution.scores[examples.discovery]
        scored = discovery[(discovery != 0).any(1)]
        if not len(scored):
            raise Invalid(
                f"all {parameters.attribution} scores of contrast task {name!r} are zero, so nothing can stand out from it",
                {"task": name},
                code=ReasonCode.NOTHING_TO_CONTRAST,
            )
        means.append(strength(scored, parameters.contrast_by).mean(0))
    strengths = strength(scores.scores, parameters.contrast_by)
    difference = strengths - np.mean(means, axis=0)
    difference[(np.abs(difference) < NOISE) | ~strengths.any(1, keepdims=True)] = 0
    return replace(scores, values=difference.astype(np.float32), indices=None, method=f"{scores.method}, contrastive")


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
