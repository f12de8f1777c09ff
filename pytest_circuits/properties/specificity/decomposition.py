"""Decomposition of two shared sets: their common part, the rest of each, and which task each part matters to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ...core.units import Universe
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.driver import gather
from ...measurement.requests import MeasureNorms, Steps, ask, ask_all
from ...stats import CONTROLS
from ..parameters import ControlParameters, RemovalParameters, TaskName
from ..protocol import Claim, Property
from ..steps.controls import NO_CONTROL, control_rank, optional_control
from ..steps.examples import CompetentTask, competent_task, describe_model, part
from ..steps.removal import ablation_request, accuracy_drop, check_distinct_prompts, discover_removable_set
from ..steps.shared_sets import SharedSetTask, format_set, set_details, set_overlap

if TYPE_CHECKING:
    from ...core.results import Outcome


class Decomposition(ControlParameters, RemovalParameters):
    r"""selectivity of a part = drop on its own task − mean drop on the other tasks, each in accuracy points.

    `tasks: [A, B]`. Parts of their shared sets: `core` S_A ∩ S_B, `specific` S_A \ S_B, `complementary` S_B \ S_A. The part alone is
    removed and measured on every task of `measure_on` (default: A and B). The own task of core and specific is A, that of complementary B,
    so a positive value always means that the part matters more to its own task. Range [−1, 1]. Controls are `draws` random sets by the
    rule `control`, drawn outside S_A ∪ S_B as far as enough components are left. With `against: control` their mean drop is subtracted on
    every task, which leaves what the part costs beyond its size; with `against: nothing` they are only reported (`control: none` draws
    none). Invalid: a part smaller than `minimum`, an empty shared set, a task below the accuracy gate, tasks with prompts in common, a
    control to be subtracted that cannot be drawn. Source: arXiv 2605.08348. Interval: betting, over the groups of each task, joined by
    MOVER since tasks are independent; with `against: control` the draws (t) are counted too. Approximate; conditional on the sets.
    """

    tasks: Annotated[list[TaskName], Field(min_length=2, max_length=2, description="two tasks, A and B")]
    part: Annotated[
        Literal["core", "specific", "complementary"], Field(description="core: in both; specific: only in A's; complementary: only in B's")
    ]
    measure_on: Annotated[
        list[TaskName],
        Field(json_schema_extra={"circuits": "task"}, description="tasks on which the part is removed; by default A and B"),
    ] = []  # noqa: RUF012 (pydantic copies it)
    minimum: Annotated[int, Field(ge=1, description="smallest part that is measured, in components")] = 2
    control: Annotated[str, AfterValidator(optional_control), Field(description="rule for control sets, as for necessity, or none")] = "c3"
    against: Annotated[Literal["nothing", "control"], Field(description="control: what random sets cost is subtracted from every drop")] = (
        "nothing"
    )

    @property
    def own_task(self) -> str:
        """The task that the part is named after."""
        return self.tasks[1 if self.part == "complementary" else 0]

    @property
    def measured(self) -> list[str]:
        """The tasks that are measured, the part's own task first."""
        return list(dict.fromkeys([self.own_task, *(self.measure_on or self.tasks)]))

    @model_validator(mode="after")
    def _fits(self) -> Decomposition:
        if self.tasks[0] == self.tasks[1]:
            raise ValueError(f"both tasks are {self.tasks[0]!r}; name two")
        if self.measure_on and (self.own_task not in self.measure_on or len(set(self.measure_on)) < max(2, len(self.measure_on))):
            raise ValueError(f"measure_on must name the part's own task {self.own_task!r} and others, each once")
        if self.against == "control" and self.control == NO_CONTROL:
            raise ValueError("against: control needs a control; name a rule such as c3")
        return self


@dataclass(frozen=True)
class _Controls:
    """Control sets, or why there are none.

    `outside`: the expected share of a control that lies outside S_A ∪ S_B. `same_layer`: how many members of the part have a
    counterpart of their own type and layer in every draw.
    """

    sets: list[tuple[str, ...]]
    outside: float = 0.0
    distinct: int = 0
    same_layer: int = 0
    reason: str | None = None


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find both sets, remove the part and its controls on every task, compare the drops."""
    parameters: Decomposition = claim.parameters
    others = [name for name in parameters.measured if name not in parameters.tasks]
    universe, a, b, *rest = yield from gather(
        describe_model(claim),
        *(discover_removable_set(claim, name) for name in parameters.tasks),
        *(competent_task(claim, name) for name in others),
    )
    tasks: dict[str, CompetentTask] = {task.name: task for task in (a, b, *rest)}
    check_distinct_prompts([tasks[name] for name in dict.fromkeys([*parameters.tasks, *parameters.measured])])
    parts = _parts(a, b)
    units = parts[parameters.part]
    _check_size(parameters, parts, a, b)
    controls = yield from _draw_controls(claim, units, a, b, universe)
    measured = parameters.measured
    requests = [ablation_request(claim, name, [units]) for name in measured]
    if controls.sets:
        requests += [ablation_request(claim, name, controls.sets) for name in measured]
    outcomes = yield from ask_all(requests)
    removed = dict(zip(measured, outcomes, strict=False))
    controlled = dict(zip(measured, outcomes[len(measured) :], strict=False))
    value, interval, kind, interval_parts = _selectivity(parameters, tasks, removed, controlled)
    row = {name: _entry(parameters, tasks[name], removed[name], controlled.get(name), controls.distinct) for name in measured}
    details: dict[str, Any] = {
        "part": {"name": parameters.part, "of": list(parameters.tasks), "own_task": parameters.own_task, **set_details(units, universe)},
        "parts": {name: list(members) for name, members in parts.items()},
        "shared_sets": {task.name: set_details(task.shared, universe) for task in (a, b)},
        "overlap": set_overlap(a.shared, b.shared),
        "measured_on": row,
        "control": {
            "rule": parameters.control,
            "draws": len(controls.sets),
            "distinct_sets": controls.distinct,
            "expected_share_outside_both": controls.outside,
            "matched_by_layer": controls.same_layer,
            "reason": controls.reason,
            "sets": [list(control) for control in controls.sets],
        },
        "against": parameters.against,
        "interval_parts": interval_parts,
        "ablation": parameters.ablation,
        "examples": {name: tasks[name].examples.as_dict() for name in measured},
    }
    n = min(len(tasks[name].intact.correct) for name in measured)
    details["notes"] = _notes(parameters, details, parts, row)
    return Estimate(value, interval, n, parameters.confidence, kind, "decomposition", details)


def _parts(a: SharedSetTask, b: SharedSetTask) -> dict[str, tuple[str, ...]]:
    """The three parts, in universe order."""
    first, second = set(a.shared), set(b.shared)
    return {
        "core": tuple(u for u in a.shared if u in second),
        "specific": tuple(u for u in a.shared if u not in second),
        "complementary": tuple(u for u in b.shared if u not in first),
    }


def _check_size(parameters: Decomposition, parts: dict[str, tuple[str, ...]], a: SharedSetTask, b: SharedSetTask) -> None:
    units = parts[parameters.part]
    if len(units) >= parameters.minimum:
        return
    sizes = f"shared sets of {len(a.shared)} ({a.name}) and {len(b.shared)} ({b.name}) components have {len(parts['core'])} in common"
    remedy = "lower minimum, " if units else ""
    raise Invalid(
        f"the {parameters.part} part has {len(units)} components and at least {parameters.minimum} are needed: {sizes}; "
        f"{remedy}raise size or lower p",
        {
            "part": list(units),
            "minimum": parameters.minimum,
            "sizes": {a.name: len(a.shared), b.name: len(b.shared)},
            "core": list(parts["core"]),
        },
        code=ReasonCode.EMPTY_SET,
    )


def _draw_controls(claim: Claim, units: tuple[str, ...], a: SharedSetTask, b: SharedSetTask, universe: Universe) -> Steps[_Controls]:
    """The control sets. Where none can be drawn this is `Invalid` if they are to be subtracted, and a reason otherwise."""
    parameters: Decomposition = claim.parameters
    if parameters.control == NO_CONTROL:
        return _Controls([], reason="control: none")
    from ...stats.controls import distinct, draw_controls, expected_overlap, strata_of
    from ...stats.matched_controls import control_rule, same_layer

    norms = None
    if CONTROLS.fact(parameters.control, "norms"):
        norms = (yield from ask(MeasureNorms(claim.model, claim.tasks[parameters.own_task], part(parameters, "discovery")))).values
    either = tuple(dict.fromkeys([*a.shared, *b.shared]))
    rule = control_rule(parameters.control, norms, either)
    try:
        sets = draw_controls(units, universe, rule, parameters.draws, parameters.control_seed)
        possible = distinct(units, universe, rule)
        if possible == 1:
            raise Invalid(
                f"control {parameters.control!r} allows a single set, which is not a random control; use another control or a smaller part",
                code=ReasonCode.CONTROL_IS_THE_SET,
            )
    except Invalid as problem:
        if parameters.against == "control":
            raise
        return _Controls([], reason=str(problem))
    outside = 1 - expected_overlap(units, universe, rule, either)
    return _Controls(sets, outside, possible, same_layer(units, universe, strata_of(units, universe, rule)))


def _selectivity(
    parameters: Decomposition, tasks: dict[str, CompetentTask], removed: dict[str, Outcome], controlled: dict[str, Outcome]
) -> tuple[float, tuple[float, float], str, dict[str, Any]]:
    """Own task minus the mean of the others; with controls subtracted, a draw is the same set on every task."""
    import numpy as np

    from ...stats.betting import grouped_mean_interval
    from ...stats.distributions import t_quantile
    from ...stats.groups import group_means
    from ...stats.mover_interval import weighted_sum

    weights = [1.0, *[-1 / (len(parameters.measured) - 1)] * (len(parameters.measured) - 1)]
    costs, by_draw = [], np.zeros(parameters.draws)
    for name, weight in zip(parameters.measured, weights, strict=True):
        task, cost = tasks[name], accuracy_drop(tasks[name].intact, removed[name])
        if parameters.against == "control":
            tables = controlled[name].correct.astype(float)
            cost = tables.mean(0) - removed[name].correct[0]
            by_draw += weight * group_means(tables.T, task.groups)[0].mean(0)
        costs.append(grouped_mean_interval(cost, task.groups, parameters.confidence, -1.0, 1.0)[:2])
    half = (
        t_quantile(parameters.confidence, parameters.draws - 1) * float(np.std(by_draw, ddof=1)) / parameters.draws**0.5
        if parameters.against == "control"
        else 0.0
    )
    value, interval = weighted_sum(costs, weights, half, -1.0, 1.0)
    parts = {"by_task": {name: list(ends) for name, (_, ends) in zip(parameters.measured, costs, strict=True)}, "draws_half_width": half}
    kind = "betting intervals over groups of each task" + (" and t interval over draws" if half else "") + ", joined by MOVER"
    return value, interval, kind, parts


def _entry(parameters: Decomposition, task: CompetentTask, removed: Outcome, controlled: Outcome | None, possible: int) -> dict[str, Any]:
    """What removing the part, and its controls, costs a task."""
    from ...stats.crossed_interval import crossed_interval

    without = float(removed.correct[0].mean())
    cost = task.intact.accuracy - without
    entry: dict[str, Any] = {"accuracy": task.intact.accuracy, "accuracy_without": without, "drop": cost}
    if controlled is not None:
        accuracies = controlled.correct.mean(1)
        value, ends, _ = crossed_interval(controlled.correct.astype(float), removed.correct[0], task.groups, parameters.confidence)
        entry["control"] = {
            "accuracy_without": float(accuracies.mean()),
            "accuracies": [round(float(x), 4) for x in accuracies],
            "necessity": value,
            "necessity_interval": list(ends),
            **control_rank(-without, -accuracies, possible),
        }
    return entry


def _notes(parameters: Decomposition, details: dict[str, Any], parts: dict[str, tuple[str, ...]], row: dict[str, Any]) -> list[str]:
    a, b = parameters.tasks
    sizes = f"in both {len(parts['core'])}, only in {a} {len(parts['specific'])}, only in {b} {len(parts['complementary'])} components"
    costs = ", ".join(f"{name} {entry['drop']:.3f}" for name, entry in row.items())
    lines = [
        f"shared sets of {a} and {b}: {sizes}",
        f"removed: the {parameters.part} part {format_set(parts[parameters.part])}; accuracy lost on {costs}",
    ]
    control = details["control"]
    if control["draws"]:
        costs = ", ".join(f"{name} {entry['accuracy'] - entry['control']['accuracy_without']:.3f}" for name, entry in row.items())
        where = f"{control['expected_share_outside_both']:.0%} of its components outside both sets"
        lines.append(f"a random set of its size ({parameters.control}, {control['draws']} draws, {where}) costs on {costs}")
    else:
        lines.append(f"not compared with random sets: {control['reason']}")
    return lines


DECOMPOSITION = Property(
    "decomposition",
    Decomposition,
    estimate,
    -1.0,
    1.0,
    "a part of two tasks' shared sets (core, specific, complementary) matters more to its own task than to others",
    "accuracy points",
)
