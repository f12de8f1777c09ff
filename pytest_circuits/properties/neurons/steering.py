"""Steering: what do the answers do when a cluster of neurons is multiplied?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.shares import Size
from ...core.units import Universe, layer_of, per_layer, split_position
from ...core.verdict import Estimate
from ...errors import Invalid, TaskError
from ...measurement.requests import ALL, Ablate, Attribute, Encode, Part, Steps, ask, ask_all, freeze
from ..parameters import CircuitSize, MethodName, Options, Parameters, TaskName, check_method
from ..protocol import Claim, Property
from ..steps.examples import Examples, describe, examples, intact, part
from ..steps.finite import check_finite

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Encoded, Outcome

    Table = np.ndarray[Any, np.dtype[np.float64]]

Factor = Annotated[float, Field(allow_inf_nan=False)]


class Steering(Parameters):
    """steering = mean P(watched | cluster × factor) − mean P(watched | intact), on evaluation examples; in [−1, 1].

    The inputs of the down projection that belong to a cluster of neurons are multiplied by `factor` at all positions. The cluster:
    the `neurons` of largest |mean score| over the discovery examples, or `units` by name. Watched is the probability of the `answer` or
    of the `foils` (that it begins like one of them), of the task itself or of another task with the same prompts, such as capitals with
    target: state. `against: control` subtracts the same for random clusters with as many neurons in each layer, outside the cluster, so
    that what any disturbance of that size does is taken off. The report has the curve over all `factors`. Every group counts the same.
    Invalid: below the accuracy gate, a cluster of all neurons, fewer neurons with a score than asked for, other tasks without
    common prompts, controls that cannot be drawn. Source: Language model circuits are sparse in the neuron basis.
    Interval: betting, over groups; with controls, betting over groups and t over draws, in quadrature.
    """

    task: TaskName
    factor: Annotated[Factor, Field(description="what the cluster is multiplied by; 1 would be the intact model")]
    neurons: Annotated[CircuitSize | None, Field(description="cluster: the strongest neurons, a count or a share of all")] = None
    units: Annotated[list[str] | None, Field(min_length=1, description="cluster: these neurons, e.g. [L3N17, L4N200]")] = None
    attribution: Annotated[MethodName, Field(description="attribution method that ranks neurons")] = "relp"
    attribution_options: Annotated[Options, Field(description="options of the attribution method")] = Field(default_factory=dict)
    watch: Annotated[Literal["answer", "foils"], Field(description="whose probability is watched")] = "answer"
    watch_task: Annotated[
        str | None, Field(description="watch the answer or foils of this task on the same prompts", json_schema_extra={"circuits": "task"})
    ] = None
    against: Annotated[Literal["intact", "control"], Field(description="compare with the intact model, or with random clusters")] = "intact"
    factors: Annotated[list[Factor], Field(min_length=1, description="factors of the curve in the report")] = Field(
        default_factory=lambda: [-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0]
    )
    draws: Annotated[int, Field(ge=2, description="random control clusters")] = 20
    control_seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _fits(self) -> Steering:
        check_method(self.attribution, self.attribution_options, "neuron", self.metric)
        if (self.neurons is None) == (self.units is None):
            raise ValueError("give the cluster as one of neurons (how many of the strongest) and units (a list of names)")
        if self.units is not None and len(set(self.units)) < len(self.units):
            raise ValueError("units: a neuron is named twice")
        if self.factor == 1:
            raise ValueError("factor: 1 is the intact model, with which the change is compared; choose another one")
        if self.watch_task == self.task:
            raise ValueError("watch_task is the task itself; leave it out")
        return self


@dataclass(frozen=True)
class _Runs:
    """Probabilities by factor, [sets, n] each; the first set is the cluster, the others are controls. Factor 1 has one set, intact."""

    correct: dict[float, Table]
    answer: dict[float, Table]
    foils: dict[float, Table] | None

    def watched(self, what: str) -> dict[float, Table]:
        """Those of the answer or of the foils."""
        found = self.answer if what == "answer" else self.foils
        assert found is not None
        return found


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the cluster on discovery examples, multiply it on evaluation examples, and watch."""
    p: Steering = claim.parameters
    found = yield from examples(claim, p.task)
    yield from intact(claim, p.task, found)
    universe = yield from describe(claim)
    cluster = yield from _cluster(claim, universe)
    controls, no_controls = _controls(cluster, universe, p)
    plan = {m: [cluster, *(controls if m == p.factor else controls[:1])] for m in sorted({*p.factors, p.factor, 1.0})}
    own = yield from _measure(claim, p.task, plan, part(p, "evaluation"), p.watch == "foils" and p.watch_task is None)
    rows = list(range(len(found.evaluation)))
    if p.watch_task is None:
        watched = own.watched(p.watch)
    else:
        rows, there = _same_prompts(found, (yield from ask(Encode(claim.model, claim.tasks[p.watch_task]))), p)
        other = yield from _measure(claim, p.watch_task, plan, ALL, p.watch == "foils")
        watched = {m: table[:, there] for m, table in other.watched(p.watch).items()}
    groups = found.groups(found.evaluation[rows])
    value, interval, parts = _change(watched, groups, p)
    everyone = found.groups(found.evaluation)
    details = {
        "cluster": {"size": len(cluster), "per_layer": per_layer(cluster, universe.layers), "units": list(cluster)},
        "universe": universe.size("neuron"),
        "chosen_by": "name" if p.units is not None else f"{p.attribution} on {len(found.discovery)} discovery examples",
        "factor": p.factor,
        "watched": _watched(p),
        "against": p.against,
        "curve": _curve(own, watched, everyone, groups),
        "control": {"draws": len(controls), "seed": p.control_seed, **parts} if controls else {"draws": 0, "why": no_controls},
        "examples_watched": len(rows),
        **found.as_dict(),
    }
    details["notes"] = _told(p, details, value)
    kind = "betting interval over groups" + (" and t interval over draws, in quadrature" if p.against == "control" else "")
    return Estimate(value, interval, len(rows), p.confidence, kind, "steering", details)


def _cluster(claim: Claim, universe: Universe) -> Steps[tuple[str, ...]]:
    """The names of the cluster's neurons. `Invalid` for none, for all, and for neurons without a score."""
    import numpy as np

    p: Steering = claim.parameters
    total = universe.size("neuron")
    if not total:
        raise Invalid("the model's MLPs are mixtures of experts, which have no neurons that could be multiplied", {"universe": 0})
    if p.units is not None:
        universe.index([split_position(name)[0] for name in p.units], "neuron")
        if len(p.units) >= total:
            raise Invalid(f"the cluster is all {total} neurons of the model: that is no cluster", {"universe": total})
        return tuple(p.units)
    assert p.neurons is not None
    attribution = yield from ask(
        Attribute(
            claim.model, claim.tasks[p.task], p.attribution, "neuron", p.metric, part(p, "discovery"), "mean", freeze(p.attribution_options)
        )
    )
    strength = np.abs(attribution.scores[0])
    check_finite(strength, f"{p.attribution} scores of neurons on task {p.task!r}")
    size = Size.parse(p.neurons)
    k = int(size.count) if size.count is not None else size.of(len(strength))
    if k >= len(strength):
        raise Invalid(
            f"{p.neurons} neurons are asked for, and the model has {len(strength)}: that is no cluster", {"universe": len(strength)}
        )
    scored = int((strength > 0).sum())
    if scored < k:
        raise Invalid(
            f"only {scored} of {len(strength)} neurons have a {p.attribution} score other than zero, fewer than the {k} asked for",
            {"scored": scored, "asked": k},
        )
    return tuple(attribution.units[int(i)] for i in np.argsort(-strength, kind="stable")[:k])


def _controls(cluster: Sequence[str], universe: Universe, p: Steering) -> tuple[list[tuple[str, ...]], str | None]:
    """Random clusters outside of the cluster, with as many neurons in each layer; none, and why, where a layer has too few others."""
    import numpy as np

    taken: dict[int, dict[str, list[str]]] = {}  # layer → neuron → its positions, "" for all of them
    for name in cluster:
        unit, _ = split_position(name)
        taken.setdefault(layer_of(unit), {}).setdefault(unit, []).append(name.removeprefix(unit))
    others = {layer: [u for i in range(universe.neurons) if (u := f"L{layer}N{i}") not in members] for layer, members in taken.items()}
    short = next((layer for layer in taken if len(others[layer]) < len(taken[layer])), None)
    if short is not None:
        why = (
            f"layer {short} has {universe.neurons} neurons, {len(taken[short])} of them in the cluster, so that no control of as many "
            "others can be drawn there"
        )
        if p.against == "control":
            raise Invalid(f"{why}; choose fewer neurons, or against: intact", {"layer": short, "cluster": len(taken[short])})
        return [], why
    found = []
    for draw in range(p.draws):
        rng = np.random.default_rng([p.control_seed, draw])
        picked: list[str] = []
        for layer, members in taken.items():
            for i, tails in zip(rng.permutation(len(others[layer])), members.values(), strict=False):
                picked += [others[layer][int(i)] + tail for tail in tails]
        found.append(tuple(picked))
    return found, None


def _measure(claim: Claim, task: str, plan: dict[float, Any], which: Part, foils: bool) -> Steps[_Runs]:
    """Every set at every factor. The probability of the foils comes along where the task has foils; `Invalid` where they are watched."""
    import numpy as np

    def requests(metric: str) -> list[Ablate]:
        return [
            Ablate(claim.model, claim.tasks[task], ((),), metric=metric, part=which)
            if m == 1
            else Ablate(
                claim.model, claim.tasks[task], tuple(sets), "remove", "scale", "neuron", metric, which, options=freeze({"factor": m})
            )
            for m, sets in plan.items()
        ]

    with_foils = True
    try:
        outcomes: list[Outcome] = yield from ask_all(requests("foil_prob"))
    except TaskError as problem:
        if foils:
            raise Invalid(f"watch: foils needs a foil for each example of task {task!r}: {problem}") from problem
        with_foils, outcomes = False, (yield from ask_all(requests("prob")))
    by_factor = dict(zip(plan, outcomes, strict=True))
    return _Runs(
        {m: o.correct.astype(np.float64) for m, o in by_factor.items()},
        {m: np.exp(o.log_prob.astype(np.float64)) for m, o in by_factor.items()},
        {m: o.metric.astype(np.float64) for m, o in by_factor.items()} if with_foils else None,
    )


def _same_prompts(found: Examples, other: Encoded, p: Steering) -> tuple[list[int], list[int]]:
    """Places among the evaluation examples whose clean prompt the other task has too, and its rows there. `Invalid` for too few."""
    from ...stats.split import MIN_GROUPS

    where: dict[str, int] = {}
    for row, prompt in enumerate(other.prompts):
        where.setdefault(prompt, row)
    rows = [i for i, row in enumerate(found.evaluation) if found.encoded.prompts[int(row)] in where]
    groups = len(set(found.groups(found.evaluation[rows]))) if rows else 0
    if groups < MIN_GROUPS:
        raise Invalid(
            f"{len(rows)} of {len(found.evaluation)} evaluation examples of task {p.task!r}, in {groups} groups, have a clean prompt that "
            f"task {p.watch_task!r} has too; at least {MIN_GROUPS} groups are needed: give both the same seed, n and templates",
            {"common": len(rows), "groups": groups, "groups_needed": MIN_GROUPS},
        )
    return rows, [where[found.encoded.prompts[int(found.evaluation[i])]] for i in rows]


def _change(watched: dict[float, Table], groups: list[str], p: Steering) -> tuple[float, tuple[float, float], dict[str, Any]]:
    """The estimate with its interval, and how the controls' changes lie."""
    from ...stats.betting import grouped_mean_interval
    from ...stats.controls import monte_carlo_p
    from ...stats.crossed import crossed_interval

    here, before = watched[p.factor], watched[1.0][0]
    value, interval, _ = grouped_mean_interval(here[0] - before, groups, p.confidence, -1.0, 1.0)
    parts: dict[str, Any] = {"change_of_cluster": value, "interval_of_cluster": list(interval)}
    if len(here) > 1:
        changes = [_mean(row - before, groups) for row in here[1:]]
        spread = {"changes": changes, "mean_change": sum(changes) / len(changes), "rank_p": monte_carlo_p(value, changes, "two-sided")}
        parts = {**parts, **spread}
    if p.against == "control":
        value, interval, crossed = crossed_interval(-here[1:], -here[0], groups, p.confidence)
        parts["interval_parts"] = crossed
    return value, interval, parts


def _mean(values: Table, groups: list[str]) -> float:
    """The mean over groups, every group counting the same."""
    from ...stats.groups import group_means

    return float(group_means(values, groups)[0].mean())


def _curve(own: _Runs, watched: dict[float, Table], everyone: list[str], groups: list[str]) -> list[dict[str, float | None]]:
    """One entry a factor: the cluster's means, and those of one random cluster (the intact model's at factor 1)."""
    found: list[dict[str, float | None]] = []
    for m in own.answer:
        entry: dict[str, float | None] = {
            "factor": m,
            "accuracy": _mean(own.correct[m][0], everyone),
            "answer": _mean(own.answer[m][0], everyone),
            "foils": None if own.foils is None else _mean(own.foils[m][0], everyone),
            "watched": _mean(watched[m][0], groups),
        }
        controlled = 0 if m == 1 else 1
        entry["watched_control"] = _mean(watched[m][controlled], groups) if controlled < len(watched[m]) else None
        found.append(entry)
    return found


def _watched(p: Steering) -> str:
    return f"probability of the {p.watch} of task {p.watch_task or p.task!r}"


def _told(p: Steering, details: dict[str, Any], value: float) -> list[str]:
    at = {entry["factor"]: entry for entry in details["curve"]}
    before, after, control = at[1.0], at[p.factor], details["control"]
    lines = [
        f"{details['cluster']['size']} of {details['universe']} neurons, chosen by {details['chosen_by']}, were multiplied by {p.factor:g}",
        f"the {details['watched']} went from {before['watched']:.3f} to {after['watched']:.3f}, "
        f"the accuracy on task {p.task!r} from {before['accuracy']:.3f} to {after['accuracy']:.3f}",
    ]
    if control["draws"]:
        lines.append(
            f"random clusters of the same size in each layer changed it by {control['mean_change']:+.3f} on average over "
            f"{control['draws']} draws (rank p = {control['rank_p']:.3f})"
        )
    else:
        lines.append(f"no control: {control['why']}")
    if p.against == "control":
        lines.append(f"the difference, {value:+.3f}, is what is judged")
    return lines


STEERING = Property(
    "steering",
    Steering,
    estimate,
    -1.0,
    1.0,
    "multiplying a cluster of neurons moves the probability of an answer",
    "probability",
)
