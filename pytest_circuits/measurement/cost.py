"""What judging a claim cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Model calls, wall-clock seconds, and how many results were read (`hits`) and made (`measured`).

    `forwards` and `backwards` count batched calls of the model. Encoding a task counts as measured when it had to
    be done; reading back an encoding that no claim asked for by itself is no hit.
    """

    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    hits: int = 0
    measured: int = 0

    @property
    def cached(self) -> bool:
        """Whether nothing was measured."""
        return self.measured == 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Cost)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(Cost)))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the fields, and `cached`."""
        return asdict(self) | {"cached": self.cached}
