"""A task's shared set compared with random sets of the same capacity: what necessity and sufficiency have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.units import Universe
from ...errors import Invalid, ReasonCode, suggestion
from ...measurement.requests import MeasureNorms, Steps, ask
from ...stats import CONTROLS
from ..payload import frequencies
from ..protocol import Claim
from .examples import CompetentTask, competent_task, describe_model, part
from .shared_sets import discover_shared_set

if TYPE_CHECKING:
    from ...core.results import Outcome

Interval = tuple[float, float]

MIN_DISTINCT_SETS = 20
"""Different control sets that a rank needs: among fewer, even the most extreme one comes up with a probability above .05."""
NO_CONTROL = "none"


def known_control(name: str) -> str:
    """The name of a control rule. Raises `ValueError` for others."""
    if name not in CONTROLS:
        raise ValueError(f"unknown control {name!r}; {suggestion(name, CONTROLS)}")
    return name


def optional_control(name: str) -> str:
    """The name of a control rule, or `none`. Raises `ValueError` for others."""
    return name if name == NO_CONTROL else known_control(name)


@dataclass(frozen=True)
class ControlledSet:
    """The shared set `units` of the task `source`, and the task that it is measured on.

    `payload` is what a baseline stores of the discovery circuits.
    """

    units: tuple[str, ...]
    source: str
    task: CompetentTask
    universe: Universe
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """The group of each evaluation example."""
        return self.task.groups


def discover_controlled_set(claim: Claim) -> Steps[ControlledSet]:
    """S_P of the discovery examples of `task`, or of `circuit.task`. Raises `Invalid` for an empty one and below the accuracy gate."""
    parameters = claim.parameters
    source = parameters.circuit.task if parameters.circuit else parameters.task
    universe = yield from describe_model(claim)
    task = yield from competent_task(claim, parameters.task)
    source_task = task if source == parameters.task else (yield from competent_task(claim, source))
    discovered = yield from discover_shared_set(claim, source_task)
    return ControlledSet(discovered.shared, source, task, universe, frequencies(discovered.discovery, discovered.discovery_groups))


@dataclass(frozen=True)
class Controls:
    """Random sets drawn as stand-ins for the shared set; `rule` is a name or a function, as `stats.controls` takes it."""

    rule: Any
    sets: list[tuple[str, ...]]


def draw_control_sets(claim: Claim, units: tuple[str, ...], universe: Universe) -> Steps[Controls]:
    """The control sets of `units`. Raises `Invalid` when they cannot be drawn, or can only be `units` itself."""
    from ...stats.controls import draw_controls

    parameters = claim.parameters
    rule: Any = parameters.control
    if CONTROLS.fact(parameters.control, "norms"):
        from ...stats.matched_controls import control_rule

        norms = yield from ask(MeasureNorms(claim.model, claim.tasks[parameters.task], part(parameters, "discovery")))
        rule = control_rule(parameters.control, norms.values)
    sets = draw_controls(units, universe, rule, parameters.draws, parameters.control_seed)
    if set(sets) == {units}:
        raise Invalid(
            f"control {parameters.control!r} can only draw the shared set itself ({len(units)} components), so the comparison is with "
            "itself; lower size, raise p, or use control: c3_any",
            {"shared_set": list(units), "control": parameters.control},
            code=ReasonCode.CONTROL_IS_THE_SET,
        )
    return Controls(rule, sets)


def control_contrast(
    parameters: Any, control: Outcome, chosen: Outcome, intact: Outcome, groups: list[str]
) -> tuple[float, Interval, dict[str, Any]]:
    """acc(control) − acc(chosen set), or its ratio to the intact accuracy as a linear contrast, with interval and parts."""
    from ...stats.crossed_interval import crossed_interval

    tables, correct = control.correct.astype(float), chosen.correct[0].astype(float)
    absolute = crossed_interval(tables, correct, groups, parameters.confidence)
    if parameters.definition == "absolute":
        return absolute
    whole = intact.correct.astype(float)

    def contrast(b: float) -> Interval:
        return crossed_interval(tables, correct + b * whole, groups, parameters.confidence, -1 - abs(b), 1 + abs(b))[1]

    value, interval = relative_to_accuracy(absolute[0], whole, groups, contrast)
    return value, interval, {**absolute[2], "absolute": absolute[0]}


def relative_to_accuracy(difference: float, whole: Any, groups: list[str], contrast: Callable[[float], Interval]) -> tuple[float, Interval]:
    """`difference` / intact accuracy, and the b whose contrast, difference − b·accuracy, has an interval that contains 0.

    `whole` [n] is the correctness of the intact model; `contrast(b)` is the interval of the contrast, which falls as b grows.
    Raises `Invalid` for an accuracy of 0.
    """
    import numpy as np

    from ...stats.groups import group_means

    accuracy = float(group_means(whole, groups)[0].mean())
    if accuracy == 0:
        raise Invalid(
            "a relative value divides by the intact accuracy, which is 0; use definition: absolute", code=ReasonCode.ZERO_DENOMINATOR
        )

    def crossing(end: int) -> float:
        """Where an end of the contrast's interval passes 0."""
        low, high = -1 / accuracy - 1, 1 / accuracy + 1
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if contrast(middle)[end] > 0 else (low, middle)
        return float(np.clip((low + high) / 2, -1 / accuracy, 1 / accuracy))

    value = difference / accuracy
    return value, (min(value, crossing(0)), max(value, crossing(1)))


def control_rank(observed: float, draws: Any, possible: int) -> dict[str, Any]:
    """`rank_p`: the Monte-Carlo rank p-value of `observed` among the values of the m control draws, [m]; high values are extreme.

    `possible` is how many different sets the control rule allows. Below `MIN_DISTINCT_SETS`, draws repeat each other, so that more of
    them would lower (b+1)/(m+1) without further evidence: `rank_p` is then None and `rank_p_reason` says why.
    """
    from ...stats.controls import monte_carlo_p

    if possible >= MIN_DISTINCT_SETS:
        return {"rank_p": monte_carlo_p(observed, draws, "greater"), "rank_p_reason": None}
    sets = "only one control set is" if possible == 1 else f"only {possible} different control sets are"
    return {"rank_p": None, "rank_p_reason": f"{sets} possible, and a rank among draws needs at least {MIN_DISTINCT_SETS} different ones"}


def format_rank(rank: Mapping[str, Any], what: str = "the shared set") -> str:
    """The rank as text, or why there is none."""
    if rank["rank_p"] is None:
        return f"no rank among the controls: {rank['rank_p_reason']}"
    return f"rank of {what} among the controls: p = {rank['rank_p']:.3f}"


def control_details(name: str, units: tuple[str, ...], universe: Universe, controls: Controls, outcome: Outcome) -> dict[str, Any]:
    """Details of the control draws: accuracies, how many different sets are possible, overlap with the set, matching by layer."""
    from ...stats.controls import distinct, expected_overlap, strata_of
    from ...stats.matched_controls import same_layer

    return {
        "rule": name,
        "draws": len(controls.sets),
        "accuracies": [round(float(accuracy), 4) for accuracy in outcome.correct.mean(1)],
        "distinct_sets": distinct(units, universe, controls.rule),
        "expected_overlap": expected_overlap(units, universe, controls.rule),
        "matched_by_layer": same_layer(units, universe, strata_of(units, universe, controls.rule)),
        "sets": [list(control) for control in controls.sets],
    }
