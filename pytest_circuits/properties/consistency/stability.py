"""Stability: is the same shared set found again under another choice that should not matter?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import Universe, is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Encode, Steps, ask
from ..parameters import BootstrapParameters, MethodName, Options, OverlapParameters, SharedSetParameters, TaskName, check_method
from ..protocol import Claim, Property
from ..steps.circuits import find_circuits
from ..steps.examples import Examples, competent_task, describe_model
from ..steps.shared_sets import (
    UNSETTLED_OVERLAP,
    SharedSetTask,
    check_share,
    discover_shared_set,
    format_set,
    set_details,
    set_overlap,
    shared_units,
)

if TYPE_CHECKING:
    from ...core.results import CircuitSet

COUNTERPARTS = {"method": "other", "corruption": "other_task"}
"""The parameter that names what the task is compared with, by `under`."""


class Stability(BootstrapParameters, OverlapParameters, SharedSetParameters):
    """Jaccard index of the shared set S_P and the one found when one choice is changed (`under`).

    `resampling`: S_P of two disjoint random halves of the discovery groups, mean over `repeats` splits; biased low, since halves have half
    of the examples. `template`: S_P of one group (a template, an entity) against S_P of all other groups, mean over the groups with at
    least `least` discovery examples. `method`: S_P by `attribution` against S_P by `other`, on the same examples. `corruption`: S_P of
    `task` against S_P of `other_task`, which has the same clean prompts with other corrupt ones; prompts are matched. Range [0, 1]; two
    empty sets have 0. `over_chance` subtracts the mean Jaccard of random sets with as many heads and MLPs; range [−1, 1]. Invalid: an
    empty S_P, an accuracy below the gate, prompts that do not match, identical prompt pairs, too few groups. Inconclusive at p: 1, as
    jaccard. Interval: bias-corrected bootstrap over discovery groups, both sets recomputed; approximate.
    """

    task: TaskName
    under: Annotated[Literal["resampling", "template", "method", "corruption"], Field(description="what is changed")]
    other: Annotated[MethodName | None, Field(description="under: method: the other attribution method")] = None
    other_options: Annotated[Options, Field(description="options of the other attribution method")] = Field(default_factory=dict)
    other_task: Annotated[
        TaskName | None,
        Field(json_schema_extra={"circuits": "task"}, description="under: corruption: the same prompts, otherwise corrupted"),
    ] = None
    repeats: Annotated[int, Field(ge=1, le=200, description="under: resampling: random splits into halves")] = 20
    least: Annotated[int, Field(ge=2, description="under: template: discovery examples that a group needs for a set of its own")] = 5

    @model_validator(mode="after")
    def _fits(self) -> Stability:
        for under, name in COUNTERPARTS.items():
            if under == self.under and getattr(self, name) is None:
                raise ValueError(f"under: {under} needs {name}")
            if under != self.under and getattr(self, name) is not None:
                raise ValueError(f"{name} belongs to under: {under}, not to under: {self.under}")
        if self.other is not None:
            check_method(self.other, self.other_options, self.level, self.metric)
            if self.other == self.attribution and self.other_options == self.attribution_options:
                raise ValueError(f"other: {self.other} is the attribution itself, which agrees with itself; name another method")
        if self.other_task == self.task:
            raise ValueError(f"other_task {self.other_task!r} is the task itself; name the same prompts with another corruption")
        return self


@dataclass(frozen=True)
class _Comparison:
    """The statistic to be bootstrapped over `groups` groups, with `n` examples, and its details on the data themselves."""

    statistic: Callable[[Any], Any]
    groups: int
    n: int
    notes: list[str]
    details: dict[str, Any] = field(default_factory=dict)


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the shared set as usual, then again under the other choice; bootstrap their overlap."""
    from ...stats.bootstrap import bootstrap_interval

    parameters: Stability = claim.parameters
    universe = yield from describe_model(claim)
    task = yield from competent_task(claim, parameters.task)
    discovered = yield from discover_shared_set(claim, task)
    labels = ["mlp" if is_mlp(unit) else "head" for unit in discovered.circuits.units] if parameters.over_chance else None
    if parameters.under in COUNTERPARTS:
        comparison = yield from _other_circuits(claim, discovered, labels, universe)
    else:
        comparison = _among_groups(parameters, discovered.discovery, discovered.discovery_groups, labels)
    lowest = -1.0 if parameters.over_chance else 0.0
    value, interval, parts = bootstrap_interval(
        comparison.statistic, [comparison.groups], parameters.confidence, 0, parameters.resamples, lowest=lowest, highest=1.0
    )
    chance = ["minus what random sets with as many heads and MLPs would overlap"] if parameters.over_chance else []
    count = len(task.examples.discovery)
    details = {
        "under": parameters.under,
        "shared_set": set_details(discovered.shared, universe),
        "over_chance": parameters.over_chance,
        "accuracy": task.intact.accuracy,
        "groups_compared": comparison.groups,
        "bootstrap": parts,
        **comparison.details,
        **task.examples.as_dict(),
        "notes": [
            f"shared set of {count} discovery examples of {task.name}: {format_set(discovered.shared)}",
            *comparison.notes,
            *chance,
        ],
    }
    unsettled = UNSETTLED_OVERLAP if parameters.p == 1 else None
    return Estimate(
        value, interval, comparison.n, parameters.confidence, "bias-corrected bootstrap over groups", "stability", details, unsettled
    )


def _among_groups(parameters: Stability, discovery: CircuitSet, groups: list[str], labels: list[str] | None) -> _Comparison:
    """Resampling and template: sets of parts of the discovery examples."""
    import numpy as np

    from ...stats import overlap
    from ...stats.groups import group_codes

    tallies, sizes = overlap.group_tallies(discovery.members, groups)
    what = "overlap" if labels is None else "overlap over chance"
    names = group_codes(groups)[1]
    once = np.ones((1, len(sizes)), np.int64)
    if parameters.under == "resampling":
        first = overlap.halves(len(sizes), parameters.repeats)
        check_share(parameters.p, int(min((first @ sizes).min(), ((1 - first) @ sizes).min())))
        each = [float(overlap.half_rows(once, tallies, sizes, parameters.p, split[None], labels)[0]) for split in first]
        return _Comparison(
            lambda counts: overlap.half_rows(counts, tallies, sizes, parameters.p, first, labels), len(sizes), len(discovery),
            [f"found again in halves of its {len(sizes)} groups, {parameters.repeats} splits: {what} {min(each):.2f} to {max(each):.2f}"],
            {"by_split": each},
        )  # fmt: skip
    which = [g for g, size in enumerate(sizes) if size >= parameters.least]
    if len(which) < 2:
        raise Invalid(
            f"{len(which)} of {len(sizes)} groups have at least {parameters.least} discovery examples, and at least 2 must have a set "
            "of their own; give the task groups (templates) of several examples, lower least, or use under: resampling",
            {"groups": len(sizes), "large_enough": len(which), "least": parameters.least},
            code=ReasonCode.TOO_FEW_GROUPS,
        )
    check_share(parameters.p, int(sizes[which].min()))
    alone = {names[g]: float(overlap.alone_rows(once, tallies, sizes, parameters.p, [g], labels)[0]) for g in which}
    if not overlap.shared_rows(np.eye(len(sizes), dtype=np.int64)[which], tallies, sizes, parameters.p).any():
        raise Invalid(
            f"no group of at least {parameters.least} discovery examples has a shared set of its own (P = {parameters.p:g}), "
            "so none can be compared; lower p, or use under: resampling",
            {"groups": len(which), "p": parameters.p},
            code=ReasonCode.EMPTY_SHARED_SET,
        )
    worst = min(alone, key=lambda name: alone[name])
    return _Comparison(
        lambda counts: overlap.alone_rows(counts, tallies, sizes, parameters.p, which, labels), len(sizes), len(discovery),
        [f"{len(which)} of {len(sizes)} groups compared with all others; least {what} {alone[worst]:.2f}, of {worst!r}"],
        {"by_group": alone},
    )  # fmt: skip


def _other_circuits(claim: Claim, discovered: SharedSetTask, labels: list[str] | None, universe: Universe) -> Steps[_Comparison]:
    """Method and corruption: the same prompts, and a second circuit of each."""
    from ...stats import overlap

    parameters: Stability = claim.parameters
    examples = discovered.examples
    if parameters.under == "method":
        changed = {"attribution": parameters.other, "attribution_options": parameters.other_options}
        second = yield from find_circuits(claim, parameters.task, parameters.model_copy(update=changed))
        pairs, what = [(int(i), int(i)) for i in examples.discovery], f"by {parameters.other} instead of {parameters.attribution}"
    else:
        assert parameters.other_task is not None
        encoded = yield from ask(Encode(claim.model, claim.tasks[parameters.other_task]))
        second = yield from find_circuits(claim, parameters.other_task)
        pairs, what = _matched(parameters, examples, encoded), f"with the corrupt prompts of {parameters.other_task}"
        if encoded.prompts and encoded.digest == examples.encoded.digest:
            raise Invalid(
                f"tasks {parameters.task!r} and {parameters.other_task!r} are the same prompt pairs, so nothing was changed; "
                "name another corruption",
                {"digest": encoded.digest},
                code=ReasonCode.SAME_PROMPTS,
            )
    here, there = discovered.circuits.take([i for i, _ in pairs]), second.take([j for _, j in pairs])
    first = shared_units(here, parameters.p, parameters.task, parameters.threshold)
    other = there.shared(parameters.p)
    groups = [examples.encoded.groups[i] for i, _ in pairs]
    (a, sizes), (b, _) = overlap.group_tallies(here.members, groups), overlap.group_tallies(there.members, groups)

    def statistic(counts: Any) -> Any:
        rows = [overlap.shared_rows(counts, tallies, sizes, parameters.p) for tallies in (a, b)]
        return overlap.agreement_rows(rows[0], rows[1], labels)

    common = set_overlap(first, other)
    notes = [
        f"found {what}: {format_set(other)}, {len(common['both'])} in common (Jaccard {common['jaccard']:.2f})"
        if other
        else f"found {what}: no shared set at all, so nothing is in common"
    ]
    details = {"other_set": set_details(other, universe), "overlap": common, "matched": len(pairs)}
    return _Comparison(statistic, len(sizes), len(pairs), notes, details)


def _matched(parameters: Stability, examples: Examples, encoded: Any) -> list[tuple[int, int]]:
    """Rows of both tasks with the same clean prompt: discovery rows of this task, and any of the other; each row once."""
    if not examples.encoded.prompts and not encoded.prompts and encoded.n == examples.encoded.n:
        return [(int(i), int(i)) for i in examples.discovery]
    rows: dict[str, list[int]] = {}
    for j, prompt in reversed(list(enumerate(encoded.prompts))):
        rows.setdefault(prompt, []).append(j)
    prompts = examples.encoded.prompts
    pairs = [(int(i), rows[prompts[int(i)]].pop()) for i in examples.discovery if rows.get(prompts[int(i)])]
    if 2 * len(pairs) < len(examples.discovery):
        raise Invalid(
            f"{len(pairs)} of {len(examples.discovery)} discovery prompts of task {parameters.task!r} are also clean prompts of "
            f"{parameters.other_task!r}, and at least half are needed: it is not another corruption of the same prompts; "
            "compare two tasks with jaccard",
            {"matched": len(pairs), "discovery": len(examples.discovery)},
            code=ReasonCode.DIFFERENT_PROMPTS,
        )
    return pairs


def _limits(parameters: Stability) -> tuple[float, float]:
    return (-1.0, 1.0) if parameters.over_chance else (0.0, 1.0)


STABILITY = Property(
    "stability",
    Stability,
    estimate,
    0.0,
    1.0,
    "the same shared set is found again from other examples, templates, corruptions or by another method",
    "Jaccard index",
    limits=_limits,
    grows=False,
)
