"""A property of one's own: a decorator that turns a judge into a registered property."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..core.verdict import Estimate
from ..errors import OptionError
from ..measurement.requests import Steps
from . import PROPERTIES
from .protocol import AnyParameters, Claim, Property

Judge = Callable[[Claim], Steps[Estimate]]


def claimable(
    name: str | None = None,
    *,
    parameters: type[AnyParameters],
    lowest: float | None = None,
    highest: float | None = None,
    unit: str = "",
    over_series: bool = False,
) -> Callable[[Judge], Property]:
    """Make the decorated generator a `Property` and register it under `name`, or under its own; specs and Python tests can then claim it.

    The generator takes a `Claim`, asks for requests of `pytest_circuits.measurement.requests` and returns an `Estimate`. `parameters` is a
    subclass of `Parameters` (or `CircuitParameters`) whose docstring defines the property. `lowest` and `highest` are the range of its
    values (None: unbounded), so that vacuous bounds are refused. The first line of the generator's docstring is the summary in listings.
    `over_series`: the property is about all models of a series at once. Raises `OptionError` for a name that is taken, or for a function
    that is not a generator.
    """

    def register(judge: Judge) -> Property:
        called = name or judge.__name__
        if not inspect.isgeneratorfunction(judge):
            raise OptionError(f"property {called!r}: {judge.__qualname__} must be a generator: yield requests, return an Estimate")
        summary = (inspect.getdoc(judge) or "").partition("\n")[0].rstrip(".")
        made = Property(called, parameters, judge, lowest, highest, summary, unit, over_series=over_series)
        PROPERTIES.add(called, made)
        return made

    return register
