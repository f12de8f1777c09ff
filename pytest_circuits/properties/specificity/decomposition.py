"""Decomposition of a pair of shared sets: what both share, what is only one's own, and what each part is good for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from ...core.units import Universe
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.driver import together
from ...measurement.requests import MeasureNorms, Steps, ask, ask_all
from ...stats import CONTROLS
from ..parameters import TaskName
from ..protocol import Claim, Property
from ..steps.controls import known_control, ranked
from ..steps.examples import describe, part, set_details
from ..steps.removal import (
    CompetentTask,
    DiscoveredTask,
    RemovalParameters,
    Step,
    able,
    apart,
    discovered,
    drop,
    removal,
    set_overlap,
    shown,
)

if TYPE_CHECKING:
    from ...core.results import Outcome

NONE = "none"


def _control(name: str) -> str:
    return name if name == NONE else known_control(name)


class Decomposition(RemovalParameters):
    r"""selectivity of a part = drop on its own task − mean drop on the other tasks, each in accuracy points.

    `tasks: [A, B]`; parts of their shared sets: `core` S_A ∩ S_B, `specific` S_A \ S_B, `complementary` S_B \ S_A. The part alone is
    removed and measured on every task of `measure_on` (default: A and B). The own task is A for core and specific, and B for
    complementary, so a positive value always says that the part matters more to the task that it is named after. Range [−1, 1].
    Each part has its own control, `draws` random sets of `control` drawn outside S_A ∪ S_B where enough components are left
    there: with `against: control` their mean drop is subtracted on every task (selectivity of what the part costs beyond its size);
    with `against: nothing` they are only reported (`control: none` spares them). Invalid: a part smaller than `minimum`, an empty
    shared set, a task below the accuracy gate, tasks with prompts in common, a control that cannot be drawn and is subtracted.
    Source: arXiv 2605.08348. Interval: betting, over the groups of each task, joined by MOVER since tasks are independent; with
    `against: control` the draws (t) are counted too. Approximate; conditional on the sets.
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
    control: Annotated[str, AfterValidator(_control), Field(description="rule for control sets, as for necessity, or none")] = "c3"
    draws: Annotated[int, Field(ge=20, description="random control sets")] = 49
    control_seed: Annotated[int, Field(ge=0)] = 0
    against: Annotated[Literal["nothing", "control"], Field(description="control: what random sets cost is subtracted from every drop")] = (
        "nothing"
    )

    @property
    def own(self) -> str:
        """The task that the part is named after."""
        return self.tasks[1 if self.part == "complementary" else 0]

    @property
    def measured(self) -> list[str]:
        """The tasks that are measured, the own one first."""
        return list(dict.fromkeys([self.own, *(self.measure_on or self.tasks)]))

    @model_validator(mode="after")
    def _fits(self) -> Decomposition:
        if self.tasks[0] == self.tasks[1]:
            raise ValueError(f"both tasks are {self.tasks[0]!r}; name two")
        if self.measure_on and (self.own not in self.measure_on or len(set(self.measure_on)) < max(2, len(self.measure_on))):
            raise ValueError(f"measure_on must name the part's own task {self.own!r} and others, each once")
        if self.against == "control" and self.control == NONE:
            raise ValueError("against: control needs a control; name a rule such as c3")
        return self


@dataclass(frozen=True)
class _Controls:
    """Control sets, or why there are none.

    outside: the expected share of a control that lies outside S_A ∪ S_B. same_layer: how many members of the part have a
    counterpart of their own type and layer in every draw.
    """

    sets: list[tuple[str, ...]]
    outside: float = 0.0
    distinct: int = 0
    same_layer: int = 0
    reason: str | None = None


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find both sets, remove the part and its controls from every task, compare the drops."""
    p: Decomposition = claim.parameters
    extra = [task for task in p.measured if task not in p.tasks]
    universe, a, b, *rest = yield from together(
        describe(claim), *(discovered(claim, task) for task in p.tasks), *(able(claim, task) for task in extra)
    )
    sides: dict[str, CompetentTask] = {side.task: side for side in (a, b, *rest)}
    apart([sides[task] for task in dict.fromkeys([*p.tasks, *p.measured])])
    parts = _parts(a, b)
    units = parts[p.part]
    _large_enough(p, parts, a, b)
    controls = yield from _drawn(claim, units, a, b, universe)
    wanted = [removal(claim, task, [units]) for task in p.measured]
    asked = [removal(claim, task, controls.sets) for task in p.measured] if controls.sets else []
    answers = yield from ask_all(wanted + asked)
    removed = dict(zip(p.measured, answers, strict=False))
    controlled = dict(zip(p.measured, answers[len(wanted) :], strict=False))
    value, interval, kind, draws_part = _selectivity(p, sides, removed, controlled)
    row = {task: _entry(p, sides[task], removed[task], controlled.get(task), controls.distinct) for task in p.measured}
    details: dict[str, Any] = {
        "part": {"name": p.part, "of": list(p.tasks), "own_task": p.own, **set_details(units, universe)},
        "parts": {name: list(found) for name, found in parts.items()},
        "shared_sets": {side.task: set_details(side.shared, universe) for side in (a, b)},
        "overlap": set_overlap(a.shared, b.shared),
        "measured_on": row,
        "control": {
            "rule": p.control,
            "draws": len(controls.sets),
            "distinct_sets": controls.distinct,
            "expected_share_outside_both": controls.outside,
            "matched_by_layer": controls.same_layer,
            "reason": controls.reason,
            "sets": [list(one) for one in controls.sets],
        },
        "against": p.against,
        "interval_parts": draws_part,
        "ablation": p.ablation,
        "examples": {task: sides[task].found.as_dict() for task in p.measured},
    }
    n = min(len(sides[task].base.correct) for task in p.measured)
    return Estimate(value, interval, n, p.confidence, kind, "decomposition", details | {"notes": _told(p, details, parts, row)})


def _parts(a: DiscoveredTask, b: DiscoveredTask) -> dict[str, tuple[str, ...]]:
    """The three parts, in universe order."""
    first, second = set(a.shared), set(b.shared)
    return {
        "core": tuple(u for u in a.shared if u in second),
        "specific": tuple(u for u in a.shared if u not in second),
        "complementary": tuple(u for u in b.shared if u not in first),
    }


def _large_enough(p: Decomposition, parts: dict[str, tuple[str, ...]], a: DiscoveredTask, b: DiscoveredTask) -> None:
    units = parts[p.part]
    if len(units) >= p.minimum:
        return
    sizes = f"shared sets of {len(a.shared)} ({a.task}) and {len(b.shared)} ({b.task}) components have {len(parts['core'])} in common"
    remedy = "lower minimum, " if units else ""
    raise Invalid(
        f"the {p.part} part has {len(units)} components and at least {p.minimum} are needed: {sizes}; {remedy}raise size or lower p",
        {"part": list(units), "minimum": p.minimum, "sizes": {a.task: len(a.shared), b.task: len(b.shared)}, "core": list(parts["core"])},
    )


def _drawn(claim: Claim, units: tuple[str, ...], a: DiscoveredTask, b: DiscoveredTask, universe: Universe) -> Step[_Controls]:
    """The control sets. Where none can be drawn this is `Invalid` if they are to be subtracted, and a reason otherwise."""
    p: Decomposition = claim.parameters
    if p.control == NONE:
        return _Controls([], reason="control: none")
    from ...stats.controls import distinct, draw_controls, expected_overlap, strata_of
    from ...stats.matched_controls import control_rule, same_layer

    norms = None
    if CONTROLS.fact(p.control, "norms"):
        norms = (yield from ask(MeasureNorms(claim.model, claim.tasks[p.own], part(p, "discovery")))).values
    either = tuple(dict.fromkeys([*a.shared, *b.shared]))
    rule = control_rule(p.control, norms, either)
    try:
        sets = draw_controls(units, universe, rule, p.draws, p.control_seed)
        possible = distinct(units, universe, rule)
        if possible == 1:
            raise Invalid(f"control {p.control!r} allows one set alone, which is no random control; use another control or a smaller part")
    except Invalid as problem:
        if p.against == "control":
            raise
        return _Controls([], reason=str(problem))
    outside = 1 - expected_overlap(units, universe, rule, either)
    return _Controls(sets, outside, possible, same_layer(units, universe, strata_of(units, universe, rule)))


def _selectivity(
    p: Decomposition, sides: dict[str, CompetentTask], removed: dict[str, Outcome], controlled: dict[str, Outcome]
) -> tuple[float, tuple[float, float], str, dict[str, Any]]:
    """Own task minus the mean of the others; with controls subtracted, a draw is the same set on every task."""
    import numpy as np

    from ...stats.betting import grouped_mean_interval
    from ...stats.distributions import t_quantile
    from ...stats.groups import group_means
    from ...stats.mover_interval import weighted_sum

    weights = [1.0, *[-1 / (len(p.measured) - 1)] * (len(p.measured) - 1)]
    costs, by_draw = [], np.zeros(p.draws)
    for task, weight in zip(p.measured, weights, strict=True):
        side, cost = sides[task], drop(sides[task].base, removed[task])
        if p.against == "control":
            tables = controlled[task].correct.astype(float)
            cost = tables.mean(0) - removed[task].correct[0]
            by_draw += weight * group_means(tables.T, side.groups)[0].mean(0)
        costs.append(grouped_mean_interval(cost, side.groups, p.confidence, -1.0, 1.0)[:2])
    half = t_quantile(p.confidence, p.draws - 1) * float(np.std(by_draw, ddof=1)) / p.draws**0.5 if p.against == "control" else 0.0
    value, interval = weighted_sum(costs, weights, half, -1.0, 1.0)
    parts = {"by_task": {task: list(ends) for task, (_, ends) in zip(p.measured, costs, strict=True)}, "draws_half_width": half}
    kind = "betting intervals over groups of each task" + (" and t interval over draws" if half else "") + ", joined by MOVER"
    return value, interval, kind, parts


def _entry(p: Decomposition, side: CompetentTask, removed: Outcome, controlled: Outcome | None, possible: int) -> dict[str, Any]:
    """What removing the part, and its controls, costs one task."""
    from ...stats.crossed import crossed_interval

    without = float(removed.correct[0].mean())
    cost = side.base.accuracy - without
    entry: dict[str, Any] = {"accuracy": side.base.accuracy, "accuracy_without": without, "drop": cost}
    if controlled is not None:
        accuracies = controlled.correct.mean(1)
        value, ends, _ = crossed_interval(controlled.correct.astype(float), removed.correct[0], side.groups, p.confidence)
        entry["control"] = {
            "accuracy_without": float(accuracies.mean()),
            "accuracies": [round(float(x), 4) for x in accuracies],
            "necessity": value,
            "necessity_interval": list(ends),
            **ranked(-without, -accuracies, possible),
        }
    return entry


def _told(p: Decomposition, details: dict[str, Any], parts: dict[str, tuple[str, ...]], row: dict[str, Any]) -> list[str]:
    a, b = p.tasks
    sizes = f"in both {len(parts['core'])}, only in {a} {len(parts['specific'])}, only in {b} {len(parts['complementary'])} components"
    costs = ", ".join(f"{task} {one['drop']:.3f}" for task, one in row.items())
    lines = [f"shared sets of {a} and {b}: {sizes}", f"removed: the {p.part} part {shown(parts[p.part])}; accuracy lost on {costs}"]
    control = details["control"]
    if control["draws"]:
        beside = ", ".join(f"{task} {one['accuracy'] - one['control']['accuracy_without']:.3f}" for task, one in row.items())
        where = f"{control['expected_share_outside_both']:.0%} of its components outside both sets"
        lines.append(f"a random set of its size ({p.control}, {control['draws']} draws, {where}) costs on {beside}")
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
