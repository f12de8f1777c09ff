"""Do components back each other up? The joint drop of a set against its single drops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps, ask
from ..protocol import Claim, Property
from ..steps.controls import ablation
from .component_selection import Chosen, NamedUnits, SetParameters, choose
from .gradient_vs_causal import UNITS, listed

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Outcome

    Table = np.ndarray[Any, np.dtype[np.float64]]

LOST = 0.05  # accuracy at or below which, or below guessing, nothing is left to lose
WAYS = {"sum": "the sum of the single drops", "mean": "the mean single drop", "independence": "what independent drops would give"}


class Superadditivity(SetParameters):
    """Joint drop of a set of components minus what its single drops predict; above 0 when they back each other up.

    value = D(S) − Σ_i D({i}) (`against: sum`), − mean_i D({i}) (`mean`), or, for accuracy, − a·(1 − Π_i (1 − D({i})/a)) with a
    the intact accuracy (`independence`: each removal keeps its share of the correct answers, whatever else is removed).
    D is what ablating a set costs on evaluation examples: nats of the answer's cross-entropy (`effect: loss`) or accuracy
    points. A difference, never a ratio: sums near zero give any ratio; the published joint/mean-single ratio is in the
    details, with a warning where its denominator is not clearly above 0. Independence of probabilities is additivity of
    the loss. An accuracy cannot fall below 0, so a set whose single drops add up to more than the intact accuracy cannot be
    superadditive by sum, and a loss hardly grows where the answer is lost already: a negative value is then saturation. The
    report says so.
    S is named (`{units: [...]}`), or chosen on discovery examples: `heroes` and `bloats` (rules of `hidden_heroes` and
    `gradient_bloats`, from discovery gradients and ablations), `shared` (S_P), `top` (K of largest mean |attribution|).
    Unit: nats or accuracy points; unbounded. Invalid: a set of one, an empty set, all components, below the accuracy gate.
    Source: The Gradient-Causal Gap. Interval, all drops paired by example, over groups: loss skewness-corrected t
    (approximate: measured coverage of 95% intervals 88–94% for log-normal losses of 16 to 256 examples); accuracy betting (exact, every
    group counts the same); independence bias-corrected bootstrap, joined with a betting interval of the difference to first order, against
    events too rare to be resampled (approximate).
    """

    against: Annotated[Literal["sum", "mean", "independence"], Field(description="what the joint drop is compared with")] = "sum"
    effect: Annotated[Literal["loss", "accuracy"], Field(description="what ablation is measured by")] = "loss"
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples of against: independence")] = 2000

    @model_validator(mode="after")
    def _independence_of_accuracy(self) -> Superadditivity:
        if self.against == "independence" and self.effect != "accuracy":
            raise ValueError(
                "against: independence multiplies shares of correct answers; use effect: accuracy, or against: sum for the loss"
            )
        return self


def estimate(claim: Claim) -> Steps[Estimate]:
    """Choose the set; ablate it whole and member by member on the same examples."""
    p: Superadditivity = claim.parameters
    chosen = yield from choose(claim)
    if len(chosen.units) < 2:
        raise Invalid(
            f"the set is {chosen.units[0]} alone ({chosen.how}): its joint drop is its single drop; at least 2 components are needed",
            {"set": list(chosen.units)},
        )
    outcome = yield from ask(ablation(claim, [chosen.units, *((u,) for u in chosen.units)], "remove"))
    groups = chosen.found.groups(chosen.found.evaluation)
    drops = {"loss": chosen.base.log_prob.astype(float) - outcome.log_prob, "accuracy": chosen.base.correct.astype(float) - outcome.correct}
    value, interval, kind = _compare(p, drops[p.effect], chosen.base, outcome, groups)
    details = {
        "against": p.against,
        "effect": p.effect,
        **_drops(drops, p.effect, groups, chosen),
        "accuracy_without_set": float(outcome.correct[0].mean()),
        "saturated": bool(outcome.correct[0].mean() <= max(LOST, chosen.found.encoded.chance)),
        **_ratio(drops[p.effect], p, groups),
        **chosen.as_dict(p),
    }
    details["notes"] = _told(details, p, value)
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
    # drops of an example are 0 or 1 where it was right and 0 or −1 where it was wrong
    most = float(k if p.against == "sum" else 1)
    value, interval, _ = grouped_mean_interval(difference, groups, p.confidence, -most, most)
    return value, interval, "betting interval over groups"


def _independence(p: Superadditivity, base: Outcome, outcome: Outcome, groups: list[str]) -> tuple[float, tuple[float, float], str]:
    """a·Π(a_i/a) − a_S: accuracy that independent drops would leave, minus what is left."""
    import numpy as np

    from ...stats import bootstrap
    from ...stats.groups import group_sums

    if not base.correct.any():
        raise Invalid("the intact accuracy is 0, so there are no correct answers to keep a share of", {"accuracy": 0.0})
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
    """How far the excess may lie below and above its value by a betting interval of what each example adds to it, to first order.

    A bootstrap cannot resample what no example showed, such as two removals that break the same answer, when that is rare; a betting
    interval reckons with it. base [n], correct [1 + k, n], the joint removal first.
    """
    import numpy as np

    from ...stats.betting import grouped_mean_interval

    accuracy, singles = float(base.mean()), correct[1:].mean(1)
    shares = singles / accuracy
    slopes = np.array([np.delete(shares, i).prod() for i in range(len(shares))])
    own = (1 - len(shares)) * float(shares.prod())
    adds = own * base + slopes @ correct[1:] - correct[0]
    value, (low, high), _ = grouped_mean_interval(adds, groups, confidence, min(own, 0.0) - 1, max(own, 0.0) + float(slopes.sum()))
    return value - low, high - value


def _mean(values: Table, groups: list[str], confidence: float) -> tuple[float, tuple[float, float]]:
    from ...stats.groups import group_sums
    from ...stats.hall_interval import mean_bounds

    sums, sizes = group_sums(values[:, None], groups)
    mean, low, high = (float(x[0]) for x in mean_bounds(sums, sizes, confidence))
    return mean, (low, high)


def _drops(drops: dict[str, Table], effect: str, groups: list[str], chosen: Chosen) -> dict[str, Any]:
    """Joint and single drops in both effects; averaged as the value is: over examples for loss, over groups for accuracy."""
    from ...stats.groups import group_means

    averaged = {"loss": drops["loss"].mean(1), "accuracy": group_means(drops["accuracy"].T, groups)[0].mean(0)}
    joint = {name: float(row[0]) for name, row in averaged.items()}
    single = {u: {name: float(row[i]) for name, row in averaged.items()} for i, u in enumerate(chosen.units, 1)}
    total = sum(one["accuracy"] for one in single.values())
    return {
        "joint": joint,
        "single": single,
        "sum_of_singles": {name: float(row[1:].sum()) for name, row in averaged.items()},
        "sum_exceeds_intact": bool(effect == "accuracy" and total > float(chosen.base.correct.mean())),
    }


def _ratio(drops: Table, p: Superadditivity, groups: list[str]) -> dict[str, Any]:
    """The published ratio of the joint to the mean single drop, and whether its denominator can be told from 0."""
    single, (low, high) = _mean(drops[1:].mean(0), groups, p.confidence)
    clear = low > 0
    return {
        "joint_over_mean_single": float(drops[0].mean() / single) if single != 0 else None,
        "mean_single": [single, low, high],
        "ratio_warning": None
        if clear
        else f"the mean single drop, {single:.3g} [{low:.3g}, {high:.3g}], is not clearly above 0: the ratio could be anything",
    }


def _told(d: dict[str, Any], p: Superadditivity, value: float) -> list[str]:
    unit, joint, total = UNITS[p.effect], d["joint"][p.effect], d["sum_of_singles"][p.effect]
    names = listed(d["set"]["units"])
    lines = [
        f"removed together ({p.ablation} ablation), {names} cost {joint:.3g} {unit}; one at a time {total:.3g} in sum, "
        f"{total / d['set']['size']:.3g} in the mean, on the same {d['evaluation']} examples",
        f"set: {d['set']['chosen']}",
        f"{value:+.3g} {unit} against {WAYS[p.against]}; accuracy intact {d['accuracy']:.3f}, "
        f"without the set {d['accuracy_without_set']:.3f}",
    ]
    if d["sum_exceeds_intact"] and p.against == "sum":
        lines.append("the single drops add up to more than the intact accuracy, below which nothing can fall: use against: independence")
    if d["saturated"] and value < 0:
        lines.append("without the set nothing is left of the behaviour, so a joint drop cannot be larger: the negative value is saturation")
    if d["ratio_warning"]:
        lines.append(f"joint drop over mean single drop: {d['ratio_warning']}")
    return lines


def limits(p: Superadditivity) -> tuple[float | None, float | None]:
    """The range of the value; for accuracy against a sum, it takes the number of components to know it."""
    if p.effect == "loss" or (p.against == "sum" and not isinstance(p.set, NamedUnits)):
        return None, None
    most = float(len(p.set.units)) if p.against == "sum" and isinstance(p.set, NamedUnits) else 1.0
    return -most, most


SUPERADDITIVITY = Property(
    "superadditivity", Superadditivity, estimate, None, None,
    "removing a set costs more than its members one by one: they back each other up", "nats or accuracy points", limits=limits,
)  # fmt: skip
