"""Parameters of `for_all`: what is drawn, what is done to the model, and what has to hold."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ...ablation.trial import single_prompt_kinds
from ...core.metric_names import COMPARISONS
from ..parameters import AblationName, CircuitParameters, CircuitSize, Options, Share, TaskName, check_ablation
from ..steps.known_units import check_names

POSITIVE = ("logit_diff", "prob")
"""Metrics that are above 0 where the answer is right, so that a share of them can be kept."""


Units = Annotated[list[str], Field(min_length=1), AfterValidator(lambda names: list(check_names(names)))]
Prompt = Annotated[str, Field(min_length=1)] | Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Prompts(_Part):
    """Which prompts: all that the grammar of a built-in task makes, or the rows of any other task."""

    task: TaskName


class CircuitOf(_Part):
    """A set of components: by name, or the shared set S_P of a task."""

    units: Annotated[Units | None, Field(description="components by name, such as L1H2 or L0MLP")] = None
    task: Annotated[TaskName | None, Field(json_schema_extra={"circuits": "task"}, description="the shared set of this task")] = None
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95

    @model_validator(mode="after")
    def _one_source(self) -> CircuitOf:
        if (self.units is None) == (self.task is None):
            raise ValueError("give a set of components as units: [...] or as task: NAME, not both")
        if self.units is not None and "p" in self.model_fields_set:
            raise ValueError("p is the share of a task's circuits, and units have none: leave p out, or give task instead of units")
        return self


class Components(_Part):
    """Which components are removed or kept: named ones, the shared set of a task, or, with `size`, any set of that size."""

    units: Annotated[Units | None, Field(description="components by name, such as L1H2 or L0MLP")] = None
    task: Annotated[TaskName | None, Field(json_schema_extra={"circuits": "task"}, description="the shared set of this task")] = None
    p: Annotated[Share, Field(description="with task: share of examples whose circuit a component must be in")] = 0.95
    size: Annotated[
        CircuitSize | Annotated[list[CircuitSize], Field(min_length=2, max_length=2)] | None,
        Field(description="any set of this many components: a count, a share of all, or a range [least, most] of either"),
    ] = None
    inside: Annotated[CircuitOf | None, Field(description="with size: only components of this set")] = None
    outside: Annotated[CircuitOf | None, Field(description="with size: no component of this set")] = None
    including: Annotated[CircuitOf | None, Field(description="with size: all of this set; they count towards the size")] = None
    of: Annotated[Literal["any", "heads", "mlps"], Field(description="with size: which components may be drawn")] = "any"

    @model_validator(mode="after")
    def _one_source(self) -> Components:
        keys = [name for name in ("units", "task", "size") if getattr(self, name) is not None]
        if len(keys) != 1:
            got = f", got {' and '.join(keys)}" if keys else ""
            raise ValueError(f"give exactly one of units (by name), task (its shared set) and size (any set of that size){got}")
        for name in ("inside", "outside", "including", "of"):
            if self.size is None and name in self.model_fields_set:
                raise ValueError(f"{name} restricts the sets that are drawn, so it needs size")
        if self.task is None and "p" in self.model_fields_set:
            raise ValueError("p is the share of a task's circuits, so it needs task")
        return self

    @property
    def fixed(self) -> CircuitOf | None:
        """The set, unless sets are drawn."""
        if self.size is not None:
            return None
        return CircuitOf(units=self.units) if self.units is not None else CircuitOf(task=self.task, p=self.p)


class Explicit(_Part):
    """An example that is always tested, before any other; a failure prints it in this form."""

    clean: Prompt
    corrupt: Prompt
    answer: Prompt
    foils: list[Prompt] = Field(default_factory=list)
    corrupt_answer: Prompt | None = None
    group: str | None = None
    units: Annotated[list[str] | None, Field(description="the components, where sets of them are drawn")] = None

    @model_validator(mode="after")
    def _named(self) -> Explicit:
        if self.units == []:
            raise ValueError("units is empty: name the components that are removed or kept")
        if self.units is not None:
            check_names(self.units)
        return self


class ForAll(CircuitParameters):
    """Whether something holds for all prompts of a grammar and all sets of components; the value is the share of examples that hold.

    An example is a prompt pair of `prompts` and, if `remove` or `keep` has a `size`, a set of components. It holds when, with the
    components removed (or everything else, for `keep`), the answer is wrong (`answer_changes`), is still right (`answer_stays`), or the
    metric is at least `share` of the intact model's (`metric_kept`). Prompts that do not fit the tokenizer, or that the intact model
    answers wrongly, do not count.

    Without a bound, or with `at_least: 1`, a single counterexample refutes the claim; hypothesis shrinks it to the smallest that it finds.
    If the search finds none, the claim is certified as not refuted by the search. Any other bound is on the share of examples that hold.
    hypothesis searches with the profile in force: it generates `examples` examples and tries those of its database that failed before.
    The estimate comes from as many further examples, drawn independently of each other. Range [0, 1]. Interval: Clopper–Pearson, exact
    for independent draws, given the sets of components that the discovery examples chose.

    Invalid: a grammar that makes no pairs, an intact model that is right on less than `min_accuracy` of the independent draws, no set of
    the requested size, an empty shared set, a failed health check of hypothesis. Needs the package hypothesis.
    """

    prompts: Annotated[Prompts, Field(description="{task: NAME}: any prompt of a built-in task's grammar, or any row of another task")]
    remove: Annotated[
        Components | None, Field(description="what is removed: {units: [...]}, {task: NAME, p: 0.95}, or {size: 1, outside: {...}}")
    ] = None
    keep: Annotated[Components | None, Field(description="what is kept, everything else being removed; written as for remove")] = None
    check: Annotated[Literal["answer_changes", "answer_stays", "metric_kept"], Field(description="what has to hold of each example")]
    share: Annotated[float | None, Field(gt=0, description="for metric_kept: least share of the intact model's metric")] = None
    examples: Annotated[
        int | None, Field(ge=1, description="examples to generate, and to draw independently; by default max_examples of the profile")
    ] = None
    seed: Annotated[int, Field(ge=0, description="seed of the search and of the draws; --hypothesis-seed overrides it")] = 0
    explicit: Annotated[list[Explicit], Field(description="examples that are always tested, before any other")] = Field(
        default_factory=list
    )
    ablation: Annotated[AblationName, Field(description="what removed components are replaced with: zero, scale or counterfactual")] = (
        "zero"
    )
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. factor")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> ForAll:
        check_ablation(self.ablation, self.ablation_options)
        if (self.remove is None) == (self.keep is None):
            raise ValueError("give either remove or keep")
        if (self.share is None) == (self.check == "metric_kept"):
            raise ValueError("check: metric_kept needs share, e.g. share: 0.5" if self.share is None else "share needs check: metric_kept")
        if self.check == "metric_kept" and self.metric not in POSITIVE:
            raise ValueError(
                f"a share of {self.metric} means nothing, since it can be negative where the answer is right; use {', '.join(POSITIVE)}"
            )
        if self.ablation not in single_prompt_kinds():
            raise ValueError(
                f"each example is tested by itself, and the values that {self.ablation} ablation inserts depend on the other prompts; "
                f"use {', '.join(single_prompt_kinds())}"
            )
        if self.metric in COMPARISONS:
            raise ValueError(f"{self.metric} compares with the intact model and does not depend on the answer; use another metric")
        drawn = self.components.size is not None
        for i, example in enumerate(self.explicit, 1):
            if (example.units is not None) != drawn:
                problem = "needs units, since sets of components are drawn" if drawn else "has units, but no sets of components are drawn"
                raise ValueError(f"explicit example {i} {problem}")
        return self

    @property
    def components(self) -> Components:
        """What is removed or kept."""
        components = self.remove or self.keep
        assert components is not None
        return components

    @property
    def mode(self) -> Literal["remove", "keep"]:
        """Whether the components are removed or kept."""
        return "remove" if self.remove is not None else "keep"
