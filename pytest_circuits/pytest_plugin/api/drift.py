"""Drift in Python: `against=` is another model, what the claim compares with, also inside a trajectory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import OptionError

if TYPE_CHECKING:
    from ...core.sources import ModelSource
    from .circuits import CircuitsFixture

DRIFT = "drift"


def taken(bench: CircuitsFixture, name: str, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], ModelSource | None]:
    """The parameters of a property with the name of the model in `against` in place of the model, and that model; None for no drift.

    `against` is what `bench.model` takes, or returned. Raises `OptionError` for a drift without it, since a baseline belongs to a spec
    file, and for bounds, which belong to `check`; `ModelError` as `bench.model`.
    """
    given = dict(parameters)
    if name == DRIFT:
        return _named(bench, given)
    of = given.get("of")
    if not isinstance(of, Mapping) or not isinstance(of.get(DRIFT), Mapping):
        return given, None
    inner, source = _named(bench, dict(of[DRIFT]))
    return {**given, "of": {**of, DRIFT: inner}}, source


def check_other(name: str, model: ModelSource, against: ModelSource | None) -> None:
    """Raise `OptionError` for a drift from a model to itself."""
    if name == DRIFT and against is not None and replace(against, name=model.name) == model:
        raise OptionError(f"drift of {model.describe()} against itself says nothing: give against= another model")


def _named(bench: CircuitsFixture, given: dict[str, Any]) -> tuple[dict[str, Any], ModelSource]:
    from .circuits import CircuitsModel

    for key in ("within", "no_worse_by"):
        if given.get(key) is not None:
            raise OptionError(f"{key} is how a spec writes a bound of drift; in Python give it to check: within=(-m, m) or at_least=-m")
    value = given.get("against")
    if value is None:
        raise OptionError("drift in Python needs against=, the model to compare with: circuits.model(…); a baseline belongs to a spec file")
    other = value if isinstance(value, CircuitsModel) else bench.model(value)
    return {**given, "against": other.name}, other.source
