"""Parameters of `for_all`: what is drawn, what is done to the model, what has to hold, in the words of a spec."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ...core.metric_names import COMPARISONS
from ...core.shares import Size
from ...errors import OptionError
from ...measurement.trials import ONE_BY_ONE
from ..parameters import AblationName, CircuitParameters, Options, Share, TaskName, check_ablation
from ..steps.known_units import check_names

POSITIVE = ("logit_diff", "prob")
"""Metrics of which a share can be kept: above 0 where the answer is right."""


def _count(text: Any) -> str | int:
    try:
        parsed = Size.parse(text)
    except OptionError as problem:
        raise ValueError(str(problem)) from None
    return str(parsed) if parsed.share is not None else int(parsed.count or 0)


Count = Annotated[str | int, BeforeValidator(_count)]
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
    def _one(self) -> CircuitOf:
        if (self.units is None) == (self.task is None):
            raise ValueError("a set of components is given by units: [...] or by task: NAME, one of both")
        if self.units is not None and "p" in self.model_fields_set:
            raise ValueError("p goes with task, of whose circuits a share is asked; named units have none")
        return self


class Components(_Part):
    """Which components are removed or kept: named ones, the shared set of a task, or, with `size`, any set of that size."""

    units: Annotated[Units | None, Field(description="components by name, such as L1H2 or L0MLP")] = None
    task: Annotated[TaskName | None, Field(json_schema_extra={"circuits": "task"}, description="the shared set of this task")] = None
    p: Annotated[Share, Field(description="with task: share of examples whose circuit a component must be in")] = 0.95
    size: Annotated[
        Count | Annotated[list[Count], Field(min_length=2, max_length=2)] | None,
        Field(description="any set of so many components: a count, a share of all, or a range [least, most] of either"),
    ] = None
    inside: Annotated[CircuitOf | None, Field(description="with size: only components of this set")] = None
    outside: Annotated[CircuitOf | None, Field(description="with size: no component of this set")] = None
    including: Annotated[CircuitOf | None, Field(description="with size: all of this set, which count")] = None
    of: Annotated[Literal["any", "heads", "mlps"], Field(description="with size: which components may be drawn")] = "any"

    @model_validator(mode="after")
    def _one(self) -> Components:
        given = [name for name in ("units", "task", "size") if getattr(self, name) is not None]
        if len(given) != 1:
            got = f", got {' and '.join(given)}" if given else ""
            raise ValueError(f"give one of units (by name), task (its shared set) and size (any set of that size){got}")
        for name in ("inside", "outside", "including", "of"):
            if self.size is None and name in self.model_fields_set:
                raise ValueError(f"{name} says which sets are drawn, and goes with size")
        if self.task is None and "p" in self.model_fields_set:
            raise ValueError("p goes with task, of whose circuits a share is asked")
        return self

    @property
    def fixed(self) -> CircuitOf | None:
        """The set, where it is not drawn."""
        if self.size is not None:
            return None
        return CircuitOf(units=self.units) if self.units is not None else CircuitOf(task=self.task, p=self.p)


class Explicit(_Part):
    """An example that is always looked at, before any other: what a failure prints."""

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
            raise ValueError("units is empty, and says which components are removed or kept: name them")
        if self.units is not None:
            check_names(self.units)
        return self


class ForAll(CircuitParameters):
    """Whether something holds for all prompts of a grammar and all sets of components; the value is the share of examples that hold.

    An example is a prompt pair of `prompts` and, where `remove` or `keep` has a `size`, a set of components. It holds when, with the
    components removed (or all others), the answer is wrong (`answer_changes`), is still right (`answer_stays`), or the metric is at least
    `share` of the intact model's (`metric_kept`). Prompts that the intact model answers wrongly, or that do not fit its tokenizer, are
    no examples.

    Without a bound, or with `at_least: 1`, one counterexample refutes, shrunk by hypothesis to the smallest that it finds; without one,
    the claim is certified as not refuted by the search. Any other bound is on the share of examples that hold. The search is hypothesis',
    by the profile in force: `examples` examples generated, those of its database that failed before, and as many drawn independently
    of each other by the same description, of which the estimate is made. Interval: Clopper–Pearson, exact, for independent draws
    given the sets of components that discovery examples chose. Range [0, 1].

    Invalid: a grammar that makes no pairs, the intact model right on less than `min_accuracy` of the independent draws, no set of the size
    asked for, an empty shared set, a failed health check of hypothesis. Needs the package hypothesis.
    """

    prompts: Annotated[Prompts, Field(description="{task: NAME}: any prompt of a built-in task's grammar, or any row of another task")]
    remove: Annotated[
        Components | None, Field(description="what is removed: {units: [...]}, {task: NAME, p: 0.95}, or {size: 1, outside: {...}}")
    ] = None
    keep: Annotated[Components | None, Field(description="what is kept, all else being removed; in the same words")] = None
    check: Annotated[Literal["answer_changes", "answer_stays", "metric_kept"], Field(description="what has to hold of each example")]
    share: Annotated[float | None, Field(gt=0, description="for metric_kept: of the intact model's metric, at least this share")] = None
    examples: Annotated[
        int | None, Field(ge=1, description="examples to generate, and to draw independently; by default max_examples of the profile")
    ] = None
    seed: Annotated[int, Field(ge=0, description="seed of the search and of the draws; --hypothesis-seed goes before it")] = 0
    explicit: Annotated[list[Explicit], Field(description="examples to look at first, always")] = Field(default_factory=list)
    ablation: Annotated[AblationName, Field(description="what removed components are replaced with: zero, scale or counterfactual")] = (
        "zero"
    )
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. factor")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> ForAll:
        check_ablation(self.ablation, self.ablation_options)
        if (self.remove is None) == (self.keep is None):
            raise ValueError("give one of remove and keep")
        if (self.share is None) == (self.check == "metric_kept"):
            raise ValueError("metric_kept needs share: 0.5 or another" if self.share is None else "share goes with check: metric_kept")
        if self.check == "metric_kept" and self.metric not in POSITIVE:
            raise ValueError(
                f"a share of {self.metric} says nothing, since it may be below 0 where the answer is right; use {', '.join(POSITIVE)}"
            )
        if self.ablation not in ONE_BY_ONE:
            raise ValueError(
                f"each example is judged on its own, and what {self.ablation} ablation puts in depends on the other prompts; "
                f"use {', '.join(ONE_BY_ONE)}"
            )
        if self.metric in COMPARISONS:
            raise ValueError(f"{self.metric} compares with the intact model and says nothing of the answer; use another metric")
        drawn = self.components.size is not None
        for i, example in enumerate(self.explicit):
            if (example.units is not None) != drawn:
                what = "needs its units, since sets are drawn" if drawn else "has units, and no sets are drawn"
                raise ValueError(f"explicit example {i + 1} {what}")
        return self

    @property
    def components(self) -> Components:
        """What is removed or kept."""
        found = self.remove or self.keep
        assert found is not None
        return found

    @property
    def mode(self) -> Literal["remove", "keep"]:
        """Which of both."""
        return "remove" if self.remove is not None else "keep"
