"""Keyword arguments of Python claims: tasks become names, and the rest is validated by the property's own parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.sources import TaskSource
from ...errors import OptionError, suggestion

if TYPE_CHECKING:
    from pydantic import BaseModel

B = TypeVar("B", bound="BaseModel")


def name_tasks(value: Any, tasks: dict[str, TaskSource]) -> Any:
    """The value with each task replaced by its name; the tasks are added to `tasks`. Raises `OptionError` for two of one name."""
    if isinstance(value, TaskSource):
        if tasks.setdefault(value.name, value) != value:
            raise OptionError(f"two different tasks are called {value.name!r}; give one of them another name=")
        return value.name
    if isinstance(value, Mapping):
        return {key: name_tasks(item, tasks) for key, item in value.items()}
    return [name_tasks(item, tasks) for item in value] if isinstance(value, (list, tuple)) else value


def validate(model: type[B], arguments: Mapping[str, Any], what: str) -> B:
    """The arguments as a parameter model. Raises `OptionError` with all mistakes; `what` is what has the parameters, for messages."""
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(arguments))
    except ValidationError as problem:
        lines = []
        for error in problem.errors():
            where = ".".join(map(str, error["loc"]))
            if error["type"] == "extra_forbidden":
                lines.append(f"{what} has no parameter {where!r}; {suggestion(where, model.model_fields)}")
            else:
                lines.append(f"{what}{f', {where}' if where else ''}: {error['msg'].removeprefix('Value error, ')}")
        raise OptionError("; ".join(lines)) from None
