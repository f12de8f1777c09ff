"""`--circuits-seed N`: the same claims on other prompts.

A bound that was chosen after looking at some prompts is tested on others. All seeds of built-in tasks and of splits are raised by N, so
that both sides of the split are new: circuits are discovered and evaluated again. Prompts from files, loaders and fixtures stay the same;
only their split changes, and the report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel

from ..core.claim import Claim
from ..core.sources import TaskSource

P = TypeVar("P", bound=BaseModel)


def reseed_claim(claim: Claim, by: int) -> Claim:
    """The claim with all its seeds raised."""
    if not by:
        return claim
    tasks = {name: reseed_task(task, by) for name, task in claim.tasks.items()}
    return replace(claim, parameters=reseed_parameters(claim.parameters, by), tasks=tasks)


def reseed_task(task: TaskSource, by: int) -> TaskSource:
    """A built-in task drawn by another seed; any other task as it is."""
    if not by or task.kind != "builtin":
        return task
    options = task.options
    return TaskSource.make(task.name, task.kind, task.target, {**options, "seed": options.get("seed", 0) + by})


def reseed_parameters(parameters: P, by: int) -> P:
    """Parameters with another seed of the split, also those of a property inside."""
    changed: dict[str, Any] = {}
    for name in type(parameters).model_fields if by else ():
        value = getattr(parameters, name)
        if name == "split_seed":
            changed[name] = value + by
        elif isinstance(value, BaseModel) and isinstance(getattr(value, "parameters", None), BaseModel):
            inner: Any = value
            changed[name] = inner.model_copy(update={"parameters": reseed_parameters(inner.parameters, by)})
    return parameters.model_copy(update=changed) if changed else parameters


def replication_warnings(tasks: Mapping[str, TaskSource], by: int) -> list[str]:
    """Warnings about tasks that a seed does not draw again."""
    fixed = [name for name, task in tasks.items() if task.kind != "builtin"]
    if not by or not fixed:
        return []
    return [f"--circuits-seed draws no new prompts for {', '.join(fixed)}, since no built-in task makes them: only their split is new"]
