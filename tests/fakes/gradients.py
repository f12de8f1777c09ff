"""A model that is a table: gradients and losses of every component on every example, and a driver that answers requests from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pytest_circuits.core.results import Attribution, Description, Encoded, Outcome, SweepOutcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import Rows, examples_of
from pytest_circuits.measurement.requests import Ablate, Attribute, Describe, Encode, Sweep
from pytest_circuits.properties.protocol import Claim

MODEL, TASK = ModelSource("m", "m"), TaskSource.make("t", "builtin", "t")


@dataclass
class Table:
    """gradient [n, N]; loss [n, N], the rise when each component alone is ablated; `joint(names) -> [n]`, that of a set (default: the
    sum). wrong [n, N] bool: whether the answer becomes wrong; `joint_wrong(names) -> [n]` (default: any). `right` [n]: the intact model.
    """

    universe: Universe
    gradient: np.ndarray
    loss: np.ndarray
    wrong: np.ndarray | None = None
    groups: tuple[str, ...] = ()
    blocks: np.ndarray | None = None
    joint: object = None
    joint_wrong: object = None
    right: np.ndarray | None = None
    asked: list = field(default_factory=list)

    def __post_init__(self):
        n = len(self.gradient)
        self.groups = self.groups or tuple(f"g{i}" for i in range(n))
        self.wrong = np.zeros(self.loss.shape, bool) if self.wrong is None else self.wrong
        self.right = np.ones(n, bool) if self.right is None else self.right

    @property
    def units(self):
        return self.universe.component_names

    def answer(self, request):
        self.asked.append(request)
        n = len(self.gradient)
        if isinstance(request, Describe):
            return Description("f", "table", 1, self.universe, "float32")
        encoded = Encoded(n, self.groups, "d")
        if isinstance(request, Encode):
            return encoded
        rows = examples_of(request.part, encoded)
        rows = np.arange(n) if rows is None else rows
        if isinstance(request, Attribute):
            blocks = np.arange(n) if self.blocks is None else self.blocks
            return Attribution(
                self.gradient[rows].astype(np.float32), self.units, request.method, "component", request.metric, blocks[rows]
            )
        base = Outcome(self.right[rows], np.ones(len(rows), np.float32), -np.ones(len(rows), np.float32))
        if isinstance(request, Sweep):
            loss = self.loss[rows].astype(np.float32)
            return SweepOutcome(base.correct[:, None] & ~self.wrong[rows], 1 - loss, -1 - loss, base, self.units)
        assert isinstance(request, Ablate) and request.mode == "remove"
        losses = np.stack([self._loss(one)[rows] for one in request.sets]).astype(np.float32)
        wrong = np.stack([self._wrong(one)[rows] for one in request.sets])
        return Outcome(base.correct & ~wrong, 1 - losses, -1 - losses)

    def _columns(self, names):
        return self.universe.index(names)

    def _loss(self, names):
        if len(names) > 1 and self.joint is not None:
            return self.joint(names)
        return self.loss[:, self._columns(names)].sum(1)

    def _wrong(self, names):
        if len(names) > 1 and self.joint_wrong is not None:
            return self.joint_wrong(names)
        return self.wrong[:, self._columns(names)].any(1)


def settle(prop, source, **parameters):
    """The estimate of a property, asked of a table (or anything with `answer`) as the executor would ask a model."""
    p = prop.parameters.model_validate({"task": "t", **parameters})
    steps = prop.estimate(Claim(prop.name, p, MODEL, {"t": TASK}))
    return drive(steps, source.answer)


class Planted:
    """A planted model, opened; answers requests by measuring."""

    def __init__(self, name):
        from models.planted import plant
        from pytest_circuits import open_model

        self.case = plant(name)
        self.subject = open_model(self.case.model, self.case.tokenizer)
        self.encoded = None

    def answer(self, request):
        rows = Rows() if isinstance(request, Describe | Encode) else request.rows(self.encoded)
        found = request.execute(self.subject, self.case.task, rows, 64)
        if isinstance(request, Encode):
            self.encoded = found
        return found
