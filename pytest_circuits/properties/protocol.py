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

    `lowest` and `highest` are the range of possible values (None: unbounded), which makes vacuous bounds visible; where it depends
    on the parameters, `limits(parameters)` says it. `summary` is one line for help texts. Combinations of parameters are refused by
    the validators of `parameters`. A property `over_series` is about several models: one claim for each entry of `models`, and
    all models of the entry in `Claim.series`.

    What sequential sampling (`max_n`) needs to know: whether the estimate `grows` more certain with more evaluation examples (not
    where it is made of discovery examples alone; where that depends on the parameters, `growth(parameters)` says why not).
    `preflight(parameters, context)` says why a claim cannot be settled, before anything is measured. Of a property over a series,
    `unfit(parameters, name, places)` says which parameter ("" for the series) does not fit models at these places, and why.
    `bound` is that of a claim which writes none; without it a claim has to write its own.
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

    def range(self, parameters: Any) -> tuple[float | None, float | None]:
        """The lowest and the highest value that these parameters allow; None: unbounded."""
        return (self.lowest, self.highest) if self.limits is None else self.limits(parameters)

    def warnings(self, parameters: Any, context: PreflightContext) -> Iterator[PreflightWarning]:
        """Why a claim with these parameters cannot be settled, or says little: what holds of any claim, then what `preflight` adds."""
        specific = () if self.preflight is None else self.preflight(parameters, context)
        return chain(general_warnings(parameters, context), specific)
