"""What all parts of the report have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

VerdictName = Literal["certified", "refuted", "inconclusive", "invalid"]
Expectation = Literal["certified", "refuted", "inconclusive", "invalid", "measured"]
Interval = tuple[float, float]
HalfOpenInterval = Annotated[tuple[float | None, float | None], Field(description="An infinite end is null.")]


class ReportPart(BaseModel):
    """Immutable. A field that was never set is absent from the JSON document; `null` means that there is no value."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True, protected_namespaces=(), defer_build=True
    )

    def as_json(self) -> dict[str, Any]:
        """Plain values under the names of the JSON document."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class StatedBound(ReportPart):
    """The bound of a claim, as written in a spec: exactly one of the three."""

    at_least: float | None = None
    at_most: float | None = None
    within: Interval | None = None

    @model_validator(mode="after")
    def _has_one_side_or_two(self) -> Self:
        if sum(value is not None for value in (self.at_least, self.at_most, self.within)) != 1:
            raise ValueError("a bound is exactly one of at_least, at_most and within")
        return self

    def edges(self) -> tuple[float | None, float | None]:
        """Lower and upper edge; None where the bound has none."""
        return (self.at_least, self.at_most) if self.within is None else self.within
