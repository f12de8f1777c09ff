"""What a property is: typed parameters, and a generator that asks for measurements and returns an estimate.

A property never runs a model. It yields requests (`pytest_circuits.requests`) — one, or a list — and is sent
back the results in the same shape; it returns an `Estimate` or raises `Invalid`. This module and the
parameter models are imported when specs are collected, so numpy is imported inside `judge`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ..ablation import KINDS
from ..amounts import ROUNDINGS, Size
from ..attribution import METHODS, METRICS
from ..errors import OptionError, suggestion
from ..sources import ModelSource, TaskSource
from ..verdict import Estimate

Steps = Generator[Any, Any, Estimate]


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
Method = Annotated[str, AfterValidator(_one_of("attribution method", lambda: METHODS)), _options(lambda: METHODS)]
Kind = Annotated[str, AfterValidator(_one_of("ablation", lambda: KINDS)), _options(lambda: KINDS)]
Metric = Annotated[str, AfterValidator(_one_of("metric", lambda: METRICS)), _options(lambda: METRICS)]
CircuitSize = Annotated[str | int, BeforeValidator(_size)]
Rounding = Annotated[str, AfterValidator(_one_of("rounding", lambda: tuple(ROUNDINGS))), _options(lambda: tuple(ROUNDINGS))]
TaskName = Annotated[str, Field(json_schema_extra={"circuits": "task"})]  # the name of an entry under `tasks:`
Split = Annotated[float, Field(gt=0, lt=1)] | Literal["in_sample"]


class Parameters(BaseModel):
    """Parameters that every property has. Values under `defaults:` of a spec apply to properties that have the parameter."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    confidence: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    min_accuracy: Annotated[float, Field(ge=0, le=1)] = 0.6
    split: Split = 0.5
    split_seed: int = 0
    metric: Metric = "logit_diff"


class CircuitParameters(Parameters):
    """Parameters of properties that use per-example circuits."""

    attribution: Method = "eap"
    size: CircuitSize = "10%"
    rounding: Rounding = "floor"


@dataclass(frozen=True)
class Claim:
    """What a property judges: its validated parameters, the model, and where its tasks come from."""

    parameters: Any
    model: ModelSource
    tasks: Mapping[str, TaskSource] = field(default_factory=dict)


@dataclass(frozen=True)
class Property:
    """A registered property: `judge(claim)` is a generator of requests that returns an `Estimate`.

    `lowest` and `highest` are the range of possible values (None: unbounded), which makes vacuous bounds visible. `summary` is
    one line for help texts. `check(parameters)` may refuse combinations of parameters by raising `ValueError`.
    """

    name: str
    parameters: type[Parameters]
    judge: Callable[[Claim], Steps]
    lowest: float | None = None
    highest: float | None = None
    summary: str = ""
    unit: str = ""


def task_references(parameters: BaseModel) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each mention of a task in these parameters: the path of the value (also inside nested models) and the task's name."""
    for name, info in type(parameters).model_fields.items():
        value = getattr(parameters, name)
        if "circuits" in str(info.json_schema_extra or "") or name in ("task", "tasks"):
            several = isinstance(value, (list, tuple))
            for path, one in [((name, i), v) for i, v in enumerate(value)] if several else [((name,), value)]:
                if isinstance(one, str):
                    yield path, one
        elif isinstance(value, BaseModel):
            yield from (((name, *path), task) for path, task in task_references(value))


def task_names(parameters: BaseModel) -> list[str]:
    """The names of all tasks that these parameters refer to, in order, without repeats."""
    return list(dict.fromkeys(task for _, task in task_references(parameters)))
