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
    encodings: int = 0  # of `measured`, encodings that were only needed for other requests

    @property
    def cached(self) -> bool:
        """Whether nothing was measured."""
        return self.measured == 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Cost)))

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(Cost)))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the fields but `encodings`, and `cached`."""
        values = asdict(self)
        del values["encodings"]
        return values | {"cached": self.cached}

    def as_read(self, seconds: float) -> Cost:
        """What the same claim costs when all its results are read."""
        return Cost(seconds=seconds, hits=self.hits + self.measured - self.encodings)
