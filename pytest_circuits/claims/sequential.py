"""Sequential sampling: a claim that the first examples leave open is judged again with more, up to `max_n`.

The numbers of examples are laid down before anything is measured: n, 2n, 4n …, max_n. The error is spent in equal parts over these planned
looks (Bonferroni: each interval has confidence 1 − (1 − confidence)/looks), so that all of them hold together and it does no harm
to stop at the first that settles the claim, or to go on. With few looks this is cheaper than confidence sequences, which hold at every
single example: for betting intervals of 64 to 1024 examples it costs 11–24% of width, a sequence 30–100% for means between 0.5 and
0.8 (less than this only for means within 0.05 of the range's ends).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.sources import TaskSource

if TYPE_CHECKING:
    from ..properties.protocol import Property

Tasks = Mapping[str, TaskSource]


def sizes(n: int, max_n: int) -> list[int]:
    """n, 2n, 4n … and max_n; n alone where max_n is no more."""
    found = [n]
    while found[-1] < max_n:
        found.append(min(2 * found[-1], max_n))
    return found


def planned(prop: Property, parameters: Any, tasks: Tasks) -> list[Tasks]:
    """The tasks of each look, those as they are first; a task that has reached `max_n` stays what it is."""
    if getattr(parameters, "max_n", None) is None or problem(prop, parameters, tasks):
        return [tasks]
    steps = {name: sizes(task.options["n"], parameters.max_n)[1:] for name, task in tasks.items()}
    count = max((len(found) for found in steps.values()), default=0)
    return [{name: replace(task, grown=tuple(steps[name][:k])) for name, task in tasks.items()} for k in range(count + 1)]


def spent(confidence: float, looks: int) -> float:
    """The confidence of the interval at each look, for all of them to hold with `confidence`."""
    return confidence if looks == 1 else 1 - (1 - confidence) / looks


def problem(prop: Property, parameters: Any, tasks: Tasks) -> str | None:
    """Why `max_n` is of no use to this claim, or None; None also where it is not given."""
    if getattr(parameters, "max_n", None) is None:
        return None
    if not prop.grows:
        return f"{prop.name} is estimated on discovery examples, and max_n adds evaluation examples only: raise the tasks' own n"
    wrong = in_sample(parameters) if prop.growth is None else prop.growth(parameters)
    if wrong:
        return wrong
    fixed = [task for task in tasks.values() if task.kind != "builtin" or not isinstance(task.options.get("n"), int)]
    if not fixed:
        return None
    names = ", ".join(repr(task.name) for task in fixed)
    of = {"file": "from a file", "loader": "from a loader", "fixture": "handed over ready-made"}.get(fixed[0].kind, "without a number n")
    return f"max_n needs tasks that make more prompts on demand, as built-in ones do, and {names} is {of}: leave max_n out"


def in_sample(parameters: Any) -> str | None:
    """Why a claim whose two sides of the split are the same examples has no use for more on one of them, or None."""
    if getattr(parameters, "split", None) != "in_sample":
        return None
    return "max_n adds evaluation examples, and split: in_sample has none of its own: give a share, or raise the tasks' own n"
