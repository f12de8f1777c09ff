"""Drift in Python: `against=` is the model that the claim compares with, also for a drift inside a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import OptionError

if TYPE_CHECKING:
    from ...core.sources import ModelSource

DRIFT = "drift"


class NamedModel(Protocol):
    """A model of the session: its name, and where it comes from."""

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def source(self) -> ModelSource:
        """Which model it is."""


def name_against(
    name: str, parameters: Mapping[str, Any], open_model: Callable[[Any], NamedModel]
) -> tuple[dict[str, Any], ModelSource | None]:
    """The parameters of property `name` with the model in `against` replaced by its name, and that model; None where there is no drift.

    `open_model` opens what the user gave. Raises `OptionError` for a drift without `against`, since a baseline belongs to a spec file, and
    for bounds, which belong to `check`; and whatever `open_model` raises.
    """
    if name == DRIFT:
        return _name_against(dict(parameters), open_model)
    of = parameters.get("of")
    if not isinstance(of, Mapping) or not isinstance(of.get(DRIFT), Mapping):
        return dict(parameters), None
    inner, source = _name_against(dict(of[DRIFT]), open_model)
    return {**parameters, "of": {**of, DRIFT: inner}}, source


def check_other(name: str, model: ModelSource, against: ModelSource | None) -> None:
    """Raise `OptionError` for a drift from a model to itself."""
    if name == DRIFT and against is not None and replace(against, name=model.name) == model:
        raise OptionError(f"drift of {model.describe()} against itself says nothing: give against= another model")


def _name_against(parameters: dict[str, Any], open_model: Callable[[Any], NamedModel]) -> tuple[dict[str, Any], ModelSource]:
    for key in ("within", "no_worse_by"):
        if parameters.get(key) is not None:
            raise OptionError(f"{key} is how a spec writes a bound of drift; in Python give it to check: within=(-m, m) or at_least=-m")
    if parameters.get("against") is None:
        raise OptionError("drift in Python needs against=, the model to compare with: circuits.model(…); a baseline belongs to a spec file")
    other = open_model(parameters["against"])
    return {**parameters, "against": other.name}, other.source
