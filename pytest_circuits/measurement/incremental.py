"""Measurements on a task that was extended, as those on the task before and those on the examples that were added.

What was measured before is read back, and only the new examples are measured; discovery examples come from the very measurements that
they came from before, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..ablation import ABLATIONS
from ..core.results import Attribution, Conservation, Outcome
from ..core.sources import TaskSource
from .requests import Ablate, AnyRequest, Attribute, Describe, Encode, MeasureNorms, Part, Sweep

ONE_BY_ONE = ("constant", "activation", "corrupt", "donor")
"""Where an ablation's values come from that do not depend on which other examples are ablated, even without reference examples."""


def unextended(source: TaskSource) -> TaskSource:
    """The task as it was at first."""
    return replace(source, grown=())


def pieces(request: AnyRequest, first: int) -> list[AnyRequest]:
    """Requests whose results, put together by `joined`, are the result of `request`; `first` is how many examples the task had at first.

    The request itself where its task was not extended, or where its result is no list of examples' results (a mean over them).
    """
    if isinstance(request, (Describe, Encode)) or not request.task.grown:
        return [request]
    before: Any = replace(request, task=unextended(request.task))
    if not _grows(request.part):
        return [before]
    mixed = isinstance(request, MeasureNorms) or (isinstance(request, Attribute) and request.reduce is not None)
    if isinstance(request, (Ablate, Sweep)):
        mixed = ABLATIONS.fact(request.kind, "values") not in ONE_BY_ONE if request.reference is None else _grows(request.reference)
    if mixed:
        return [request]
    found, since = [before], first
    for i, size in enumerate(request.task.grown):
        task = replace(request.task, grown=request.task.grown[: i + 1])
        found.append(replace(request, task=task, part=replace(request.part, since=since)))
        since = size
    return found


def joined(results: Sequence[Any]) -> Any:
    """One result for the examples of all of them, in order."""
    head = results[0]
    if len(results) == 1:
        return head
    if isinstance(head, Attribution):
        indices = None if head.indices is None else np.concatenate([one.indices for one in results])
        return replace(head, values=np.concatenate([one.values for one in results]), blocks=_blocks(results), indices=indices)
    if isinstance(head, Outcome):
        axis = 0 if type(head) is not Outcome or head.correct.ndim == 1 else 1
        arrays = {f.name: np.concatenate([getattr(one, f.name) for one in results], axis) for f in fields(Outcome) if f.name != "baseline"}
        return replace(head, baseline=None if head.baseline is None else joined([one.baseline for one in results]), **arrays)
    assert isinstance(head, Conservation)
    biases = None if head.biases is None else np.concatenate([one.biases for one in results])
    totals, metric = (np.concatenate([getattr(one, name) for one in results]) for name in ("totals", "metric"))
    return replace(head, totals=totals, metric=metric, biases=biases)


def _grows(part: Part) -> bool:
    """Whether further examples of the task belong to it."""
    return part.which != "discovery" or part.split is None


def _blocks(results: Sequence[Attribution]) -> Any:
    """Examples of different measurements were not measured together."""
    found, start = [], 0
    for one in results:
        found.append(one.blocks + start)
        start += int(one.blocks.max(initial=-1)) + 1
    return np.concatenate(found)
