"""Accuracy of the intact model: can it do the task at all?"""

from __future__ import annotations

from typing import Any

from ...core.verdict import Estimate
from ...measurement.requests import Ablate, Steps, ask
from ..parameters import Parameters, TaskName
from ..payload import per_group
from ..preflight import best_case
from ..protocol import Claim, Property
from ..steps.examples import part, split_examples
from ..steps.numeric_checks import check_finite

LISTED = 10
"""Groups named in the report."""


class Accuracy(Parameters):
    """The share of evaluation examples that the intact model answers correctly; every group has the same weight.

    With foils, an answer is correct if its logit is above those of all foils; without, if all answer tokens are the argmax,
    teacher-forced. Range [0, 1]. The accuracy gate does not apply: `min_accuracy` is ignored. With `split: in_sample` all examples count.
    The report adds the chance level, the spread over groups and the groups with most mistakes. Invalid: too few groups.
    Interval: betting, over groups.
    """

    task: TaskName


def estimate(claim: Claim) -> Steps[Estimate]:
    """Measure the intact model, as the accuracy gate of other claims does; average its correctness over groups."""
    from ...stats.betting import grouped_mean_interval

    parameters: Accuracy = claim.parameters
    examples = yield from split_examples(claim, parameters.task)
    evaluation = part(parameters, "evaluation")
    outcome = yield from ask(Ablate(claim.model, claim.tasks[parameters.task], ((),), metric=parameters.metric, part=evaluation))
    check_finite(outcome.metric[0], f"values of {parameters.metric} on task {parameters.task!r}")
    correct = outcome.correct[0]
    names = examples.evaluation_groups
    value, interval, count = grouped_mean_interval(correct, names, parameters.confidence)
    spread = _spread(correct, names)
    chance = examples.encoded.chance
    above = "clearly above" if interval[0] > chance else "not clearly above"
    guess = "nothing that can be guessed" if chance == 0 else f"{above} the {chance:.3f} that guessing or one constant answer reaches"
    details = {
        "correct": int(correct.sum()),
        "n": len(correct),
        "accuracy_over_examples": float(correct.mean()),
        "chance": chance,
        "groups_evaluated": count,
        "per_group": spread,
        "notes": [
            f"{int(correct.sum())} of {len(correct)} examples in {count} groups are answered correctly; {guess}",
            f"groups: {spread['all_correct']} without a mistake, {spread['none_correct']} without a correct answer, "
            f"standard deviation {spread['standard_deviation']:.3f}{_worst(spread)}",
        ],
        **examples.as_dict(),
    }
    payload = per_group(correct, names, 0.0, 1.0)
    return Estimate(
        value, interval, len(correct), parameters.confidence, "betting interval over groups", "accuracy", details, payload=payload
    )


def _spread(correct: Any, names: list[str]) -> dict[str, Any]:
    """How the accuracy differs between groups; `lowest` are those with mistakes, worst first."""
    from ...stats.groups import group_codes, group_means

    means = group_means(correct, names)[0]
    sizes = dict.fromkeys(group_codes(names)[1], 0)
    for name in names:
        sizes[name] += 1
    order = sorted(range(len(means)), key=lambda g: means[g])
    listed = [(name, g) for g in order[:LISTED] for name in [list(sizes)[g]] if means[g] < 1]
    return {
        "standard_deviation": float(means.std(ddof=1)) if len(means) > 1 else 0.0,
        "all_correct": int((means == 1).sum()),
        "none_correct": int((means == 0).sum()),
        "lowest": {name: round(float(means[g]), 4) for name, g in listed},
        "examples_of_lowest": {name: sizes[name] for name, _ in listed},
    }


def _worst(spread: dict[str, Any]) -> str:
    worst = [f"{name!r} {mean:.0%} of {spread['examples_of_lowest'][name]}" for name, mean in list(spread["lowest"].items())[:3]]
    return f"; lowest: {', '.join(worst)}" if worst else ""


ACCURACY = Property(
    "accuracy", Accuracy, estimate, 0.0, 1.0, "the intact model does the task", "share of examples", preflight=best_case(0, 1)
)
