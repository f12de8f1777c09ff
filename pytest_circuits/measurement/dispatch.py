"""One request as one call of the torch side. This is all that the lab knows about a `Subject`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.results import Encoded
from ..tasks.base import Task
from .requests import AnyRequest, Attribute, Conserve, Describe, Encode, MeasureNorms, Sweep

Indices = NDArray[np.int64] | None


def call(subject: Any, request: AnyRequest, task: Task | None, examples: Indices, reference: Indices, batch_size: int | None) -> Any:
    """The result of a request. `task` is needed by all but `Describe`; `examples` are example numbers, None for all;
    `reference` too, None for the examples themselves.
    """
    if isinstance(request, Describe):
        return subject.describe()
    if isinstance(request, Encode):
        found = subject.encode(task)
        notes = tuple(found.notes)
        return Encoded(
            int(found.n), tuple(found.groups), str(found.digest), int(found.regenerated), notes, float(found.chance), tuple(found.prompts),
            kept=tuple(getattr(found, "kept", ())),
        )  # fmt: skip
    if isinstance(request, MeasureNorms):
        return subject.norms(task, examples=examples, batch_size=batch_size)
    if isinstance(request, Conserve):
        return subject.conserve(task, rules=request.rules, metric=request.metric, examples=examples, batch_size=batch_size)
    common = {"metric": request.metric, "batch_size": batch_size, "examples": examples, **json.loads(request.options)}
    if isinstance(request, Attribute):
        return subject.attribute(task, method=request.method, level=request.level, reduce=request.reduce, **common)
    common |= {"kind": request.kind, "reference": reference}
    if isinstance(request, Sweep):
        return subject.sweep(task, **common)
    return subject.ablate_many(task, [list(one) for one in request.sets], mode=request.mode, level=request.level, **common)
