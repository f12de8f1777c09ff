"""Steering: how do the answers change when a cluster of neurons is multiplied?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.units import per_layer
from ...core.verdict import Estimate
from ...measurement.requests import ALL, Encode, Steps, ask
from ..protocol import Claim, Property
from ..steps.examples import describe_model, measure_intact, part, split_examples
from .neuron_clusters import control_clusters, select_cluster
from .steered_probabilities import SteeredProbabilities, common_prompts, measure_probabilities
from .steering_parameters import Steering

if TYPE_CHECKING:
    from .steered_probabilities import Table


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the cluster on discovery examples; multiply it on evaluation examples and watch the probabilities."""
    p: Steering = claim.parameters
    split = yield from split_examples(claim, p.task)
    yield from measure_intact(claim, p.task, split)
    universe = yield from describe_model(claim)
    cluster = yield from select_cluster(claim, universe)
    controls, no_controls = control_clusters(cluster, universe, p)
    sets_at = {m: [cluster, *(controls if m == p.factor else controls[:1])] for m in sorted({*p.factors, p.factor, 1.0})}
    steered = yield from measure_probabilities(claim, p.task, sets_at, part(p, "evaluation"), p.watch == "foils" and p.watch_task is None)
    rows = list(range(len(split.evaluation)))
    if p.watch_task is None:
        watched = steered.watched(p.watch)
    else:
        rows, other_rows = common_prompts(split, (yield from ask(Encode(claim.model, claim.tasks[p.watch_task]))), p)
        other = yield from measure_probabilities(claim, p.watch_task, sets_at, ALL, p.watch == "foils")
        watched = {m: table[:, other_rows] for m, table in other.watched(p.watch).items()}
    groups = split.groups(split.evaluation[rows])
    value, interval, parts = _change(watched, groups, p)
    details = {
        "cluster": {"size": len(cluster), "per_layer": per_layer(cluster, universe.layers), "units": list(cluster)},
        "universe": universe.size("neuron"),
        "chosen_by": "name" if p.units is not None else f"{p.attribution} on {len(split.discovery)} discovery examples",
        "factor": p.factor,
        "watched": _watched(p),
        "against": p.against,
        "curve": _curve(steered, watched, split.groups(split.evaluation), groups),
        "control": {"draws": len(controls), "seed": p.control_seed, **parts} if controls else {"draws": 0, "why": no_controls},
        "examples_watched": len(rows),
        **split.as_dict(),
    }
    details["notes"] = _notes(p, details, value)
    kind = "betting interval over groups" + (" and t interval over draws, in quadrature" if p.against == "control" else "")
    return Estimate(value, interval, len(rows), p.confidence, kind, "steering", details)


def _change(watched: dict[float, Table], groups: list[str], p: Steering) -> tuple[float, tuple[float, float], dict[str, Any]]:
    """The estimate with its interval, and the changes under the controls."""
    from ...stats.betting import grouped_mean_interval
    from ...stats.controls import monte_carlo_p
    from ...stats.crossed_interval import crossed_interval

    steered, before = watched[p.factor], watched[1.0][0]
    value, interval, _ = grouped_mean_interval(steered[0] - before, groups, p.confidence, -1.0, 1.0)
    parts: dict[str, Any] = {"change_of_cluster": value, "interval_of_cluster": list(interval)}
    if len(steered) > 1:
        changes = [_mean(row - before, groups) for row in steered[1:]]
        spread = {"changes": changes, "mean_change": sum(changes) / len(changes), "rank_p": monte_carlo_p(value, changes, "two-sided")}
        parts = {**parts, **spread}
    if p.against == "control":
        value, interval, crossed = crossed_interval(-steered[1:], -steered[0], groups, p.confidence)
        parts["interval_parts"] = crossed
    return value, interval, parts


def _mean(values: Table, groups: list[str]) -> float:
    """The mean over groups, every group counting the same."""
    from ...stats.groups import group_means

    return float(group_means(values, groups)[0].mean())


def _curve(
    steered: SteeredProbabilities, watched: dict[float, Table], all_groups: list[str], groups: list[str]
) -> list[dict[str, float | None]]:
    """One entry for each factor: means of the cluster, and of one random cluster (at factor 1, of the intact model)."""
    curve: list[dict[str, float | None]] = []
    for m in steered.answer:
        entry: dict[str, float | None] = {
            "factor": m,
            "accuracy": _mean(steered.correct[m][0], all_groups),
            "answer": _mean(steered.answer[m][0], all_groups),
            "foils": None if steered.foils is None else _mean(steered.foils[m][0], all_groups),
            "watched": _mean(watched[m][0], groups),
        }
        control = 0 if m == 1 else 1
        entry["watched_control"] = _mean(watched[m][control], groups) if control < len(watched[m]) else None
        curve.append(entry)
    return curve


def _watched(p: Steering) -> str:
    return f"probability of the {p.watch} of task {p.watch_task or p.task!r}"


def _notes(p: Steering, details: dict[str, Any], value: float) -> list[str]:
    at = {entry["factor"]: entry for entry in details["curve"]}
    before, after, control = at[1.0], at[p.factor], details["control"]
    lines = [
        f"{details['cluster']['size']} of {details['universe']} neurons, chosen by {details['chosen_by']}, multiplied by {p.factor:g}",
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
        lines.append(f"the estimate is the difference, {value:+.3f}")
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
