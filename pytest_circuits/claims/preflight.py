"""The pre-flight of a claim: from its tasks, and the model's shape where that is known, to what cannot come of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.units import Universe
from ..core.verdict import CERTIFIED, REFUTED, Bound
from ..errors import CircuitsError
from ..measurement import synthetic as invented
from ..measurement.executor import Executor
from ..measurement.incremental import unextended
from ..properties.preflight import PreflightContext
from ..stats.split import split_first
from ..tasks.base import Task
from .evaluation import Judgement
from .question import Looks, Question

Sides = tuple[int, int]


def forewarned(judgement: Judgement, lab: Executor, question: Question, bound: Bound, expect: str, others: Iterable[str] = ()) -> Judgement:
    """The judgement with the warnings that could have been given before, and `others`."""
    universe = None if judgement.model is None else judgement.model.universe
    return replace(judgement, warnings=(*judgement.warnings, *warnings(lab, question, bound, expect, universe), *others))


def warnings(lab: Executor, question: Question, bound: Bound, expect: str, universe: Universe | None) -> list[str]:
    """Why the claim cannot come out as it is expected to, or says little. Opens no model, and does not depend on what is stored.

    Tasks are taken as they are, before a tokenizer replaces pairs of them. Nothing where a task cannot be read: that is told elsewhere.
    """
    looks = Looks.of(question)
    prop, claim = looks.at(len(looks.tasks) - 1).claim()
    parameters = claim.parameters
    found, groups, examples, most = [], {}, {}, {}
    split = getattr(parameters, "split", None)
    for name, source in claim.tasks.items() if split is not None else ():
        try:
            first = len(lab.task(unextended(source))) if source.grown else None
            task = lab.task(source)
            groups[name], examples[name] = _sides(task, first, split, parameters.split_seed)
            if task.most_groups is not None:
                every = len(set(invented.encoded(task).groups))
                most[name] = max(groups[name][1], groups[name][1] * task.most_groups // every)
        except CircuitsError:
            continue
    context = PreflightContext(bound, parameters.confidence, groups, examples, universe, most)
    for warning in prop.warnings(question.parameters, context):
        if warning.verdict is None or (expect in (CERTIFIED, REFUTED) and warning.verdict == expect):
            found.append(warning.text)
    return list(dict.fromkeys(found))


def _sides(task: Task, first: int | None, split: object, seed: int) -> tuple[Sides, Sides]:
    """Numbers of groups, and of examples, on the discovery and on the evaluation side."""
    names = invented.encoded(task).groups
    if split == "in_sample":
        return (len(set(names)),) * 2, (len(names),) * 2
    rows = split_first(names, first, float(str(split)), seed)
    groups, examples = ([len({names[int(i)] for i in side}) for side in rows], [len(side) for side in rows])
    return (groups[0], groups[1]), (examples[0], examples[1])
