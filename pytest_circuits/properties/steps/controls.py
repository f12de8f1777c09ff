"""A task's shared set beside random sets of the same capacity: what necessity and sufficiency have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from ...core.units import Universe
from ...errors import Invalid, suggestion
from ...measurement.requests import Ablate, MeasureNorms, Steps, ask, freeze
from ...stats import CONTROLS
from ..parameters import TaskName
from ..payload import frequencies
from ..protocol import Claim
from .examples import Examples, check_share, circuits, describe, empty_set, examples, intact, part

if TYPE_CHECKING:
    from ...core.results import Outcome

Interval = tuple[float, float]

FEWEST = 20
"""Different control sets that a rank needs: among fewer, even the most extreme one comes up with a probability above .05."""


class OtherCircuit(BaseModel):
    """The task whose shared set is removed, when it is not the task that is measured."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    task: TaskName


def known_control(name: str) -> str:
    """The name of a control rule. Raises `ValueError` for others."""
    if name not in CONTROLS:
        raise ValueError(f"unknown control {name!r}; {suggestion(name, CONTROLS)}")
    return name


@dataclass(frozen=True)
class ControlledSet:
    """The shared set `units` of task `source`, and the task it is measured on: its examples and the intact model on the evaluation ones.

    `kept` is what a baseline keeps of the discovery circuits.
    """

    units: tuple[str, ...]
    source: str
    examples: Examples
    intact: Outcome
    universe: Universe
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def groups(self) -> list[str]:
        """The group of each evaluation example."""
        return self.examples.groups(self.examples.evaluation)


def shared_set(claim: Claim) -> Steps[ControlledSet]:
    """S_P of the discovery examples of `task`, or of `circuit.task`. Raises `Invalid` for an empty one and below the accuracy gate."""
    p = claim.parameters
    source = p.circuit.task if p.circuit else p.task
    universe = yield from describe(claim)
    here = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, here)
    there = here
    if source != p.task:
        there = yield from examples(claim, source)
        yield from intact(claim, source, there)
    discovery = (yield from circuits(claim, source)).take(there.discovery)
    check_share(p.p, len(discovery))
    shared = discovery.shared(p.p)
    if not shared:
        raise empty_set(p, source, int(discovery.counts.max()), len(discovery))
    return ControlledSet(shared, source, here, base, universe, frequencies(discovery, there.groups(there.discovery)))


@dataclass(frozen=True)
class Controls:
    """Random sets drawn as stand-ins for the shared set; `rule` is a name or a function, as `stats.controls` takes it."""

    rule: Any
    sets: list[tuple[str, ...]]


def drawn(claim: Claim, shared: tuple[str, ...], universe: Universe) -> Steps[Controls]:
    """The control sets. Raises `Invalid` when they cannot be drawn, or are the shared set itself."""
    from ...stats.controls import draw_controls

    p = claim.parameters
    rule: Any = p.control
    if CONTROLS.fact(p.control, "norms"):
        from ...stats.matched_controls import control_rule

        norms = yield from ask(MeasureNorms(claim.model, claim.tasks[p.task], part(p, "discovery")))
        rule = control_rule(p.control, norms.values)
    sets = draw_controls(shared, universe, rule, p.draws, p.control_seed)
    if set(sets) == {shared}:
        raise Invalid(
            f"control {p.control!r} can only draw the shared set itself ({len(shared)} components), so the comparison is with itself; "
            "lower size, raise p, or use control: c3_any",
            {"shared_set": list(shared), "control": p.control},
        )
    return Controls(rule, sets)


def ablation(claim: Claim, sets: Sequence[Sequence[str]], mode: str) -> Ablate:
    """The request for removing, or keeping, each of these sets on the evaluation examples."""
    p = claim.parameters
    return Ablate(
        claim.model, claim.tasks[p.task], tuple(map(tuple, sets)), mode, p.ablation, "component", p.metric,
        part(p, "evaluation"), part(p, "discovery"), freeze(p.ablation_options),
    )  # fmt: skip


def compare(p: Any, control: Outcome, chosen: Outcome, base: Outcome, groups: list[str]) -> tuple[float, Interval, dict[str, Any]]:
    """acc(control) − acc(the one chosen set), or its ratio to the intact accuracy as a linear contrast, with interval and parts."""
    from ...stats.crossed import crossed_interval

    tables, one = control.correct.astype(float), chosen.correct[0].astype(float)
    absolute = crossed_interval(tables, one, groups, p.confidence)
    if p.definition == "absolute":
        return absolute
    whole = base.correct.astype(float)

    def contrast(b: float) -> Interval:
        return crossed_interval(tables, one + b * whole, groups, p.confidence, -1 - abs(b), 1 + abs(b))[1]

    value, interval = relative(absolute[0], whole, groups, contrast)
    return value, interval, {**absolute[2], "absolute": absolute[0]}


def relative(difference: float, whole: Any, groups: list[str], contrast: Callable[[float], Interval]) -> tuple[float, Interval]:
    """`difference` / intact accuracy, and the b whose contrast, difference − b·accuracy, has an interval that contains 0.

    `whole` [n] is the correctness of the intact model; `contrast(b)` is the interval of the contrast, which falls as b grows.
    Raises `Invalid` for an accuracy of 0.
    """
    import numpy as np

    from ...stats.groups import group_means

    accuracy = float(group_means(whole, groups)[0].mean())
    if accuracy == 0:
        raise Invalid("a relative value divides by the intact accuracy, which is 0; use definition: absolute")

    def crossing(end: int) -> float:
        """Where an end of the contrast's interval passes 0."""
        low, high = -1 / accuracy - 1, 1 / accuracy + 1
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if contrast(middle)[end] > 0 else (low, middle)
        return float(np.clip((low + high) / 2, -1 / accuracy, 1 / accuracy))

    value = difference / accuracy
    return value, (min(value, crossing(0)), max(value, crossing(1)))


def ranked(observed: float, draws: Any, possible: int) -> dict[str, Any]:
    """`rank_p`: the Monte-Carlo rank p-value of `observed` among what the m control draws gave, [m]; high values are extreme.

    `possible` is how many different sets the control rule allows. Where that is below `FEWEST`, draws repeat each other, so that more of
    them would lower (b+1)/(m+1) without any further evidence: `rank_p` is then None and `rank_p_reason` says why.
    """
    from ...stats.controls import monte_carlo_p

    if possible >= FEWEST:
        return {"rank_p": monte_carlo_p(observed, draws, "greater"), "rank_p_reason": None}
    sets = "only one control set is" if possible == 1 else f"only {possible} different control sets are"
    return {"rank_p": None, "rank_p_reason": f"{sets} possible, and a rank among draws needs at least {FEWEST} different ones"}


def rank_told(rank: Mapping[str, Any], what: str = "the shared set") -> str:
    """The rank in words, or why there is none."""
    if rank["rank_p"] is None:
        return f"no rank among the controls: {rank['rank_p_reason']}"
    return f"rank of {what} among the controls: p = {rank['rank_p']:.3f}"


def control_details(name: str, shared: tuple[str, ...], universe: Universe, draws: Controls, outcome: Outcome) -> dict[str, Any]:
    """What a reader wants to know of the controls."""
    from ...stats import controls
    from ...stats.matched_controls import same_layer

    return {
        "rule": name,
        "draws": len(draws.sets),
        "accuracies": [round(float(a), 4) for a in outcome.correct.mean(1)],
        "distinct_sets": controls.distinct(shared, universe, draws.rule),
        "expected_overlap": controls.expected_overlap(shared, universe, draws.rule),
        "matched_by_layer": same_layer(shared, universe, controls.strata_of(shared, universe, draws.rule)),
        "sets": [list(d) for d in draws.sets],
    }
