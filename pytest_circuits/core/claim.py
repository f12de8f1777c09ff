"""A claim: one type from the spec to the report."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .sources import ModelSource, TaskSource
from .verdict import CERTIFIED, Bound

MarkSpec = tuple[str, tuple[Any, ...], Mapping[str, Any]]
"""A pytest mark: name, positional and keyword arguments."""


@dataclass(frozen=True)
class BaselineReference:
    """What a baseline holds of a claim about drift: its entry, or None and the reason, with what to do about it.

    command, when: the command that writes the entry, and whether the release has to be measured "once" or "again".
    writes: this run writes the entry, so that a claim without one is compared with itself.
    hints: differences between then and now that may be why measurements do not compare.
    related_entry, related_claim: for a claim without an entry, the entry of the claim in `of` about the same model, and that claim's name.
    weights, release_command: fingerprints of the model that other entries are of, and the command that measures that model. Without
    fingerprints any model may become the release.
    """

    entry: Mapping[str, Any] | None
    reason: str = ""
    command: str = ""
    writes: bool = False
    hints: tuple[str, ...] = ()
    related_entry: Mapping[str, Any] | None = None
    related_claim: str = ""
    weights: tuple[str, ...] = ()
    release_command: str = ""
    when: str = "once"


@dataclass(frozen=True)
class Claim:
    """A property, by name, of a model on tasks, with the property's validated parameters; and, where it is tested, a bound.

    tasks: those that the parameters refer to, by name.
    series: the models of a property over a series, in the order of their `at`; `model` is the last of them. Empty for other properties.
    against: what a claim about drift compares the model with: another model, or what a baseline holds of the claim.
    bound, expect: the bound, and the verdict with which the test passes; without a bound there is only something to measure.
    name, description, entry: the claim's name and description, and the name under `models:` that it is about (a model, or the series
    that `model` is a checkpoint of).
    ids: the parts of the node id below the claim's name: model, task, then `name=value` for each other listed parameter.
    related: for a claim about drift, the test of the claim in `of`, as a node id without the file; "" where the spec has none.
    marks, line, column: pytest marks, and the place of the claim's name in its file.
    """

    property: str
    parameters: Any
    model: ModelSource
    tasks: Mapping[str, TaskSource] = field(default_factory=dict)
    series: tuple[ModelSource, ...] = ()
    against: ModelSource | BaselineReference | None = None
    bound: Bound | None = None
    expect: str = CERTIFIED
    name: str = ""
    description: str = ""
    entry: str = ""
    ids: tuple[str, ...] = ()
    related: str = ""
    marks: tuple[MarkSpec, ...] = ()
    line: int = 1
    column: int = 1

    @builtins.property
    def subject(self) -> str:
        """The name of what the claim is about: the series, or the model."""
        return self.entry if self.series else self.model.name

    @builtins.property
    def label(self) -> str:
        """The claim's name with the parts that tell its tests on one model apart."""
        return "::".join((self.name, *self.ids[1:]))

    def with_confidence(self, confidence: float) -> Claim:
        """The same claim, estimated with another confidence."""
        return replace(self, parameters=self.parameters.model_copy(update={"confidence": confidence}))

    def required_bound(self) -> Bound:
        """The bound. Raises `ValueError` for a claim without one, which can only be measured."""
        if self.bound is None:
            raise ValueError(f"the claim {self.name!r} on {self.property} has no bound to be held against")
        return self.bound

    def with_bound(self, bound: Bound, expect: str = CERTIFIED) -> Claim:
        """The same claim, held against a bound."""
        return replace(self, bound=bound, expect=expect)

    def about(self, model: ModelSource, property: str | None = None, parameters: Any = None) -> Claim:
        """The claim of one model of a series, or of the property inside this one: without a series, on the same tasks."""
        return replace(
            self,
            property=self.property if property is None else property,
            parameters=self.parameters if parameters is None else parameters,
            model=model,
            series=(),
        )
