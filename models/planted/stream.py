"""The residual stream as named features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

BALLAST = 2.0**14
Features = Mapping[str, float]


class Stream:
    """Places of named features in a stream of `width` coordinates.

    `centred` (for LayerNorm, which subtracts the mean): each feature s is stored twice, as (s, −s), and read as half of the
    difference. The mean is then zero, and what rounding makes of it cancels in the reading.
    """

    def __init__(self, width: int, features: Sequence[str], centred: bool) -> None:
        self.width, self.centred = width, centred
        self._half = width // 2 if centred else width
        ballast = 2 if centred else 4  # four coordinates in all: the norm divides by BALLAST·√(4/width)
        if len(set(features)) != len(features) or len(features) + ballast > self._half:
            raise ValueError(f"{len(features)} distinct features and {ballast} of ballast must fit into {self._half} places")
        self.place = {name: ballast + i for i, name in enumerate(features)}
        self._ballast = range(ballast)

    def write(self, features: Features, ballast: bool = False) -> Tensor:
        """The stream vector [width] that holds these features, with the ballast on request."""
        vector = torch.zeros(self.width)
        for name, value in features.items():
            vector[self.place[name]] += value
        if ballast:
            vector[list(self._ballast)] = BALLAST
        if self.centred:
            vector[self._half :] = -vector[: self._half]
        return vector

    def read(self, features: Features) -> Tensor:
        """The weights [width] with which a reader sees Σ weight·feature."""
        vector = self.write(features)
        return vector / 2 if self.centred else vector

    def norm_weight(self) -> Tensor:
        """The norm weight [width] that undoes the division and hides the ballast."""
        weight = torch.full((self.width,), BALLAST * (4 / self.width) ** 0.5)
        hidden = [*self._ballast, *((self._half + i for i in self._ballast) if self.centred else ())]
        weight[hidden] = 0
        return weight
