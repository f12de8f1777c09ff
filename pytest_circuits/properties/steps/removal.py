"""Ablation of component sets on a task's evaluation examples, and when two tasks can be compared that way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import Invalid, ReasonCode
from ...measurement.requests import Ablate, Steps, freeze
from ..protocol import Claim
from .examples import CompetentTask, competent_task, part
from .shared_sets import DiscoveredTask, SharedSetTask, discover_shared_set

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Outcome

    Values = np.ndarray[Any, np.dtype[np.float64]]

MAX_COMMON_PROMPTS = 0.1
"""Largest share of prompts that two tasks, or discovery and evaluation, may have in common."""


def discover_removable_set(claim: Claim, name: str) -> Steps[SharedSetTask]:
    """A task and its shared set. Raises `Invalid` as `competent_task` and `discover_shared_set`, and for a set of all components."""
    task = yield from competent_task(claim, name)
    discovered = yield from discover_shared_set(claim, task)
    size = len(discovered.shared)
    if size == len(discovered.circuits.units):
        raise Invalid(
            f"the shared set of task {name!r} is all {size} components: removing it leaves no model whose answers would say "
            "anything; lower size or raise p",
            {"task": name, "size": size},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    return discovered


def ablation_request(claim: Claim, task: str, sets: Iterable[Sequence[str]], mode: str = "remove") -> Ablate:
    """The request for removing, or keeping (`mode: keep`), each of these component sets on the evaluation examples of a task."""
    parameters = claim.parameters
    return Ablate(
        claim.model, claim.tasks[task], tuple(map(tuple, sets)), mode, parameters.ablation, "component", parameters.metric,
        part(parameters, "evaluation"), part(parameters, "discovery"), freeze(parameters.ablation_options),
    )  # fmt: skip


def accuracy_drop(intact: Outcome, removed: Outcome) -> Values:
    """What removal costs on each example: correct before minus correct after, −1, 0 or 1; [n]."""
    cost: Values = intact.correct.astype(float) - removed.correct[0]
    return cost


def check_distinct_prompts(tasks: Sequence[CompetentTask], consequence: str = "so they are not independent") -> None:
    """Raise `Invalid` where two of the tasks share more than a tenth of their clean prompts."""
    for i, task in enumerate(tasks):
        for other in tasks[:i]:
            common = (task.prompts("discovery") | task.prompts("evaluation")) & (other.prompts("discovery") | other.prompts("evaluation"))
            if len(common) > MAX_COMMON_PROMPTS * min(task.examples.encoded.n, other.examples.encoded.n):
                raise Invalid(
                    f"tasks {other.name!r} and {task.name!r} have {len(common)} clean prompts in common, {consequence}; "
                    "name tasks without common prompts",
                    {"common_prompts": len(common), "tasks": [other.name, task.name]},
                    code=ReasonCode.SAME_PROMPTS,
                )


def check_unseen_prompts(source: DiscoveredTask, task: CompetentTask, split: Any) -> None:
    """Raise `Invalid` where the set of `source` would be evaluated on prompts it was discovered on; `split: in_sample` allows that."""
    seen = source.prompts("discovery") & task.prompts("evaluation")
    evaluation = len(task.examples.evaluation)
    if split != "in_sample" and len(seen) > MAX_COMMON_PROMPTS * evaluation:
        raise Invalid(
            f"{len(seen)} of {evaluation} evaluation prompts of task {task.name!r} are among the discovery prompts of "
            f"{source.name!r}, so its set is not evaluated on new prompts; name tasks without common prompts, or use split: in_sample",
            {"common_prompts": len(seen), "evaluation": evaluation},
            code=ReasonCode.SAME_PROMPTS,
        )
