"""What `circuits` measured: an estimate to look at, and to hold against a bound."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.claim import Claim
from ...core.verdict import Estimate
from ...errors import CircuitsError
from ...measurement.cost import Cost
from ...properties.parameters import AnyParameters

if TYPE_CHECKING:
    from ...claims.evaluation import MeasuredOutcome
    from ...core.results import Description


@dataclass(frozen=True)
class Measured:
    """A property as it was measured: an estimate, or the reason why there is none. Prints as value, interval and n.

    `claim` is what was measured: property, parameters, model or series, tasks, and what a drift compares with; it has no bound.
    """

    claim: Claim
    measured: MeasuredOutcome
    _charged: list[bool] = field(default_factory=list, repr=False, compare=False)

    def charge(self) -> Cost:
        """What it cost, for the first check of it; further checks of the same measurement cost nothing."""
        already, self._charged[:] = bool(self._charged), [True]
        return Cost() if already else self.cost

    @builtins.property
    def outcome(self) -> Estimate | CircuitsError:
        """The estimate, or the error that took its place."""
        return self.measured.outcome

    @builtins.property
    def property(self) -> str:
        """The name of the property."""
        return self.claim.property

    @builtins.property
    def parameters(self) -> AnyParameters:
        """The property's parameters."""
        return self.claim.parameters  # type: ignore[no-any-return]

    @builtins.property
    def cost(self) -> Cost:
        """What measuring it took."""
        return self.measured.cost

    @builtins.property
    def description(self) -> Description | None:
        """What the model is; None where it could not be opened."""
        return self.measured.model

    @builtins.property
    def estimate(self) -> Estimate:
        """The estimate. Raises `Invalid` (or the error that stopped the measurement) when there is none."""
        if isinstance(self.outcome, CircuitsError):
            raise self.outcome
        return self.outcome

    @builtins.property
    def value(self) -> float:
        """The estimated number."""
        return self.estimate.value

    @builtins.property
    def interval(self) -> tuple[float, float]:
        """Its interval."""
        return self.estimate.interval

    @builtins.property
    def n(self) -> int:
        """The number of examples."""
        return self.estimate.n

    @builtins.property
    def details(self) -> Mapping[str, Any]:
        """What a reader needs to believe it."""
        return self.estimate.details

    def __str__(self) -> str:
        return f"invalid: {self.outcome}" if isinstance(self.outcome, CircuitsError) else str(self.outcome)
