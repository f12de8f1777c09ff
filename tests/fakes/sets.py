"""A model that is a table: for each task the members of every example's circuit, and which answers survive which removal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pytest_circuits.core.results import Attribution, ComponentNorms, Description, Encoded, Outcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import examples_of
from pytest_circuits.measurement.requests import Ablate, Attribute, Describe, Encode, MeasureNorms
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.protocol import Claim

MODEL = ModelSource("m", "m")
UNIVERSE = Universe(3, 3)  # 12 components
UNITS = UNIVERSE.component_names
SPLIT = {"split": 0.5, "split_seed": 0}


def rows(n: int, *parts: tuple[int, list[str]]) -> np.ndarray:
    """Members [n, N]: the first k examples have these units, the next k those; the last part goes on to the end."""
    members = np.zeros((n, len(UNITS)), bool)
    start = 0
    for count, names in parts:
        members[start : start + count, UNIVERSE.index(names)] = True
        start += count
    if start < n:
        members[start:, UNIVERSE.index(parts[-1][1])] = True
    return members


@dataclass
class Table:
    """One task. `members` [n, N] by method name (or one array for every method); `survive(names) -> bool [n]`: correct without them."""

    members: np.ndarray | dict[str, np.ndarray]
    survive: Callable[[frozenset[str]], np.ndarray] = field(default=lambda names: np.True_)
    right: np.ndarray | None = None
    groups: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    chance: float = 0.0
    digest: str = ""

    @property
    def n(self) -> int:
        return len(self.circuits("eap"))

    def circuits(self, method: str) -> np.ndarray:
        return self.members[method] if isinstance(self.members, dict) else self.members

    def encoded(self) -> Encoded:
        groups = self.groups or tuple(f"g{i}" for i in range(self.n))
        return Encoded(self.n, groups, self.digest or str(id(self)), chance=self.chance, prompts=self.prompts)

    def correct(self, names: tuple[str, ...]) -> np.ndarray:
        right = np.ones(self.n, bool) if self.right is None else self.right
        return right if not names else np.broadcast_to(self.survive(frozenset(names)), self.n) & np.ones(self.n, bool)


@dataclass
class World:
    """Answers requests from tables; `asked` holds one list of requests for each yield."""

    tables: dict[str, Table]
    norms: np.ndarray | None = None
    asked: list[list[object]] = field(default_factory=list)

    def answer(self, request):
        if isinstance(request, Describe):
            return Description("f", "table", 1, UNIVERSE, "float32")
        table = self.tables[request.task.name]
        encoded = table.encoded()
        if isinstance(request, Encode):
            return encoded
        if isinstance(request, MeasureNorms):
            return ComponentNorms(np.asarray(self.norms, np.float32), UNITS)
        chosen = examples_of(request.part, encoded)
        chosen = np.arange(table.n) if chosen is None else chosen
        if isinstance(request, Attribute):
            scores = table.circuits(request.method)[chosen] * np.linspace(2, 1, len(UNITS), dtype=np.float32)
            return Attribution(scores.astype(np.float32), UNITS, request.method, "component", request.metric, chosen)
        assert isinstance(request, Ablate) and request.mode == "remove"
        correct = np.stack([table.correct(one)[chosen] for one in request.sets])
        return Outcome(correct, correct.astype(np.float32), correct.astype(np.float32))

    def measure(self, name, **parameters):
        """The estimate of a property; circuits have at most 6 components unless told otherwise."""
        prop = PROPERTIES.get(name)
        checked = prop.parameters.model_validate({"size": 6, **parameters})
        claim = Claim(prop.name, checked, MODEL, {task: TaskSource.make(task, "builtin", task) for task in task_names(checked)})
        steps = prop.estimate(claim)
        return drive(steps, lambda request: self.answer_all([request])[0], self.answer_all)

    def answer_all(self, requests):
        self.asked.append(list(requests))
        return [self.answer(request) for request in requests]

    def sides(self, task: str, **split):
        """Rows (discovery, evaluation) of the default split."""
        from pytest_circuits.stats.split import split_by_group

        return split_by_group(self.tables[task].encoded().groups, 0.5, 0)


def breaks(n: int, hurt: dict[frozenset[str] | str, int]) -> Callable[[frozenset[str]], np.ndarray]:
    """Removing a unit (or all of a set) makes the first k examples wrong."""

    def survive(names: frozenset[str]) -> np.ndarray:
        alive = np.ones(n, bool)
        for units, count in hurt.items():
            if (frozenset([units]) if isinstance(units, str) else units) <= names:
                alive[:count] = False
        return alive

    return survive
