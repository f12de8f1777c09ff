"""The pre-flight check: which claims cannot be settled, from their tasks and the model's shape, before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.claim import Claim
from ..core.units import Universe
from ..core.verdict import CERTIFIED, REFUTED
from ..errors import CircuitsError
from ..measurement.executor import Executor
from ..measurement.synthetic import encoded_task
from ..properties.preflight import PreflightContext
from ..stats.split import split_first
from ..tasks.base import Task
from .outcome import Evaluation
from .sequential import LookPlan, property_of

SplitSizes = tuple[int, int]


def with_warnings(evaluation: Evaluation, executor: Executor, claim: Claim, more: Iterable[str] = ()) -> Evaluation:
    """The evaluation with the warnings that could have been given before measuring, and `more`."""
    universe = None if evaluation.model is None else evaluation.model.universe
    return replace(evaluation, warnings=(*evaluation.warnings, *warnings(executor, claim, universe), *more))


def warnings(executor: Executor, claim: Claim, universe: Universe | None) -> list[str]:
    """Why the claim cannot get its expected verdict, or says little. Opens no model, and does not depend on what is stored.

    Tasks are taken as they are, before a tokenizer replaces pairs. A task that cannot be read gives no warning: that is reported elsewhere.
    """
    plan = LookPlan.of(claim)
    last = plan.at(len(plan) - 1)
    parameters = last.parameters
    texts, groups, examples, most = [], {}, {}, {}
    split = getattr(parameters, "split", None)
    for name, source in last.tasks.items() if split is not None else ():
        try:
            first = len(executor.task(source.original)) if source.grown else None
            task = executor.task(source)
            groups[name], examples[name] = _sides(task, first, split, parameters.split_seed)
            if task.most_groups is not None:
                every = len(set(encoded_task(task).groups))
                most[name] = max(groups[name][1], groups[name][1] * task.most_groups // every)
        except CircuitsError:
            continue
    context = PreflightContext(claim.required_bound(), parameters.confidence, groups, examples, universe, most)
    for warning in property_of(claim).warnings(claim.parameters, context):
        if warning.verdict is None or (claim.expect in (CERTIFIED, REFUTED) and warning.verdict == claim.expect):
            texts.append(warning.text)
    return list(dict.fromkeys(texts))


def _sides(task: Task, first: int | None, split: object, seed: int) -> tuple[SplitSizes, SplitSizes]:
    """Numbers of groups, and of examples, on the discovery and on the evaluation side."""
    names = encoded_task(task).groups
    if split == "in_sample":
        return (len(set(names)),) * 2, (len(names),) * 2
    rows = split_first(names, first, float(str(split)), seed)
    groups, examples = ([len({names[int(i)] for i in side}) for side in rows], [len(side) for side in rows])
    return (groups[0], groups[1]), (examples[0], examples[1])
