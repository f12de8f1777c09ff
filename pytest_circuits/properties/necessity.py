"""Necessity: does removing the shared set hurt more than removing a random set of the same capacity?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..errors import Invalid, suggestion
from ..requests import Ablate, freeze
from ..stats import CONTROLS
from ..verdict import Estimate
from .base import CircuitParameters, Claim, Kind, Options, Property, Share, Steps, TaskName, check_kind
from .measured import check_share, circuits, describe, empty_set, examples, intact, part, set_details

if TYPE_CHECKING:
    from ..results import Outcome


class OtherCircuit(BaseModel):
    """The task whose shared set is removed, when it is not the task that is measured."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    task: TaskName


class Necessity(CircuitParameters):
    """necessity = acc(control removed) − acc(S_P removed), on evaluation examples.

    S_P is the shared set of the discovery examples; a control is a random set of the same size (`c3`: as many heads
    and as many MLPs, outside S_P; `c3_parity`: the same, S_P allowed in the pool; `c3_any`: any type, outside S_P),
    drawn `draws` times. Positive when the shared set matters more. `definition: absolute` is in accuracy points,
    range [−1, 1]; `relative` divides by the intact accuracy, as the paper does. Invalid: empty S_P, a control that
    cannot be drawn, an accuracy below the gate. Source: arXiv 2605.08348. Interval: examples (betting, over groups)
    and draws (t) both counted; approximate. A refuted necessity does not say that the components are unused: others
    may back them up.
    """

    task: TaskName
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    ablation: Annotated[Kind, Field(description="what removed components are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts, positions")] = Field(
        default_factory=dict
    )
    control: Annotated[str, Field(description="c3, c3_parity or c3_any")] = "c3"
    draws: Annotated[int, Field(ge=20, description="random control sets")] = 49
    control_seed: Annotated[int, Field(ge=0)] = 0
    definition: Annotated[Literal["absolute", "relative"], Field(description="accuracy points, or a share of the intact accuracy")] = (
        "absolute"
    )
    circuit: Annotated[OtherCircuit | None, Field(description="remove another task's shared set: {task: …}")] = None

    @field_validator("control")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in CONTROLS:
            raise ValueError(f"unknown control {name!r}; {suggestion(name, CONTROLS)}")
        return name

    @model_validator(mode="after")
    def _ablation_fits(self) -> Necessity:
        check_kind(self.ablation, self.ablation_options)
        return self


def judge(claim: Claim) -> Steps:
    """Find S_P, draw the controls, remove each, compare accuracies."""
    from ..stats import controls

    p: Necessity = claim.parameters
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
    draws = controls.draw_controls(shared, universe, p.control, p.draws, p.control_seed)
    if set(draws) == {shared}:
        raise Invalid(
            f"control {p.control!r} can only draw the shared set itself ({len(shared)} components), so the comparison is with itself; "
            "lower size, raise p, or use control: c3_any",
            {"shared_set": list(shared), "control": p.control},
        )
    removed, control = yield [_removal(claim, [shared]), _removal(claim, draws)]

    groups = here.groups(here.evaluation)
    value, interval, parts = _compare(p, control, removed, base, groups)
    accuracies = control.correct.mean(1)
    accuracy = float(removed.correct[0].mean())
    details = {
        "shared_set": set_details(shared, universe),
        "circuit_of": source,
        "accuracy": base.accuracy,
        "accuracy_without_shared_set": accuracy,
        "accuracy_without_control": float(accuracies.mean()),
        "control": {
            "rule": p.control,
            "draws": len(draws),
            "accuracies": [round(float(a), 4) for a in accuracies],
            "distinct_sets": controls.distinct(shared, universe, p.control),
            "expected_overlap": controls.expected_overlap(shared, universe, p.control),
            "sets": [list(d) for d in draws],
        },
        "rank_p": controls.monte_carlo_p(-accuracy, -accuracies, "greater"),
        "interval_parts": parts,
        "ablation": p.ablation,
        **here.as_dict(),
    }
    kind = "betting interval over groups and t interval over draws, in quadrature"
    return Estimate(value, interval, len(groups), p.confidence, kind, "necessity", details)


def _removal(claim: Claim, sets: Any) -> Ablate:
    p: Necessity = claim.parameters
    return Ablate(
        claim.model, claim.tasks[p.task], tuple(map(tuple, sets)), "remove", p.ablation, "component", p.metric,
        part(p, "evaluation"), part(p, "discovery"), freeze(p.ablation_options),
    )  # fmt: skip


def _compare(
    p: Necessity, control: Outcome, removed: Outcome, base: Outcome, groups: list[str]
) -> tuple[float, tuple[float, float], dict[str, Any]]:
    """acc(control) − acc(S_P), or its ratio to the intact accuracy as a linear contrast."""
    import numpy as np

    from ..stats.crossed import crossed_interval
    from ..stats.groups import group_means

    tables, gone = control.correct.astype(float), removed.correct[0].astype(float)
    absolute = crossed_interval(tables, gone, groups, p.confidence)
    if p.definition == "absolute":
        return absolute
    whole = base.correct.astype(float)
    accuracy = float(group_means(whole, groups)[0].mean())
    if accuracy == 0:
        raise Invalid("relative necessity divides by the intact accuracy, which is 0; use definition: absolute")

    def contrast(b: float) -> tuple[float, float]:
        return crossed_interval(tables, gone + b * whole, groups, p.confidence, -1 - abs(b), 1 + abs(b))[1]

    def crossing(end: int) -> float:
        """Where an end of the contrast's interval passes 0: it falls as b grows."""
        low, high = -1 / accuracy - 1, 1 / accuracy + 1
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if contrast(middle)[end] > 0 else (low, middle)
        return float(np.clip((low + high) / 2, -1 / accuracy, 1 / accuracy))

    value = absolute[0] / accuracy
    return value, (min(value, crossing(0)), max(value, crossing(1))), {**absolute[2], "absolute": absolute[0]}


NECESSITY = Property(
    "necessity",
    Necessity,
    judge,
    -1.0,
    1.0,
    "removing the shared set hurts more than removing a random set of the same capacity",
    "accuracy points",
)
