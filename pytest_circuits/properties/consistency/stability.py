"""Stability: is the same shared set found again under another choice that should not matter?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from ...core.units import Universe, is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Encode, Steps, ask
from ..parameters import CircuitParameters, MethodName, Options, Share, TaskName, check_method
from ..protocol import Claim, Property
from ..steps.examples import Examples, check_share, circuits, describe, empty_set, examples, intact, set_details
from ..steps.removal import Step, set_overlap, shown
from ..steps.shared_sets import AT_ONE

if TYPE_CHECKING:
    from ...core.results import CircuitSet

_NEEDS = {"method": "other", "corruption": "other_task"}


class Stability(CircuitParameters):
    """Jaccard of the shared set S_P with the one that is found when one choice is changed (`under`).

    `resampling`: S_P of two disjoint random halves of the discovery groups, mean over `repeats` splits; halves have half of the
    examples, so it errs low. `template`: S_P of the examples of one group (a template, an entity) against S_P of all other
    groups, mean over the groups with at least `least` discovery examples. `method`: S_P by `attribution` against S_P by `other`, on
    the same examples.
    `corruption`: S_P of `task` against S_P of `other_task`, which has the same clean prompts and other corrupt ones; prompts
    are matched. Range [0, 1]; two empty sets agree in nothing (0). `over_chance`: minus the mean Jaccard of random sets with as many
    heads and MLPs, range [−1, 1]. Invalid: an empty S_P, an accuracy below the gate, prompts that do not match, the very same
    prompt pairs, too few groups. At p: 1 inconclusive, as for jaccard. Interval: bias-corrected bootstrap over discovery
    groups, both sets found anew in each resample; approximate.
    """

    task: TaskName
    under: Annotated[Literal["resampling", "template", "method", "corruption"], Field(description="what is changed")]
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    other: Annotated[MethodName | None, Field(description="under: method: the other attribution method")] = None
    other_options: Annotated[Options, Field(description="options of the other attribution method")] = Field(default_factory=dict)
    other_task: Annotated[
        TaskName | None,
        Field(json_schema_extra={"circuits": "task"}, description="under: corruption: the same prompts, otherwise corrupted"),
    ] = None
    over_chance: Annotated[bool, Field(description="subtract the mean Jaccard of random sets with as many heads and MLPs")] = False
    repeats: Annotated[int, Field(ge=1, le=200, description="under: resampling: random splits into halves")] = 20
    least: Annotated[int, Field(ge=2, description="under: template: discovery examples that a group needs for a set of its own")] = 5
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000

    @model_validator(mode="after")
    def _fits(self) -> Stability:
        for under, name in _NEEDS.items():
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
    """The statistic to be bootstrapped over `groups` groups, and what it compares on the data as they are."""

    statistic: Callable[[Any], Any]
    groups: int
    n: int
    told: list[str]
    details: dict[str, Any] = field(default_factory=dict)


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the shared set as usual, then again under the other choice; bootstrap their overlap."""
    from ...stats.bootstrap import bootstrap_interval

    p: Stability = claim.parameters
    universe = yield from describe(claim)
    found = yield from examples(claim, p.task)
    base = yield from intact(claim, p.task, found)
    every = yield from circuits(claim, p.task)
    discovery = every.take(found.discovery)
    check_share(p.p, len(discovery))
    shared = discovery.shared(p.p)
    if not shared:
        raise empty_set(p, p.task, int(discovery.counts.max()), len(discovery))
    labels = ["mlp" if is_mlp(unit) else "head" for unit in every.units] if p.over_chance else None
    if p.under in _NEEDS:
        made = yield from _found_otherwise(claim, found, every, labels, universe)
    else:
        made = _among_groups(p, discovery, found.groups(found.discovery), labels)
    value, interval, parts = bootstrap_interval(
        made.statistic, [made.groups], p.confidence, 0, p.resamples, lowest=-1.0 if p.over_chance else 0.0, highest=1.0
    )
    details = {
        "under": p.under,
        "shared_set": set_details(shared, universe),
        "over_chance": p.over_chance,
        "accuracy": base.accuracy,
        "groups_compared": made.groups,
        "bootstrap": parts,
        **made.details,
        **found.as_dict(),
        "notes": [f"shared set of {len(discovery)} discovery examples of {p.task}: {shown(shared)}", *made.told, *_chance_told(p)],
    }
    unsettled = AT_ONE if p.p == 1 else None
    return Estimate(value, interval, made.n, p.confidence, "bias-corrected bootstrap over groups", "stability", details, unsettled)


def _chance_told(p: Stability) -> list[str]:
    return ["minus what random sets with as many heads and MLPs would overlap"] if p.over_chance else []


def _among_groups(p: Stability, discovery: CircuitSet, groups: list[str], labels: list[str] | None) -> _Comparison:
    """Resampling and template: sets of parts of the discovery examples."""
    import numpy as np

    from ...stats import overlap
    from ...stats.groups import group_codes

    tallies, sizes = overlap.group_tallies(discovery.members, groups)
    what = "overlap" if labels is None else "overlap over chance"
    names = group_codes(groups)[1]
    ones = np.ones((1, len(sizes)), np.int64)
    if p.under == "resampling":
        first = overlap.halves(len(sizes), p.repeats)
        check_share(p.p, int(min((first @ sizes).min(), ((1 - first) @ sizes).min())))
        each = [float(overlap.half_rows(ones, tallies, sizes, p.p, one[None], labels)[0]) for one in first]
        return _Comparison(
            lambda counts: overlap.half_rows(counts, tallies, sizes, p.p, first, labels), len(sizes), len(discovery),
            [f"found again in two halves of its {len(sizes)} groups, {p.repeats} splits: {what} {min(each):.2f} to {max(each):.2f}"],
            {"by_split": each},
        )  # fmt: skip
    which = [g for g, size in enumerate(sizes) if size >= p.least]
    if len(which) < 2:
        raise Invalid(
            f"{len(which)} of {len(sizes)} groups have at least {p.least} discovery examples, and at least 2 must have a set of their own; "
            "give the task groups (templates) of several examples, lower least, or use under: resampling",
            {"groups": len(sizes), "large_enough": len(which), "least": p.least},
        )
    check_share(p.p, int(sizes[which].min()))
    alone = {names[g]: float(overlap.alone_rows(ones, tallies, sizes, p.p, [g], labels)[0]) for g in which}
    if not overlap.shared_rows(np.eye(len(sizes), dtype=np.int64)[which], tallies, sizes, p.p).any():
        raise Invalid(
            f"no group of at least {p.least} discovery examples has a shared set of its own (P = {p.p:g}), so none can be compared; "
            "lower p, or use under: resampling",
            {"groups": len(which), "p": p.p},
        )
    worst = min(alone, key=lambda name: alone[name])
    return _Comparison(
        lambda counts: overlap.alone_rows(counts, tallies, sizes, p.p, which, labels), len(sizes), len(discovery),
        [f"{len(which)} of {len(sizes)} groups compared with all others; least {what} {alone[worst]:.2f}, of {worst!r}"],
        {"by_group": alone},
    )  # fmt: skip


def _found_otherwise(claim: Claim, found: Examples, every: CircuitSet, labels: list[str] | None, universe: Universe) -> Step[_Comparison]:
    """Method and corruption: the same prompts, and a second circuit of each."""
    from ...stats import overlap

    p: Stability = claim.parameters
    if p.under == "method":
        second = yield from circuits(claim, p.task, p.model_copy(update={"attribution": p.other, "attribution_options": p.other_options}))
        pairs, what = [(int(i), int(i)) for i in found.discovery], f"by {p.other} instead of {p.attribution}"
    else:
        assert p.other_task is not None
        encoded = yield from ask(Encode(claim.model, claim.tasks[p.other_task]))
        second = yield from circuits(claim, p.other_task)
        pairs, what = _matched(p, found, encoded), f"with the corrupt prompts of {p.other_task}"
        if encoded.prompts and encoded.digest == found.encoded.digest:
            raise Invalid(
                f"tasks {p.task!r} and {p.other_task!r} are the same prompt pairs, so nothing was changed; name another corruption",
                {"digest": encoded.digest},
            )
    here, there = every.take([i for i, _ in pairs]), second.take([j for _, j in pairs])
    check_share(p.p, len(here))
    groups = [found.encoded.groups[i] for i, _ in pairs]
    (a, sizes), (b, _) = overlap.group_tallies(here.members, groups), overlap.group_tallies(there.members, groups)
    first, other = here.shared(p.p), there.shared(p.p)
    if not first:
        raise empty_set(p, p.task, int(here.counts.max()), len(here))

    def statistic(counts: Any) -> Any:
        return overlap.agreement_rows(overlap.shared_rows(counts, a, sizes, p.p), overlap.shared_rows(counts, b, sizes, p.p), labels)

    common = set_overlap(first, other)
    told = [
        f"found {what}: {shown(other)}, {len(common['both'])} in common (Jaccard {common['jaccard']:.2f})"
        if other
        else f"found {what}: no shared set at all, so nothing is in common"
    ]
    return _Comparison(
        statistic, len(sizes), len(pairs), told, {"other_set": set_details(other, universe), "overlap": common, "matched": len(pairs)}
    )


def _matched(p: Stability, found: Examples, encoded: Any) -> list[tuple[int, int]]:
    """Rows of both tasks with the same clean prompt: discovery rows of this one, and any of the other; each row once."""
    if not found.encoded.prompts and not encoded.prompts and encoded.n == found.encoded.n:
        return [(int(i), int(i)) for i in found.discovery]
    rows: dict[str, list[int]] = {}
    for j, prompt in reversed(list(enumerate(encoded.prompts))):
        rows.setdefault(prompt, []).append(j)
    known = found.encoded.prompts
    pairs = [(int(i), rows[known[int(i)]].pop()) for i in found.discovery if rows.get(known[int(i)])]
    if 2 * len(pairs) < len(found.discovery):
        raise Invalid(
            f"{len(pairs)} of {len(found.discovery)} discovery prompts of task {p.task!r} are also clean prompts of {p.other_task!r}, "
            "and at least half are needed: it is no other corruption of the same prompts; compare two tasks with jaccard",
            {"matched": len(pairs), "discovery": len(found.discovery)},
        )
    return pairs


def _limits(p: Stability) -> tuple[float, float]:
    return (-1.0, 1.0) if p.over_chance else (0.0, 1.0)


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
