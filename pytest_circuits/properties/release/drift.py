"""Drift: how far a model has moved from a released one, in the number of another claim or in its circuit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Describe, Encode, Steps, ask, ask_all
from ..nested import PropertyOf
from ..parameters import AnyParameters, CircuitParameters, in_sample, task_names
from ..payload import SHARED, Json, bits, bytes_by_column, group_digest, moved_units, named_sets, only_crossed, rounded, share_changes
from ..protocol import BaselineReference, Claim, Property
from ..steps.examples import competent_task, describe_model
from ..steps.shared_sets import discover_circuits
from . import circuit_overlap
from .circuit_overlap import BY_NAME
from .release_entry import Release, check_data, from_baseline

if TYPE_CHECKING:
    from ...core.sources import ModelSource

Margin = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]


class Drift(AnyParameters):
    """The value of another claim now minus its value at the release, in that claim's unit; or what the circuit lost.

    `of` names a claim of the same spec (one drift test for each of its tests), or holds a property with its parameters. The release is
    what the baseline file of the spec holds of this very claim (`--circuits-update-baseline=new` writes it on the release); where that has
    no entry, what it holds of the claim in `of` about the same model, if that is enough (per-example values on the same examples, or an
    interval of the confidence below); or with `against: NAME` another entry of `models`, measured as well.

    Bounds may be written inside: `within: m` claims equivalence (a bound within [−m, m]), `no_worse_by: m` that it did not get worse by m
    or more: at_least −m where the claim in `of` has at_least, at_most m where it has at_most. Range: the width of the range of `of`,
    both ways.

    Where the property is a mean of per-example values (accuracy, reuse, and absolute necessity and sufficiency) the difference is taken
    on each of the same examples. Interval: betting, over groups of examples, exact; the draws of random controls are added in
    quadrature, approximate. An interval inside [−m, m] is two one-sided tests, each at half the error. Of any other property:
    (l − u', u − l') from an interval of each side at confidence (1 + confidence)/2, which holds however they depend on
    each other, and is wide.

    The sets that each side found are taken as given; where they differ only by components whose share of the circuits changed within noise,
    so that other discovery examples could have given both sides one set, the interval is extended to 0.

    `overlap: jaccard` compares the shared sets S_P of the claim's task instead: mean Jaccard of S_P of one model on half of the discovery
    groups with S_P of the other model on the other half, minus the mean Jaccard of the halves' sets of one and the same model (the
    noise floor), over `repeats` splits. 0: no more different than noise; negative: the circuit moved. Range [−1, 1]. `match: name` takes
    components by name, which means something only for a model that was trained on from the release. `match: function` first finds, in
    each layer, which head is which: the one-to-one assignment with the largest sum of Lin's concordance of the heads' shares of
    Σ|score| over the evaluation prompts. Interval: bias-corrected bootstrap over discovery groups; approximate; the matching is kept fixed.

    `max_n` grows the examples of both models, and so needs `against`: a baseline holds the examples that the release was measured on.

    Invalid: no baseline, other prompts or token ids than the baseline's, other parameters of the claim, other numbers of layers or heads;
    whatever makes the claim in `of` invalid. Sources: Schuirmann 1987 (two one-sided tests); Lin 1989.
    """

    of: Annotated[
        PropertyOf, Field(json_schema_extra={"claims": True}, description="a claim of this spec by name, or a property with its parameters")
    ]
    against: Annotated[str | None, Field(description="another entry of models to compare with, in place of the baseline")] = None
    within: Annotated[Margin, Field(description="margin of equivalence: the bound within [-m, m], written here")] = None
    no_worse_by: Annotated[
        Margin, Field(description="margin on the worse side: at_least -m, or at_most m if the claim in of has at_most")
    ] = None
    overlap: Annotated[Literal["jaccard"] | None, Field(description="compare the shared sets instead of the values")] = None
    match: Annotated[
        Literal["name", "function"], Field(description="for overlap: components by name, or heads by their attribution profiles")
    ] = "name"
    max_n: Annotated[
        int | None,
        Field(
            ge=1,
            description="with against, for values: compare again with twice as many prompts of each built-in task, up to this many, "
            "until the verdict is settled",
        ),
    ] = None
    repeats: Annotated[int, Field(ge=2, le=100, description="for overlap: random splits into halves")] = 10
    resamples: Annotated[int, Field(ge=200, description="for overlap: bootstrap resamples")] = 2000

    @model_validator(mode="after")
    def _fits(self) -> Drift:
        if self.of.name == "drift":
            raise ValueError("drift of drift is not defined; name the claim that it is about")
        if self.within is not None and self.no_worse_by is not None:
            raise ValueError("within and no_worse_by are two bounds: give one")
        if self.match == "function" and self.overlap is None:
            raise ValueError("match: function is about circuits, and values need no matching: add overlap: jaccard, or leave it out")
        inner = self.of.parameters
        if self.overlap and not (isinstance(inner, CircuitParameters) and hasattr(inner, "task") and hasattr(inner, "p")):
            raise ValueError(f"overlap compares shared sets, and {self.of.name!r} has none of one task; use a claim of reuse or necessity")
        return self


@dataclass(frozen=True)
class Side:
    """One of the two models: what is kept of it, and the group of each discovery example (empty where no circuits are compared)."""

    kept: Json
    groups: tuple[str, ...] = ()


def estimate(claim: Claim) -> Steps[Estimate]:
    """Measure the model, take the release from the baseline or measure it too, and compare."""
    p: Drift = claim.parameters
    now = yield from _measured(p, claim, claim.model)
    against = claim.against
    if against is None:
        raise Invalid("there is nothing to compare with: drift is claimed in a spec file, which has a baseline, or with against: NAME")
    if isinstance(against, BaselineReference):
        description = yield from ask(Describe(claim.model))
        release = from_baseline(p.of, against, now.kept, description.fingerprint)
    else:
        release = Release((yield from _measured(p, claim, against)).kept, against.name)
        check_data(release.kept, now.kept)
    return (circuit_overlap.compared if p.overlap else _difference)(p, release, now)


def _measured(p: Drift, claim: Claim, model: ModelSource) -> Steps[Side]:
    """What a baseline keeps of one model: the inner estimate at half the error, or circuits and profiles; and which data it saw."""
    tasks = task_names(p.of.parameters)
    encoded = yield from ask_all([Encode(model, claim.tasks[name]) for name in tasks])
    kept: Json = {"data": {name: one.digest for name, one in zip(tasks, encoded, strict=True)}}
    inner = claim.about(model, p.of.name, p.of.parameters.model_copy(update={"confidence": (1 + p.confidence) / 2}))
    if not p.overlap:
        estimate: Estimate = yield from p.of.property.estimate(inner)
        about = {"sets": named_sets(estimate.details), "unsettled": estimate.unsettled, "confidence": rounded(estimate.confidence)}
        numbers = {"estimate": rounded(estimate.value), "interval": [rounded(end) for end in estimate.interval], "n": estimate.n}
        return Side({**kept, "of": {**numbers, **about, **estimate.kept}})
    task = yield from competent_task(inner, inner.parameters.task)
    universe = yield from describe_model(inner)
    found = yield from discover_circuits(inner, task)
    circuits: Json = {
        "shape": [universe.layers, universe.heads],
        "members": bits(found.discovery.members),
        "discovery": group_digest(found.discovery_groups),
        "shared": list(found.discovery.shared(inner.parameters.p)),
    }
    if p.match == "function":
        circuits["profiles"] = bytes_by_column((yield from circuit_overlap.profiles(inner, found)))
    return Side({**kept, **circuits}, tuple(found.discovery_groups))


def _difference(p: Drift, release: Release, side: Side) -> Estimate:
    """Now minus then, on the same examples where that is possible."""
    from ...stats.paired import paired_difference, simultaneous_difference
    from ..payload import group_values, pairs_with

    then, now = release.kept["of"], side.kept["of"]
    value = now["estimate"] - then["estimate"]
    paired = pairs_with(then, now)
    groups: int | None = None
    if paired:
        values = group_values(now), group_values(then)
        groups = len(values[0])
        draws = [(float(one["draws"][0]), int(one["draws"][1])) for one in (then, now) if "draws" in one]
        value, interval = paired_difference(*values, p.confidence, float(now["range"][0]), float(now["range"][1]), draws)
        kind = "betting interval over groups of differences on the same examples" + (", and draws in quadrature" if draws else "")
    else:
        if then["confidence"] < rounded((1 + p.confidence) / 2):
            raise Invalid(
                f"the baseline's interval has confidence {then['confidence']:g}, and {(1 + p.confidence) / 2:g} is needed to compare at "
                f"confidence {p.confidence:g}: measure the release anew",
                {"confidence_then": then["confidence"]},
            )
        low, high = simultaneous_difference((now["interval"][0], now["interval"][1]), (then["interval"][0], then["interval"][1]))
        interval, kind = (min(low, value), max(high, value)), f"from an interval of each side at {now['confidence']:g}; holds together"
    sets = _sets(then, now, p.confidence)
    crossed = only_crossed(sets)
    if crossed:
        interval = (min(interval[0], 0.0), max(interval[1], 0.0))
    details = {
        "of": p.of.name, "release": release.name, "compared_with_itself": bool(release.itself), "paired": paired, "groups_compared": groups,
        "then": _number(then), "now": _number(now), "sets": sets,
    }  # fmt: skip
    low, high = interval
    how = f"on the same examples, {groups} groups" if groups else "from an interval of each side"
    told = [f"{p.of.name}: {_shown(then)} at the release ({release.name}), {_shown(now)} now"]
    told += [f"difference {value:+.3f} [{low:+.3f}, {high:+.3f}], {how}", *([release.itself] if release.itself else [])]
    told += [f"{name.replace('_', ' ')}: {circuit_overlap.moved_text(one)}" for name, one in sets.items() if one["entered"] or one["left"]]
    if crossed:
        told.append("they only crossed the threshold, within noise: the interval takes both sets as given, and is extended to 0 for that")
    told += [BY_NAME] if any(_no_head_stayed(now["sets"].get(name, ()), one) for name, one in sets.items()) else []
    unsettled = next((f"{when}: {one['unsettled']}" for when, one in (("now", now), ("then", then)) if one["unsettled"]), None)
    kept = dict(side.kept)
    return Estimate(value, interval, now["n"], p.confidence, kind, "drift", {**details, "notes": told}, unsettled, kept)


def _sets(then: Mapping[str, Any], now: Mapping[str, Any], confidence: float) -> dict[str, Json]:
    """What entered or left each set, and of the shared set whether by more than noise."""
    found: dict[str, Json] = {}
    for name, units in now["sets"].items():
        found[name] = moved_units(then["sets"].get(name, []), units)
        if name in SHARED and "frequency" in then and "frequency" in now:
            every = [*found[name]["entered"], *found[name]["left"]]
            found[name] |= share_changes(every, then["frequency"], now["frequency"], confidence)
    return found


def _no_head_stayed(now: Sequence[str], moved: Mapping[str, Any]) -> bool:
    """Whether a set had heads, has heads, and none of them is the same by name."""
    before, entered = ([one for one in moved[key] if not is_mlp(one)] for key in ("left", "entered"))
    return bool(before) and bool(entered) and all(is_mlp(one) or one in entered for one in now)


def _number(side: Mapping[str, Any]) -> Json:
    return {key: side[key] for key in ("estimate", "interval", "confidence", "n")}


def _shown(side: Mapping[str, Any]) -> str:
    return f"{side['estimate']:.3f} [{side['interval'][0]:.3f}, {side['interval'][1]:.3f}] (n = {side['n']}, {side['confidence']:.4g})"


def _limits(p: Drift) -> tuple[float | None, float | None]:
    if p.overlap:
        return -1.0, 1.0
    low, high = p.of.property.range(p.of.parameters)
    width = None if low is None or high is None else high - low
    return (None, None) if width is None else (-width, width)


def _growth(p: Drift) -> str | None:
    """Why further evaluation examples are of no use."""
    if p.overlap:
        return "overlap compares circuits of discovery examples, and max_n adds evaluation examples only: raise the task's own n"
    if p.against is None:
        return "a baseline holds the examples that the release was measured on, and max_n adds others: use against: NAME, or raise n"
    if not p.of.property.grows:
        return f"{p.of.name} is estimated on discovery examples, and max_n adds evaluation examples only: raise the tasks' own n"
    return in_sample(p.of.parameters)


DRIFT = Property(
    "drift", Drift, estimate, None, None, "how far a model has moved from a released one: the value of another claim, or its circuit",
    "units of the claim in `of`, or Jaccard", limits=_limits, growth=_growth,
)  # fmt: skip
