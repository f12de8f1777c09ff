"""Steps that several properties share. Each is a generator to be used with `yield from`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ...core.shares import Size, needed
from ...core.units import Universe, head_mlp_split, per_layer
from ...errors import Invalid
from ...measurement.requests import ALL, Ablate, Attribute, Describe, Encode, Part, Steps, ask, freeze
from ..parameters import CircuitParameters, Parameters
from ..protocol import Claim
from .finite import check_finite

if TYPE_CHECKING:
    import numpy as np

    from ...core.results import Attribution, CircuitSet, Encoded, Outcome

    Rows = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Examples:
    """A task's examples, split: row numbers of both sides, and each row's group."""

    encoded: Encoded
    discovery: Rows
    evaluation: Rows

    def groups(self, rows: Rows) -> list[str]:
        """The group of each of these rows."""
        return [self.encoded.groups[int(i)] for i in rows]

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


def part(p: Parameters, which: str) -> Part:
    """One side of the claim's split, for a request."""
    return Part(which, None if p.split == "in_sample" else float(p.split), p.split_seed)


def examples(claim: Claim, task: str) -> Steps[Examples]:
    """The task's examples and their split; of a task that was extended, discovery examples are those that it had before."""
    import numpy as np

    from ...stats.split import MIN_GROUPS, split_first

    p = claim.parameters
    encoded = yield from ask(Encode(claim.model, claim.tasks[task]))
    if p.split == "in_sample":
        if len(set(encoded.groups)) < MIN_GROUPS:
            raise Invalid(
                f"{encoded.n} examples form {len(set(encoded.groups))} groups (templates, entities, prompts); "
                f"at least {MIN_GROUPS} are needed",
                {"n": encoded.n, "groups": len(set(encoded.groups)), "groups_needed": MIN_GROUPS},
            )
        every = np.arange(encoded.n)
        return Examples(encoded, every, every)
    discovery, evaluation = split_first(encoded.groups, encoded.first, float(p.split), p.split_seed)
    return Examples(encoded, discovery, evaluation)


def intact(claim: Claim, task: str, found: Examples) -> Steps[Outcome]:
    """The intact model on the evaluation examples, arrays [n]; `Invalid` when it cannot do the task (the competence gate).

    It must reach `min_accuracy`, and, where answer and foils are few enough to guess, be credibly better than guessing.
    `min_accuracy: 0` switches both off.
    """
    from ...core.results import Outcome
    from ...stats.betting import grouped_mean_interval

    p = claim.parameters
    many = yield from ask(Ablate(claim.model, claim.tasks[task], ((),), metric=p.metric, part=part(p, "evaluation")))
    outcome = Outcome(many.correct[0], many.metric[0], many.log_prob[0])
    check_finite(outcome.metric, f"values of {p.metric} of the intact model on task {task!r}")
    accuracy = float(outcome.correct.mean())
    if accuracy < p.min_accuracy:
        raise Invalid(
            f"the intact model answers {int(outcome.correct.sum())} of {len(outcome.correct)} examples of task {task!r} correctly "
            f"({accuracy:.3f}, below min_accuracy {p.min_accuracy:g}): there is no behaviour to explain",
            {"accuracy": accuracy, "task": task, "n": len(outcome.correct)},
        )
    chance = found.encoded.chance
    if p.min_accuracy > 0 and chance > 0:
        _, (low, high), groups = grouped_mean_interval(outcome.correct, found.groups(found.evaluation), p.confidence)
        if low <= chance:
            raise Invalid(
                f"the intact model's accuracy on task {task!r}, {accuracy:.3f} with {p.confidence:.0%} interval [{low:.3f}, {high:.3f}] "
                f"over {groups} groups, is not clearly above {chance:.3f}, which guessing or always giving one answer reaches, "
                "so there may be no behaviour to explain; "
                "with more examples in more groups it could be told",
                {"accuracy": accuracy, "interval": [low, high], "chance": chance, "task": task, "groups": groups},
            )
    return outcome


def describe(claim: Claim) -> Steps[Universe]:
    """The model's universe."""
    description = yield from ask(Describe(claim.model))
    universe: Universe = description.universe
    return universe


def attributed(claim: Claim, task: str, p: CircuitParameters | None = None) -> Steps[Attribution]:
    """Scores of all examples of a task, `values` [n, n_units]; with `contrast`, how far each unit stands out from the other tasks, signed.

    Raises `Invalid` as `contrast.against`, and for scores that are not finite.
    """
    from .contrast import against

    p = p or claim.parameters
    assert p is not None
    if p.contrast:
        found: Attribution = yield from against(claim, task, p)
        return found
    plain = yield from ask(scores_of(claim, task, p))
    check_finite(plain.values, f"{p.attribution} scores of task {task!r}")
    return plain


def scores_of(claim: Claim, task: str, p: CircuitParameters) -> Attribute:
    """The request for the attribution scores of all examples of a task."""
    return Attribute(claim.model, claim.tasks[task], p.attribution, "component", p.metric, ALL, None, freeze(p.attribution_options))


def chosen(attribution: Attribution, p: CircuitParameters) -> CircuitSet:
    """The circuit of each row of scores, by `size` or `threshold`; contrastive scores count only where they are positive."""
    if p.contrast:
        attribution = replace(attribution, values=attribution.values.clip(min=0))
    return attribution.circuits(p.size, p.rounding) if p.threshold is None else attribution.circuits_above(p.threshold)


def selected(attribution: Attribution, p: CircuitParameters, task: str) -> CircuitSet:
    """`chosen`, or `Invalid` where a circuit would be all components, or no example has one."""
    units = len(attribution.units)
    if p.threshold is None and Size.parse(p.size).of(units, p.rounding) == units:
        raise Invalid(f"a circuit of size {p.size} is all {units} components: nothing could fail to be in it", {"universe": units})
    found = chosen(attribution, p)
    if found.members.all():
        raise Invalid(
            f"threshold {p.threshold:g} puts all {units} components into the circuit of every example: nothing could fail to be in it; "
            "raise threshold",
            {"universe": units, "threshold": p.threshold},
        )
    if not found.members.any():
        raise _no_circuits(attribution, p, task)
    return found


def _no_circuits(attribution: Attribution, p: CircuitParameters, task: str) -> Invalid:
    scores = attribution.values.clip(min=0) if p.contrast else abs(attribution.values)
    if p.threshold is not None and scores.any():
        totals = scores.sum(1, keepdims=True)
        most = float((scores / totals.clip(min=1e-30)).max())
        return Invalid(
            f"no component has {p.threshold:g} of the sum of scores on any example of task {task!r}: the largest share is {most:.3g}. "
            "Lower threshold",
            {"task": task, "threshold": p.threshold, "largest_share": most},
        )
    if p.contrast:
        return Invalid(
            f"no component stands out on any example of task {task!r} against {', '.join(p.contrast)} (by {p.contrast_by}), "
            "so no example has a contrastive circuit",
            {"task": task, "contrast": list(p.contrast)},
        )
    return Invalid(f"all {p.attribution} scores of task {task!r} are zero, so no example has a circuit", {"task": task})


def circuits(claim: Claim, task: str, p: CircuitParameters | None = None) -> Steps[CircuitSet]:
    """Per-example circuits of all examples of a task. `Invalid` when no example has one."""
    p = p or claim.parameters
    assert p is not None
    attribution = yield from attributed(claim, task, p)
    return selected(attribution, p, task)


def check_share(p: float, n: int) -> None:
    """A component of one single circuit is shared by nobody. Raises `Invalid` where P·n is no more than 1."""
    if n > 1 and needed(p, n) < 2:
        raise Invalid(
            f"p: {p:g} of {n} discovery examples is a single one, so every component of any circuit would count as shared; raise p",
            {"p": p, "discovery": n},
        )


def set_details(names: Sequence[str], universe: Universe) -> dict[str, Any]:
    """What a reader wants to know of a component set."""
    return {"units": list(names), "size": len(names), **head_mlp_split(names), "per_layer": per_layer(names, universe.layers)}


def empty_set(p: Any, task: str, most: int, n: int) -> Invalid:
    """The refusal for an empty S_P, with the arithmetic."""
    return Invalid(
        f"the shared set of task {task!r} is empty: no component is in {needed(p.p, n)} of {n} circuits (P = {p.p:g}); "
        f"the most frequent one is in {most}. Lower p or {'raise size' if p.threshold is None else 'lower threshold'}",
        {"task": task, "needed": needed(p.p, n), "discovery": n, "most_frequent_count": most},
    )
