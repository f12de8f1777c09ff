"""What a property is: typed parameters, and a generator that asks for measurements and returns an estimate.

A property never runs a model. It yields requests (`pytest_circuits.measurement.requests`) — one, or a list — and is sent
back the results in the same shape; it returns an `Estimate` or raises `Invalid`. This module is imported when specs are collected,
so numpy is imported inside `estimate`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..core.claim import BaselineReference as BaselineReference
from ..core.claim import Claim as Claim
from ..core.verdict import Bound, Estimate
from ..measurement.requests import Steps
from .parameters import AnyParameters
from .preflight import PreflightContext, PreflightWarning, general_warnings


@dataclass(frozen=True)
class Property:
    """A registered property: `estimate(claim)` is a generator of requests that returns an `Estimate`.

    - `parameters`: their model; its validators refuse combinations that do not fit, its docstring defines the property.
    - `lowest`, `highest`: the range of possible values (None: unbounded), so that vacuous bounds are refused; `limits(parameters)`
      where the range depends on the parameters.
    - `summary`, `unit`: one line for listings, and what the value counts.
    - `over_series`: one claim covers all models of an entry of `models`, which are then in `Claim.series`.
    - `grows`: whether more evaluation examples make the estimate more certain, as sequential sampling (`max_n`) needs;
      `growth(parameters)` says why not, where that depends on the parameters.
    - `preflight(parameters, context)`: warnings before anything is measured.
    - `unfit(parameters, name, places)`: of a property over a series, the parameter that does not fit models at these places ("" for
      the series itself), and why.
    - `bound`: the bound of a claim without one; None: claims must have a bound.
    - `external(parameters)`: what an estimate depends on besides its claim, its measurements and the code, such as the content of a file,
      as plain values; None where that cannot be known, as for a search that draws its examples. Such evaluations are not stored.
    """

    name: str
    parameters: type[AnyParameters]
    estimate: Callable[[Claim], Steps[Estimate]]
    lowest: float | None = None
    highest: float | None = None
    summary: str = ""
    unit: str = ""
    over_series: bool = False
    limits: Callable[[Any], tuple[float | None, float | None]] | None = None
    grows: bool = True
    growth: Callable[[Any], str | None] | None = None
    preflight: Callable[[Any, PreflightContext], Iterable[PreflightWarning]] | None = None
    unfit: Callable[[Any, str, Sequence[float]], tuple[str, str] | None] | None = None
    bound: Bound | None = None
    external: Callable[[Any], Any] | None = None

    def range(self, parameters: Any) -> tuple[float | None, float | None]:
        """The lowest and the highest possible value with these parameters; None: unbounded."""
        return (self.lowest, self.highest) if self.limits is None else self.limits(parameters)

    def warnings(self, parameters: Any, context: PreflightContext) -> Iterator[PreflightWarning]:
        """Why a claim with these parameters cannot be settled, or says little: first general warnings, then those of `preflight`."""
        specific = () if self.preflight is None else self.preflight(parameters, context)
        return chain(general_warnings(parameters, context), specific)
