"""Steps of properties that remove the shared sets of several tasks and look at what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field, model_validator

from ...core.units import head_mlp_split
from ...errors import Invalid
from ...measurement.requests import Ablate, Steps, freeze
from ..parameters import AblationName, CircuitParameters, Options, Share, check_ablation
from ..protocol import Claim
from .examples import Examples, check_share, circuits, empty_set, examples, intact, part

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import CircuitSet, Outcome

    Values = np.ndarray[Any, np.dtype[np.float64]]

T = TypeVar("T")
Step = Steps[T]
Interval = tuple[float, tuple[float, float]]

COMMON = 0.1
"""Largest share of prompts that two tasks, or discovery and evaluation, may have in common."""
SHOWN = 12
"""Unit names shown of a set."""


class RemovalParameters(CircuitParameters):
    """Parameters of properties that find shared sets and remove them."""

    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    ablation: Annotated[AblationName, Field(description="what removed components are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts, positions")] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _ablation_fits(self) -> RemovalParameters:
        check_ablation(self.ablation, self.ablation_options)
        return self


@dataclass(frozen=True)
class CompetentTask:
    """A task that the intact model can do: its examples, and the intact outcome on the evaluation examples, [n]."""

    task: str
    found: Examples
    base: Outcome

    @property
    def groups(self) -> list[str]:
        """The group of each evaluation example."""
        return self.found.groups(self.found.evaluation)

    def prompts(self, side: str) -> set[str]:
        """Digests of the clean prompts of one side of the split; none where they are not known."""
        known = self.found.encoded.prompts
        return {known[int(i)] for i in getattr(self.found, side)} if known else set()


@dataclass(frozen=True)
class DiscoveredTask(CompetentTask):
    """With the circuits of its discovery examples and their shared set."""

    discovery: CircuitSet
    shared: tuple[str, ...]


def able(claim: Claim, task: str) -> Step[CompetentTask]:
    """Examples and intact outcome; `Invalid` where the model cannot do the task."""
    found = yield from examples(claim, task)
    return CompetentTask(task, found, (yield from intact(claim, task, found)))


def discovered(claim: Claim, task: str) -> Step[DiscoveredTask]:
    """The same, and S_P; `Invalid` also where it is empty, or everything."""
    p = claim.parameters
    here = yield from able(claim, task)
    discovery = (yield from circuits(claim, task)).take(here.found.discovery)
    check_share(p.p, len(discovery))
    shared = discovery.shared(p.p)
    if not shared:
        raise empty_set(p, task, int(discovery.counts.max()), len(discovery))
    if len(shared) == len(discovery.units):
        raise Invalid(
            f"the shared set of task {task!r} is all {len(shared)} components: removing it leaves no model whose answers would say "
            "anything; lower size or raise p",
            {"task": task, "size": len(shared)},
        )
    return DiscoveredTask(task, here.found, here.base, discovery, shared)


def attempt(step: Step[T]) -> Step[T | Invalid]:
    """A step whose result is only told, not judged: where it is invalid, the reason takes its place."""
    try:
        return (yield from step)
    except Invalid as problem:
        return problem


def removal(claim: Claim, task: str, sets: Iterable[Sequence[str]]) -> Ablate:
    """The evaluation examples of a task with each of these sets removed."""
    p: RemovalParameters = claim.parameters
    return Ablate(
        claim.model, claim.tasks[task], tuple(map(tuple, sets)), "remove", p.ablation, "component", p.metric,
        part(p, "evaluation"), part(p, "discovery"), freeze(p.ablation_options),
    )  # fmt: skip


def drop(base: Outcome, removed: Outcome) -> Values:
    """What removal costs on each example: correct before minus correct after, −1, 0 or 1; [n]."""
    cost: Values = base.correct.astype(float) - removed.correct[0]
    return cost


def apart(sides: Sequence[CompetentTask], why: str = "so they are not independent") -> None:
    """`Invalid` where two tasks are, wholly or in part, the same prompts."""
    for i, a in enumerate(sides):
        for b in sides[:i]:
            common = (a.prompts("discovery") | a.prompts("evaluation")) & (b.prompts("discovery") | b.prompts("evaluation"))
            if len(common) > COMMON * min(a.found.encoded.n, b.found.encoded.n):
                raise Invalid(
                    f"tasks {b.task!r} and {a.task!r} have {len(common)} clean prompts in common, {why}; name tasks without common prompts",
                    {"common_prompts": len(common), "tasks": [b.task, a.task]},
                )


def unseen(there: DiscoveredTask, here: CompetentTask, split: Any) -> None:
    """`Invalid` where a set was found on prompts that it is evaluated on; in-sample claims ask for just that."""
    seen = there.prompts("discovery") & here.prompts("evaluation")
    if split != "in_sample" and len(seen) > COMMON * len(here.found.evaluation):
        raise Invalid(
            f"{len(seen)} of {len(here.found.evaluation)} evaluation prompts of task {here.task!r} are among the discovery prompts of "
            f"{there.task!r}, so its set is not evaluated on new prompts; name tasks without common prompts, or use split: in_sample",
            {"common_prompts": len(seen), "evaluation": len(here.found.evaluation)},
        )


def shown(units: Sequence[str]) -> str:
    """A set in words: its members, shortened, and how many heads and MLPs it has."""
    more = f" and {len(units) - SHOWN} more" if len(units) > SHOWN else ""
    types = head_mlp_split(units)
    return f"{{{', '.join(units[:SHOWN])}{more}}} ({types['heads']} heads, {types['mlps']} MLPs)"


def set_overlap(a: Sequence[str], b: Sequence[str]) -> dict[str, Any]:
    """What two sets, not both empty, have in common."""
    both = [u for u in a if u in set(b)]
    union = len(set(a) | set(b))
    shares = {"share_of_first": len(both) / max(1, len(a)), "share_of_second": len(both) / max(1, len(b))}
    return {"both": both, "jaccard": len(both) / union, **shares}
