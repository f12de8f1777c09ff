"""Registering a property: a decorator that turns a generator of requests into a `Property`."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..core.verdict import Estimate
from ..errors import OptionError
from ..measurement.requests import Steps
from . import PROPERTIES
from .parameters import AnyParameters
from .protocol import Claim, Property

Estimator = Callable[[Claim], Steps[Estimate]]


def register_property(
    name: str | None = None,
    *,
    parameters: type[AnyParameters],
    lowest: float | None = None,
    highest: float | None = None,
    unit: str = "",
    over_series: bool = False,
) -> Callable[[Estimator], Property]:
    """Turn the decorated generator into a `Property` that specs and Python tests can claim, registered under `name` or its own name.

    The generator takes a `Claim`, asks for requests of `pytest_circuits.measurement.requests` and returns an `Estimate`. `parameters` is a
    subclass of `Parameters` (or `CircuitParameters`) whose docstring defines the property. `lowest` and `highest` are the range of its
    values (None: unbounded), so that vacuous bounds are refused. The first line of the generator's docstring is the summary in listings.
    `over_series`: one claim covers all models of a series.

    Raises `OptionError` for a name that is taken and for a function that is not a generator.
    """

    def register(estimate: Estimator) -> Property:
        label = name or estimate.__name__
        if not inspect.isgeneratorfunction(estimate):
            raise OptionError(f"property {label!r}: {estimate.__qualname__} must be a generator: yield requests, return an Estimate")
        summary = (inspect.getdoc(estimate) or "").partition("\n")[0].rstrip(".")
        registered = Property(label, parameters, estimate, lowest, highest, summary, unit, over_series=over_series)
        PROPERTIES.add(label, registered)
        return registered

    return register


claimable = register_property
"""Former name of `register_property`; will be removed in the release after next."""
