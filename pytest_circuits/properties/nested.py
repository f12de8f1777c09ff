"""A property with its parameters, as a parameter of another property: `of: {reuse: {task: addition, p: 0.8}}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, InstanceOf, ValidationError, ValidationInfo, model_serializer
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails

from ..errors import suggestion
from . import PROPERTIES
from .parameters import AnyParameters
from .protocol import Property

OUTER = ("confidence", "max_n")
"""Parameters that the outer property sets: the inner one is estimated once, at a confidence that it does not choose."""
MARK = {"circuits": "property"}
_SCHEMA = {"type": "object", "minProperties": 1, "maxProperties": 1, **MARK}


class Inner(BaseModel):
    """A property by name, and its validated parameters. Prints, dumps and is read as `{name: parameters}`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    parameters: InstanceOf[AnyParameters]

    @property
    def property(self) -> Property:
        """The property itself."""
        return PROPERTIES.get(self.name)  # type: ignore[no-any-return]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        return dict(_SCHEMA)

    @model_serializer
    def _written(self) -> dict[str, Any]:
        return {self.name: self.parameters.model_dump(mode="json", exclude=set(OUTER))}


def inner_problem(name: str, parameters: Any) -> str | None:
    """Why `{name: parameters}` cannot be the property inside another one, or None; the parameters are not validated."""
    if name not in PROPERTIES:
        return f"unknown property {name!r}; {suggestion(name, _single())}"
    if PROPERTIES.get(name).over_series:
        return f"{name!r} is itself about a series; {suggestion(name, _single())}"
    return None if isinstance(parameters, Mapping) else "must be a mapping of parameters"


def _single() -> list[str]:
    return [name for name in PROPERTIES if not PROPERTIES.get(name).over_series]


def _read(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, Inner):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError("must be a property with its parameters, such as {reuse: {task: addition}}")
    ((name, written),) = value.items()
    problem = inner_problem(name, written)
    if problem:
        raise ValueError(problem)
    for key in OUTER:
        if key in written and key == "max_n":
            raise ValueError(f"{name!r} is estimated once inside another property: leave max_n out")
        if key in written:
            raise ValueError(f"{key} belongs to the claim's own property, not to {name!r} inside it: write it next to 'of'")
    try:  # as JSON, so that lists may stand for tuples, as in a spec
        parameters = PROPERTIES.get(name).parameters.model_validate_json(json.dumps(dict(written)), context=info.context)
    except TypeError as problem:
        raise ValueError(f"the parameters of {name!r} must be plain values: {problem}") from None
    except ValidationError as error:
        raise _inside(error, name) from None
    return Inner(name=name, parameters=parameters)


def _inside(error: ValidationError, name: str) -> ValidationError:
    """The same mistakes, with places relative to the outer property."""
    lines = [
        InitErrorDetails(type=line["type"], loc=(name, *line["loc"]), input=line["input"], ctx=line.get("ctx", {}))
        for line in error.errors()
    ]
    return ValidationError.from_exception_data(name, lines)


PropertyOf = Annotated[Inner, BeforeValidator(_read)]


def is_nested(info: FieldInfo) -> bool:
    """Whether a field of parameters holds a property with its parameters."""
    return info.annotation is Inner
