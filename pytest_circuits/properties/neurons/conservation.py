"""Conservation: does relevance add up to the metric at every layer?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.metric_names import HOMOGENEOUS, inhomogeneous
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Conserve, Describe, Steps, ask_together
from ..parameters import Parameters, TaskName
from ..protocol import Claim, Property
from ..steps.examples import measure_intact, part, split_examples

if TYPE_CHECKING:
    from ...core.results import Conservation


class ConservationParameters(Parameters):
    """conservation = max over layer boundaries of mean |Σ x·∂f/∂x + Σ b·∂f/∂b − f| / mean |f|, on evaluation examples.

    x: the residual stream at a boundary (the input of layer 0, then the stream after each layer), summed over positions and features;
    b: the biases above that boundary; f: the metric; ∂ under `rules`. It is 0 up to rounding if relevance is conserved, so that scores are
    shares of f. Range from 0 up. `rules: none` is the plain gradient, which does not conserve relevance (near 1 at the last boundary): a
    negative control. Only for metrics that are homogeneous in the logits. Invalid: below the accuracy gate (`min_accuracy: 0` switches it
    off; conservation holds for untrained models as well), if f is zero or not clearly away from it, and if a rule cannot be applied
    (mixtures of experts). Source: RelP (arXiv 2508.21258).

    Interval: Fieller's for the ratio at each boundary, over groups; from the largest lower end, at level α/(2·boundaries), to the largest
    upper end, at α/2, which together cover the maximum.
    """

    task: TaskName
    rules: Annotated[Literal["relp", "none"], Field(description="relp, or none: the plain gradient, as a negative control")] = "relp"

    @model_validator(mode="after")
    def _homogeneous(self) -> ConservationParameters:
        if self.metric not in HOMOGENEOUS:
            raise ValueError(inhomogeneous(self.metric))
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Compare the sum over the stream with the metric at every boundary."""
    import numpy as np

    p: ConservationParameters = claim.parameters
    split = yield from split_examples(claim, p.task)
    base = yield from measure_intact(claim, p.task, split)
    measured, description = yield from ask_together(
        Conserve(claim.model, claim.tasks[p.task], p.rules, p.metric, part(p, "evaluation")), Describe(claim.model)
    )
    size = float(np.abs(measured.metric).mean())
    if size == 0:
        raise Invalid(
            f"the metric {p.metric} is exactly 0 on all {len(measured.metric)} evaluation examples: there is nothing to conserve",
            {"n": len(measured.metric)},
            code=ReasonCode.ZERO_DENOMINATOR,
        )
    groups = split.groups(split.evaluation)
    errors, interval = _largest_error(np.abs(measured.gaps), np.abs(measured.metric), groups, p.confidence)
    worst = int(np.argmax(errors))
    details = {
        "rules": p.rules,
        "metric": p.metric,
        "boundaries": list(measured.boundaries),
        "errors": errors,
        "worst_boundary": measured.boundaries[worst],
        "mean_absolute_metric": size,
        "mean_totals": [float(t) for t in measured.totals.mean(0)],
        "mean_metric": float(measured.metric.mean()),
        "biases": _biases(measured, size),
        "dtype": description.dtype,
        "accuracy": base.accuracy,
        "notes": _notes(p, measured, errors, size, description.dtype),
        **split.as_dict(),
    }
    kind = "largest of Fieller intervals over groups, one a boundary"
    return Estimate(errors[worst], interval, len(groups), p.confidence, kind, "conservation", details)


def _largest_error(gaps: Any, size: Any, groups: list[str], confidence: float) -> tuple[list[float], tuple[float, float]]:
    """The error at each boundary, gaps [n, B] over size [n], and the interval of the largest of them.

    With the corrected level all lower ends are below their own errors, and so below the maximum. The maximum is one particular error, below
    its own upper end and so below the largest one.
    """
    from ...stats.ratio import fieller

    boundaries = gaps.shape[1]
    corrected = 1 - (1 - confidence) / boundaries
    errors, lows, highs = [], [], []
    for column in gaps.T:
        value, (_, high) = fieller(column, size, groups, confidence)
        lows.append(max(0.0, fieller(column, size, groups, corrected)[1][0]))
        errors.append(float(value))
        highs.append(high)
    value = max(errors)
    return errors, (min(value, max(lows)), max(value, *highs))


def _biases(measured: Conservation, size: float) -> dict[str, Any] | None:
    """The contribution of the biases, and the error without their terms; None if the model has no biases."""
    import numpy as np

    if measured.biases is None:
        return None
    without = np.abs(measured.totals - measured.metric[:, None]).mean(0) / size
    return {
        "mean_terms": [float(t) for t in measured.biases.mean(0)],
        "shares": [float(t) for t in np.abs(measured.biases).mean(0) / size],
        "errors_without_their_terms": [float(t) for t in without],
    }


def _notes(p: ConservationParameters, measured: Conservation, errors: list[float], size: float, dtype: str) -> list[str]:
    worst = max(range(len(errors)), key=errors.__getitem__)
    place = "at the embeddings" if worst == 0 else f"after layer {worst - 1}"
    how = "under the RelP rules" if p.rules == "relp" else "by the plain gradient"
    terms = "with the terms of the biases above it, " if measured.biases is not None else ""
    lines = [
        f"the relevance of the residual stream {how}, {terms}compared with the {p.metric} at {len(errors)} boundaries, in {dtype}",
        f"the largest gap is {place}: {errors[worst]:.3g} of the mean |{p.metric}| of {size:.3g}; "
        f"the smallest of any boundary is {min(errors):.3g}",
    ]
    if p.rules == "none":
        lines.append(
            "the plain gradient is not expected to conserve relevance: the final norm removes the stream's length, so the sum is near 0"
        )
    return lines


CONSERVATION = Property(
    "conservation",
    ConservationParameters,
    estimate,
    0.0,
    None,
    "relevance adds up to the metric at every layer, so that scores are shares of it",
    "share of the mean absolute metric",
)
