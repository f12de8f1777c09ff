"""Parameters of properties: annotated types, base models and mixins, and the checks of their combinations.

These models are imported when specs are collected, so they import neither torch nor numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ..ablation import ABLATIONS
from ..attribution import METHODS, vanishing
from ..core.metric_names import COMPARISONS, METRICS
from ..core.shares import ROUNDINGS, Size
from ..errors import OptionError, suggestion
from ..registry import Registry


def _one_of(what: str, allowed: Callable[[], Any]) -> Any:
    def check(word: str) -> str:
        names = allowed()
        if word not in names:
            raise ValueError(f"unknown {what} {word!r}; {suggestion(word, names)}")
        return word

    return check


def _options(allowed: Callable[[], Any]) -> Any:
    return Field(json_schema_extra=lambda schema: schema.update(enum=[str(name) for name in allowed()]))


def _size(text: Any) -> str | int:
    try:
        parsed = Size.parse(text)
    except OptionError as problem:
        raise ValueError(str(problem)) from None
    return str(parsed) if parsed.share is not None else int(parsed.count or 0)


Share = Annotated[float, Field(gt=0, le=1)]
MethodName = Annotated[str, AfterValidator(_one_of("attribution method", lambda: METHODS)), _options(lambda: METHODS)]
AblationName = Annotated[str, AfterValidator(_one_of("ablation", lambda: ABLATIONS)), _options(lambda: ABLATIONS)]
MetricName = Annotated[str, AfterValidator(_one_of("metric", lambda: METRICS)), _options(lambda: METRICS)]
CircuitSize = Annotated[str | int, BeforeValidator(_size)]
RoundingName = Annotated[str, AfterValidator(_one_of("rounding", lambda: tuple(ROUNDINGS))), _options(lambda: tuple(ROUNDINGS))]
TaskName = Annotated[str, Field(json_schema_extra={"circuits": "task"})]  # the name of an entry under `tasks:`
Split = Annotated[float, Field(gt=0, lt=1)] | Literal["in_sample"]
SiteName = Annotated[Literal["mlp_activation", "mlp_output"], Field(description="input, or output, of the down projection")]
Options = dict[str, str | int | float | bool]


class AnyParameters(BaseModel):
    """Parameters that every property has. Values under `defaults:` of a spec apply to properties that have the parameter."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    confidence: Annotated[float, Field(ge=0.5, lt=1, description="two-sided confidence of the interval")] = 0.95


class Parameters(AnyParameters):
    """Parameters that every property has which measures a model itself."""

    min_accuracy: Annotated[
        float,
        Field(ge=0, le=1, description="accuracy gate: accuracy of the intact model below which the claim is invalid; 0 switches it off"),
    ] = 0.6
    split: Annotated[Split, Field(description="share of examples used for discovery, or in_sample: all for both")] = 0.5
    split_seed: Annotated[int, Field(ge=0, description="seed of the split")] = 0
    metric: Annotated[MetricName, Field(description="per-example scalar of the logits")] = "logit_diff"
    max_n: Annotated[
        int | None,
        Field(
            ge=1,
            description="repeat with twice as many prompts of each built-in task, up to this many, until the verdict is settled; "
            "discovery examples stay the same, and the error is split over the planned looks",
        ),
    ] = None


class CircuitParameters(Parameters):
    """Parameters of properties that use per-example component circuits."""

    level: ClassVar[str] = "component"

    attribution: Annotated[MethodName, Field(description="attribution method that ranks units on each example")] = "eap"
    attribution_options: Annotated[Options, Field(description="options of the attribution method, e.g. steps")] = Field(
        default_factory=dict
    )
    size: Annotated[CircuitSize, Field(description="circuit size K: a share of all units, or a count")] = "10%"
    rounding: Annotated[RoundingName, Field(description="from a share to a count")] = "floor"
    threshold: Annotated[
        float | None,
        Field(gt=0, lt=1, description="instead of size: units whose |score| is at least this share of the sum over all units"),
    ] = None
    contrast: Annotated[
        list[TaskName],
        Field(
            json_schema_extra={"circuits": "task"},
            description="rank units by what they score on the task beyond these tasks; the task itself is left out of the list",
        ),
    ] = Field(default_factory=list)
    contrast_by: Annotated[
        Literal["share", "rank"], Field(description="what is compared: a unit's share of the sum of |scores|, or its rank by |score|")
    ] = "share"

    @model_validator(mode="after")
    def _attribution_fits(self) -> CircuitParameters:
        check_method(self.attribution, self.attribution_options, self.level, self.metric)
        if self.threshold is not None and "size" in self.model_fields_set:
            raise ValueError(
                "size and threshold are two ways to cut a ranking: give one (that of the claim overrides the other of the defaults)"
            )
        self._contrast_fits()
        return self

    def _contrast_fits(self) -> None:
        if len(set(self.contrast)) < len(self.contrast):
            raise ValueError(f"contrast names a task twice: {', '.join(self.contrast)}")
        measured = {task for path, task in task_references(self) if path[0] != "contrast"}
        if self.contrast and measured and all(set(self.contrast) <= {task} for task in measured):
            raise ValueError(f"contrast names only the task itself, {self.contrast[0]!r}; name others")


class BootstrapParameters(AnyParameters):
    """The number of resamples, for properties whose interval is a bootstrap."""

    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000


class ControlParameters(AnyParameters):
    """How many random control sets are drawn, for properties that compare a set with them."""

    draws: Annotated[int, Field(ge=20, description="random control sets")] = 49
    control_seed: Annotated[int, Field(ge=0)] = 0


class AccuracyScaleParameters(AnyParameters):
    """Whether a difference of accuracies is in accuracy points or relative to the intact accuracy."""

    definition: Annotated[Literal["absolute", "relative"], Field(description="accuracy points, or a share of the intact accuracy")] = (
        "absolute"
    )


class OverlapParameters(AnyParameters):
    """Whether an overlap of two sets is reported over its chance level."""

    over_chance: Annotated[bool, Field(description="subtract the mean Jaccard of random sets with as many heads and MLPs")] = False


class SharedSetParameters(CircuitParameters):
    """Parameters of properties that use the shared set S_P."""

    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95


class RemovalParameters(SharedSetParameters):
    """Parameters of properties that find shared sets and ablate them."""

    ablation: Annotated[AblationName, Field(description="what removed components are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts, positions")] = Field(
        default_factory=dict
    )

    @model_validator(mode="after")
    def _ablation_fits(self) -> RemovalParameters:
        check_ablation(self.ablation, self.ablation_options)
        return self


class CurveParameters(Parameters):
    """Parameters of properties that rank units and ablate by rank: neurons, unless a subclass has a parameter `level`."""

    task: TaskName
    attribution: Annotated[MethodName, Field(description="attribution method that ranks units")] = "relp"
    attribution_options: Annotated[Options, Field(description="options of the attribution method, e.g. positions: each")] = Field(
        default_factory=dict
    )
    ablation: Annotated[AblationName, Field(description="what ablated units are replaced with")] = "zero"
    ablation_options: Annotated[Options, Field(description="options of the ablation, e.g. prompts: corrupt")] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> CurveParameters:
        check_method(self.attribution, self.attribution_options, getattr(self, "level", "neuron"), self.metric)
        check_ablation(self.ablation, self.ablation_options)
        return self


class OtherCircuit(BaseModel):
    """The task whose shared set is ablated, where it is not the task that is measured."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    task: TaskName


def check_method(method: str, options: Mapping[str, Any], level: str, metric: str) -> None:
    """Raise `ValueError` when an attribution method does not work at a level or with a metric, or has no such option."""
    levels = METHODS.fact(method, "levels", (level,))
    if level not in levels:
        able = [m for m in METHODS if level in METHODS.fact(m, "levels", (level,))]
        raise ValueError(f"attribution {method!r} does not work at {level} level; allowed: {', '.join(able)}")
    if level == "component" and options.get("positions") == "each":
        raise ValueError(
            "positions: each makes a unit of every position, and this property needs whole components: use all, last or answer"
        )
    if metric in COMPARISONS and METHODS.fact(method, "clean_gradient", False):
        raise ValueError(vanishing(method, metric))
    check_options("attribution", method, options, METHODS)


def check_ablation(kind: str, options: Mapping[str, Any]) -> None:
    """Raise `ValueError` when an ablation kind has no such option."""
    check_options("ablation", kind, options, ABLATIONS)


def check_options(what: str, name: str, options: Mapping[str, Any], registry: Registry) -> None:
    """Raise `ValueError` for an option that an entry of a registry does not have, as far as that is known without importing it."""
    allowed = registry.fact(name, "options")
    for key in options:
        if allowed is not None and key not in allowed:
            raise ValueError(f"{what} {name!r} has no option {key!r}; {suggestion(key, allowed)}")


def in_sample(parameters: Any) -> str | None:
    """Why `max_n` is of no use to a claim with `split: in_sample`, or None."""
    if getattr(parameters, "split", None) != "in_sample":
        return None
    return "max_n adds evaluation examples, and split: in_sample has no separate ones: give a share, or raise n of the tasks"


def task_references(parameters: BaseModel) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each mention of a task in the parameters: the path of the value (also inside nested models) and the task's name."""
    fields = type(parameters).model_fields.items()
    for name, info in sorted(fields, key=lambda field: field[0] == "contrast"):  # what is measured comes before what it is contrasted with
        value = getattr(parameters, name)
        if "circuits" in str(info.json_schema_extra or "") or name in ("task", "tasks"):
            several = isinstance(value, (list, tuple))
            for path, task in [((name, i), entry) for i, entry in enumerate(value)] if several else [((name,), value)]:
                if isinstance(task, str):
                    yield path, task
        elif isinstance(value, BaseModel) and isinstance(getattr(value, "parameters", None), AnyParameters):  # a property inside this one
            inner: Any = value
            yield from (((name, inner.name, *path), task) for path, task in task_references(inner.parameters))
        elif isinstance(value, BaseModel):
            yield from (((name, *path), task) for path, task in task_references(value))


def task_names(parameters: BaseModel) -> list[str]:
    """The names of all tasks that the parameters refer to, in order, without repeats."""
    return list(dict.fromkeys(task for _, task in task_references(parameters)))
