"""Why a claim has its verdict, from the reason's code and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...core.verdict import Verdict

Arguments = Mapping[str, Any]


def reason(verdict: Verdict) -> str:
    """Why a claim has its verdict, in one sentence; of a claim that an error made invalid, the error's message."""
    message = verdict.arguments.get("message")
    return _REASONS[verdict.code](verdict.arguments) if message is None else str(message)


def bound_text(bound: Mapping[str, Any]) -> str:
    """A bound as a phrase: `at least 0.4`, `within [0.9, 1.1]`. The mapping is as in a spec: one key."""
    ((key, value),) = bound.items()
    return f"within [{value[0]:g}, {value[1]:g}]" if key == "within" else f"{key.replace('_', ' ')} {value:g}"


def _measured(a: Arguments) -> str:
    low, high = a["interval"]
    return f"{a['estimate']:.3f} with {a['confidence']:.0%} interval [{low:.3f}, {high:.3f}]"


def _short(a: Arguments) -> str:
    low, high = a["interval"]
    return f"{a['estimate']:.3g} [{low:.3g}, {high:.3g}] (n={a['n']}, {a['confidence']:.0%})"


def _inside(a: Arguments) -> str:
    return f"{_measured(a)}: the whole interval is {bound_text(a['bound'])}"


def _misses(a: Arguments) -> str:
    return f"{_measured(a)}: the whole interval misses '{bound_text(a['bound'])}'"


def _straddles(a: Arguments) -> str:
    return f"{_measured(a)}: the interval straddles '{bound_text(a['bound'])}'; {_OUTLOOKS[a['outlook']](a)}"


def _not_finite(a: Arguments) -> str:
    return f"the estimate is not a finite number: {_short(a)}"


def _unsettled(a: Arguments) -> str:
    return f"{_short(a)}: {a['why']}"


def _counterexample(a: Arguments) -> str:
    return f"a counterexample among {a['searched']} examples: {a['counterexample']}"


def _no_counterexample(a: Arguments) -> str:
    return (
        f"no counterexample among {a['searched']} examples, which is a search and not a proof: with {a['confidence']:.0%} confidence "
        f"at most {a['fails_at_most']:.2%} of independent draws fail"
    )


_REASONS: dict[str, Callable[[Arguments], str]] = {
    "interval-inside-bound": _inside,
    "interval-misses-bound": _misses,
    "interval-straddles-bound": _straddles,
    "not-finite": _not_finite,
    "unsettled": _unsettled,
    "counterexample": _counterexample,
    "no-counterexample": _no_counterexample,
}


def _in_steps(a: Arguments) -> str:
    return "its ends move in steps, so the number of examples that would settle it is unknown: add prompts, or move the bound"


def _on_bound(a: Arguments) -> str:
    return "the estimate lies on the bound, so no affordable number of examples is likely to settle it"


def _near_bound(a: Arguments) -> str:
    return f"the estimate is so close to the bound that settling it would take about {a['times']} times as many examples: move the bound"


def _more_examples(a: Arguments) -> str:
    return f"about {a['needed']} {_unit(a)} instead of {a['now']} would probably settle it"


def _task_exhausted(a: Arguments) -> str:
    return f"{_more_examples(a)}, but task {a['task']!r} has only {a['available']} for this: widen the task, or move the bound"


def _unit(a: Arguments) -> str:
    return "groups of prompts" if a["unit"] == "groups" else "examples"


_OUTLOOKS: dict[str, Callable[[Arguments], str]] = {
    "steps": _in_steps,
    "on-bound": _on_bound,
    "near-bound": _near_bound,
    "more-examples": _more_examples,
    "task-exhausted": _task_exhausted,
}
