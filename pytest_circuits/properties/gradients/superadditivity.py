"""Do components back each other up? The joint drop of a set compared with its single drops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps, ask
from ..protocol import Claim, Property
from ..steps.removal import ablation_request
from .component_selection import NamedUnits, SelectedSet, SetParameters, select
from .gradient_vs_causal import listed
from .parameters import EFFECT_UNITS

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Outcome

    Table = np.ndarray[Any, np.dtype[np.float64]]

LOST = 0.05  # accuracy at or below which, or below guessing, a drop cannot grow
PREDICTIONS = {"sum": "the sum of the single drops", "mean": "the mean single drop", "independence": "independent drops"}


class Superadditivity(SetParameters):
    """Joint drop of a set of components minus the prediction from its single drops; above 0 if they back each other up.

    value = D(S) − Σ_i D({i}) (`against: sum`), − mean_i D({i}) (`mean`), or, for accuracy, − a·(1 − Π_i (1 − D({i})/a)) with a
    the intact accuracy (`independence`: each removal keeps its share of the correct answers, whatever else is removed).
    D is the effect of ablating a set on evaluation examples: nats of the answer's cross-entropy (`effect: loss`) or accuracy points.
    Unit: nats or accuracy points; unbounded.

    The value is a difference, not a ratio, since the ratio to a sum near zero could be anything. The published ratio of joint to mean
    single drop is in the details, with a warning if its denominator is not clearly above 0. Independence of probabilities is additivity of
    the loss. Negative values can be saturation: an accuracy cannot fall below 0, so a set whose single drops add up to more than the
    intact accuracy cannot be superadditive by sum, and a loss hardly grows once the answer is lost. The report points this out.

    S is named (`{units: [...]}`), or selected on discovery examples: `heroes` and `bloats` (rules of `hidden_heroes` and
    `gradient_bloats`, from discovery gradients and ablations), `shared` (S_P), `top` (K of largest mean |attribution|).
    Invalid: a set of one component, an empty set, all components, below the accuracy gate. Source: The Gradient-Causal Gap.

    Interval, over groups, all drops paired by example: skewness-corrected t for loss (approximate: measured coverage of 95% intervals
    88–94% for log-normal losses of 16 to 256 examples); betting for accuracy (exact; every group counts the same); for independence
    a bias-corrected bootstrap, joined with a betting interval of the linearised difference to allow for events too rare to be resampled
    (approximate).
    """

    against: Annotated[Literal["sum", "mean", "independence"], Field(description="what the joint drop is compared with")] = "sum"
    effect: Annotated[Literal["loss", "accuracy"], Field(description="what ablation is measured by")] = "loss"
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples of against: independence")] = 2000

    @model_validator(mode="after")
    def _independence_of_accuracy(self) -> Superadditivity:
        if self.against == "independence" and self.effect != "accuracy":
            raise ValueError(
                "against: independence multiplies shares of correct answers, so it needs effect: accuracy; for the loss use against: sum"
            )
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Select the set; ablate it as a whole and member by member on the same examples."""
    p: Superadditivity = claim.parameters
    selected = yield from select(claim)
    if len(selected.units) < 2:
        raise Invalid(
            f"the set has only {selected.units[0]} ({selected.how}), whose joint drop is its single drop; at least 2 components are needed",
            {"set": list(selected.units)},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    outcome = yield from ask(ablation_request(claim, p.task, [selected.units, *((u,) for u in selected.units)]))
    groups = selected.groups
    drops = {
        "loss": selected.base.log_prob.astype(float) - outcome.log_prob,
        "accuracy": selected.base.correct.astype(float) - outcome.correct,
    }
    value, interval, kind = _compare(p, drops[p.effect], selected.base, outcome, groups)
    details = {
        "against": p.against,
        "effect": p.effect,
        **_drops(drops, p.effect, groups, selected),
        "accuracy_without_set": float(outcome.correct[0].mean()),
        "saturated": bool(outcome.correct[0].mean() <= max(LOST, selected.examples.encoded.chance)),
        **_ratio(drops[p.effect], p, groups),
        **selected.as_dict(p),
    }
    details["notes"] = _notes(details, p, value)
    return Estimate(value, interval, len(groups), p.confidence, kind, "superadditivity", details)


def _compare(
    p: Superadditivity, drops: Table, base: Outcome, outcome: Outcome, groups: list[str]
) -> tuple[float, tuple[float, float], str]:
    """Joint drop minus the prediction; drops [1 + k, n], the joint one first."""
    from ...stats.betting import grouped_mean_interval

    if p.against == "independence":
        return _independence(p, base, outcome, groups)
    k = len(drops) - 1
    difference = drops[0] - (drops[1:].sum(0) if p.against == "sum" else drops[1:].mean(0))
    if p.effect == "loss":
        return *_mean(difference, groups, p.confidence), "skewness-corrected t interval over groups"
    # an example's drops are 0 or 1 if it was right, and 0 or −1 if it was wrong
    most = float(k if p.against == "sum" else 1)
    value, interval, _ = grouped_mean_interval(difference, groups, p.confidence, -most, most)
    return value, interval, "betting interval over groups"


def _independence(p: Superadditivity, base: Outcome, outcome: Outcome, groups: list[str]) -> tuple[float, tuple[float, float], str]:
    """a·Π(a_i/a) − a_S: the accuracy that independent drops would leave, minus the accuracy that is left."""
    import numpy as np

    from ...stats import bootstrap
    from ...stats.groups import group_sums

    if not base.correct.any():
        raise Invalid(
            "the intact accuracy is 0, so a removal cannot keep a share of the correct answers",
            {"accuracy": 0.0},
            code=ReasonCode.ZERO_DENOMINATOR,
        )
    sums, sizes = group_sums(np.concatenate([base.correct[None], outcome.correct]).T.astype(float), groups)

    def excess(counts: Any) -> Any:
        mean = bootstrap.weighted_means(counts, sums, sizes)
        with np.errstate(divide="ignore", invalid="ignore"):
            return mean[:, 0] * (mean[:, 2:] / mean[:, :1]).prod(1) - mean[:, 1]

    value, (low, high), _ = bootstrap.bootstrap_interval(excess, [len(sizes)], p.confidence, 0, p.resamples, -1.0, 1.0)
    below, above = _unseen(base.correct.astype(float), outcome.correct.astype(float), groups, p.confidence)
    interval = max(-1.0, min(low, value - below)), min(1.0, max(high, value + above))
    return value, interval, "bias-corrected bootstrap over groups, joined with a betting interval of the linearised difference"


def _unseen(base: Table, correct: Table, groups: list[str], confidence: float) -> tuple[float, float]:
    """Distances of the ends of a betting interval of the linearised excess from its value, below and above.

    A bootstrap cannot resample a rare event that no example showed, such as two removals that break the same answer; a betting interval
    allows for it. base [n], correct [1 + k, n], the joint removal first.
    """
    import numpy as np

    from ...stats.betting import grouped_mean_interval

    accuracy, singles = float(base.mean()), correct[1:].mean(1)
    shares = singles / accuracy
    slopes = np.array([np.delete(shares, i).prod() for i in range(len(shares))])
    slope_of_base = (1 - len(shares)) * float(shares.prod())
    terms = slope_of_base * base + slopes @ correct[1:] - correct[0]
    lowest, highest = min(slope_of_base, 0.0) - 1, max(slope_of_base, 0.0) + float(slopes.sum())
    value, (low, high), _ = grouped_mean_interval(terms, groups, confidence, lowest, highest)
    return value - low, high - value


def _mean(values: Table, groups: list[str], confidence: float) -> tuple[float, tuple[float, float]]:
    from ...stats.groups import group_sums
    from ...stats.hall_interval import mean_bounds

    sums, sizes = group_sums(values[:, None], groups)
    mean, low, high = (float(x[0]) for x in mean_bounds(sums, sizes, confidence))
    return mean, (low, high)


def _drops(drops: dict[str, Table], effect: str, groups: list[str], selected: SelectedSet) -> dict[str, Any]:
    """Joint and single drops in loss and accuracy, averaged as the value is: over examples for loss, over groups for accuracy."""
    from ...stats.groups import group_means

    averaged = {"loss": drops["loss"].mean(1), "accuracy": group_means(drops["accuracy"].T, groups)[0].mean(0)}
    joint = {name: float(row[0]) for name, row in averaged.items()}
    single = {u: {name: float(row[i]) for name, row in averaged.items()} for i, u in enumerate(selected.units, 1)}
    total = sum(drop["accuracy"] for drop in single.values())
    return {
        "joint": joint,
        "single": single,
        "sum_of_singles": {name: float(row[1:].sum()) for name, row in averaged.items()},
        "sum_exceeds_intact": bool(effect == "accuracy" and total > float(selected.base.correct.mean())),
    }


def _ratio(drops: Table, p: Superadditivity, groups: list[str]) -> dict[str, Any]:
    """The published ratio of the joint to the mean single drop, with a warning if its denominator is not clearly above 0."""
    single, (low, high) = _mean(drops[1:].mean(0), groups, p.confidence)
    clear = low > 0
    return {
        "joint_over_mean_single": float(drops[0].mean() / single) if single != 0 else None,
        "mean_single": [single, low, high],
        "ratio_warning": None
        if clear
        else f"the mean single drop, {single:.3g} [{low:.3g}, {high:.3g}], is not clearly above 0: the ratio could be anything",
    }


def _notes(d: dict[str, Any], p: Superadditivity, value: float) -> list[str]:
    unit, joint, total = EFFECT_UNITS[p.effect], d["joint"][p.effect], d["sum_of_singles"][p.effect]
    names = listed(d["set"]["units"])
    lines = [
        f"{names} removed together ({p.ablation} ablation): drop {joint:.3g} {unit}; one at a time: {total:.3g} in total, "
        f"{total / d['set']['size']:.3g} on average, on the same {d['evaluation']} examples",
        f"set: {d['set']['chosen']}",
        f"{value:+.3g} {unit} compared with {PREDICTIONS[p.against]}; accuracy intact {d['accuracy']:.3f}, "
        f"without the set {d['accuracy_without_set']:.3f}",
    ]
    if d["sum_exceeds_intact"] and p.against == "sum":
        lines.append(
            "the single drops add up to more than the intact accuracy, so the joint drop cannot be larger: use against: independence"
        )
    if d["saturated"] and value < 0:
        lines.append(
            "nothing is left of the behaviour without the set, so the joint drop cannot be larger: the negative value is saturation"
        )
    if d["ratio_warning"]:
        lines.append(f"ratio of joint to mean single drop: {d['ratio_warning']}")
    return lines


def limits(p: Superadditivity) -> tuple[float | None, float | None]:
    """The range of the value; for accuracy and `against: sum` it depends on the number of components."""
    if p.effect == "loss" or (p.against == "sum" and not isinstance(p.set, NamedUnits)):
        return None, None
    most = float(len(p.set.units)) if p.against == "sum" and isinstance(p.set, NamedUnits) else 1.0
    return -most, most


SUPERADDITIVITY = Property(
    "superadditivity", Superadditivity, estimate, None, None,
    "removing a set has a larger effect than removing its members one by one: they back each other up",
    "nats or accuracy points", limits=limits,
)  # fmt: skip
