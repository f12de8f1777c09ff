"""The examples of a task, their split, and the intact model on them. Steps are generators to be used with `yield from`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.units import Universe
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Ablate, Describe, Encode, Part, Steps, ask
from ..parameters import Parameters
from ..protocol import Claim
from .numeric_checks import check_finite

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Encoded, Outcome

    Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Examples:
    """A task's examples and their split: the row numbers of both sides."""

    encoded: Encoded
    discovery: Rows
    evaluation: Rows

    def groups(self, rows: Rows) -> list[str]:
        """The group of each of these rows."""
        return [self.encoded.groups[int(i)] for i in rows]

    @property
    def discovery_groups(self) -> list[str]:
        """The group of each discovery example."""
        return self.groups(self.discovery)

    @property
    def evaluation_groups(self) -> list[str]:
        """The group of each evaluation example."""
        return self.groups(self.evaluation)

    def as_dict(self) -> dict[str, Any]:
        """Counts, for the report."""
        return {
            "examples": self.encoded.n,
            "discovery": len(self.discovery),
            "evaluation": len(self.evaluation),
            **({} if self.encoded.first is None else {"examples_at_first": self.encoded.first}),
            "groups": len(set(self.encoded.groups)),
            "regenerated_pairs": self.encoded.regenerated,
            **({"task_notes": list(self.encoded.notes)} if self.encoded.notes else {}),
        }


def part(parameters: Parameters, which: str) -> Part:
    """One side of the claim's split, `discovery` or `evaluation`, for a request."""
    return Part(which, None if parameters.split == "in_sample" else float(parameters.split), parameters.split_seed)


def split_examples(claim: Claim, task: str) -> Steps[Examples]:
    """The task's examples and their split. An extended task keeps the discovery examples it had before.

    Raises `Invalid` for too few groups.
    """
    import numpy as np

    from ...stats.split import MIN_GROUPS, split_first

    parameters: Parameters = claim.parameters
    encoded = yield from ask(Encode(claim.model, claim.tasks[task]))
    if parameters.split == "in_sample":
        if len(set(encoded.groups)) < MIN_GROUPS:
            raise Invalid(
                f"{encoded.n} examples form {len(set(encoded.groups))} groups (templates, entities, prompts); "
                f"at least {MIN_GROUPS} are needed",
                {"n": encoded.n, "groups": len(set(encoded.groups)), "groups_needed": MIN_GROUPS},
                code=ReasonCode.TOO_FEW_GROUPS,
            )
        rows = np.arange(encoded.n)
        return Examples(encoded, rows, rows)
    discovery, evaluation = split_first(encoded.groups, encoded.first, float(parameters.split), parameters.split_seed)
    return Examples(encoded, discovery, evaluation)


def measure_intact(claim: Claim, task: str, examples: Examples) -> Steps[Outcome]:
    """The intact model on the evaluation examples, arrays [n]. Raises `Invalid` where it cannot do the task (the accuracy gate).

    Its accuracy must reach `min_accuracy` and, where answers can be guessed, lie clearly above chance.
    `min_accuracy: 0` switches both off.
    """
    from ...core.results import Outcome
    from ...stats.betting import grouped_mean_interval

    parameters: Parameters = claim.parameters
    evaluation = part(parameters, "evaluation")
    measured = yield from ask(Ablate(claim.model, claim.tasks[task], ((),), metric=parameters.metric, part=evaluation))
    outcome = Outcome(measured.correct[0], measured.metric[0], measured.log_prob[0])
    check_finite(outcome.metric, f"values of {parameters.metric} of the intact model on task {task!r}")
    accuracy = float(outcome.correct.mean())
    if accuracy < parameters.min_accuracy:
        raise Invalid(
            f"the intact model answers {int(outcome.correct.sum())} of {len(outcome.correct)} examples of task {task!r} correctly "
            f"({accuracy:.3f}, below min_accuracy {parameters.min_accuracy:g}): there is no behaviour to explain",
            {"accuracy": accuracy, "task": task, "n": len(outcome.correct)},
            code=ReasonCode.ACCURACY_BELOW_GATE,
        )
    chance = examples.encoded.chance
    if parameters.min_accuracy > 0 and chance > 0:
        _, (low, high), groups = grouped_mean_interval(outcome.correct, examples.evaluation_groups, parameters.confidence)
        if low <= chance:
            raise Invalid(
                f"the intact model's accuracy on task {task!r}, {accuracy:.3f} with {parameters.confidence:.0%} interval "
                f"[{low:.3f}, {high:.3f}] over {groups} groups, is not clearly above {chance:.3f}, which guessing or one constant answer "
                "reaches; more examples in more groups may settle it",
                {"accuracy": accuracy, "interval": [low, high], "chance": chance, "task": task, "groups": groups},
                code=ReasonCode.ACCURACY_NOT_ABOVE_CHANCE,
            )
    return outcome


def describe_model(claim: Claim) -> Steps[Universe]:
    """The model's universe."""
    description = yield from ask(Describe(claim.model))
    return description.universe


@dataclass(frozen=True)
class CompetentTask:
    """A task that the intact model can do: its examples, and the intact outcome on the evaluation examples, [n]."""

    name: str
    examples: Examples
    intact: Outcome

    @property
    def groups(self) -> list[str]:
        """The group of each evaluation example."""
        return self.examples.evaluation_groups

    def prompts(self, side: str) -> set[str]:
        """Digests of the clean prompts of one side of the split; empty where they are not known."""
        digests = self.examples.encoded.prompts
        return {digests[int(i)] for i in getattr(self.examples, side)} if digests else set()


def competent_task(claim: Claim, name: str) -> Steps[CompetentTask]:
    """A task's examples and the intact outcome. Raises `Invalid` as `split_examples` and `measure_intact`."""
    examples = yield from split_examples(claim, name)
    return CompetentTask(name, examples, (yield from measure_intact(claim, name, examples)))
