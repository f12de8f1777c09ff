"""Probabilities of answers and foils while a cluster of neurons is multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import Invalid, ReasonCode, TaskError
from ...measurement.requests import Ablate, Part, Steps, ask_all, freeze
from ..protocol import Claim
from ..steps.examples import Examples
from .steering_parameters import Steering

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Encoded, Outcome

    Table = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class SteeredProbabilities:
    """Probabilities by factor, [sets, n]. The first set is the cluster, the others are controls; factor 1 has the intact model only."""

    correct: dict[float, Table]
    answer: dict[float, Table]
    foils: dict[float, Table] | None

    def watched(self, watch: str) -> dict[float, Table]:
        """Those of the answer, or of the foils."""
        tables = self.answer if watch == "answer" else self.foils
        assert tables is not None
        return tables


def measure_probabilities(claim: Claim, task: str, sets_at: dict[float, Any], part: Part, foils: bool) -> Steps[SteeredProbabilities]:
    """Every set at every factor, with the foils' probabilities if the task has foils. Raises `Invalid` if it needs `foils` and has none."""
    import numpy as np

    def requests(metric: str) -> list[Ablate]:
        return [
            Ablate(claim.model, claim.tasks[task], ((),), metric=metric, part=part)
            if m == 1
            else Ablate(
                claim.model, claim.tasks[task], tuple(sets), "remove", "scale", "neuron", metric, part, options=freeze({"factor": m})
            )
            for m, sets in sets_at.items()
        ]

    with_foils = True
    try:
        outcomes: list[Outcome] = yield from ask_all(requests("foil_prob"))
    except TaskError as problem:
        if foils:
            raise Invalid(f"watch: foils needs a foil for each example of task {task!r}: {problem}", code=ReasonCode.NO_FOILS) from problem
        with_foils, outcomes = False, (yield from ask_all(requests("prob")))
    by_factor = dict(zip(sets_at, outcomes, strict=True))
    return SteeredProbabilities(
        {m: o.correct.astype(np.float64) for m, o in by_factor.items()},
        {m: np.exp(o.log_prob.astype(np.float64)) for m, o in by_factor.items()},
        {m: o.metric.astype(np.float64) for m, o in by_factor.items()} if with_foils else None,
    )


def common_prompts(split: Examples, other: Encoded, p: Steering) -> tuple[list[int], list[int]]:
    """Places of the evaluation examples whose clean prompts the other task has too, and its rows. Raises `Invalid` for too few groups."""
    from ...stats.split import MIN_GROUPS

    row_of: dict[str, int] = {}
    for row, prompt in enumerate(other.prompts):
        row_of.setdefault(prompt, row)
    rows = [i for i, row in enumerate(split.evaluation) if split.encoded.prompts[int(row)] in row_of]
    groups = len(set(split.groups(split.evaluation[rows]))) if rows else 0
    if groups < MIN_GROUPS:
        raise Invalid(
            f"{len(rows)} of {len(split.evaluation)} evaluation examples of task {p.task!r}, in {groups} groups, have a clean prompt that "
            f"task {p.watch_task!r} has too; at least {MIN_GROUPS} groups are needed: give both the same seed, n and templates",
            {"common": len(rows), "groups": groups, "groups_needed": MIN_GROUPS},
            code=ReasonCode.DIFFERENT_PROMPTS,
        )
    return rows, [row_of[split.encoded.prompts[int(split.evaluation[i])]] for i in rows]
