"""Components that a test puts into each circuit, on a model of 16 components."""

from __future__ import annotations

import json

import numpy as np

from pytest_circuits.core.units import Universe
from pytest_circuits.stats.split import split_by_group
from tests.fakes.components import Fake, Study, planted_scores

UNIVERSE = Universe(4, 3)  # 16 components: L0H0 L0H1 L0H2 L0MLP L1H0 …


N = 40


GROUPS = tuple(f"g{i}" for i in range(N))


EVALUATION = split_by_group(GROUPS, 0.5, 0)[1]


def circuits(*rows):
    """Scores: row i gives the units of example i's circuit, the first ones the stronger; all examples cycle through the rows."""
    scores = np.zeros((N, UNIVERSE.components))
    for i in range(N):
        units = rows[i % len(rows)]
        scores[i, UNIVERSE.index(units)] = np.arange(len(units), 0, -1)
    return scores


def study(scores=None, **fake):
    return Study(UNIVERSE, {"t": Fake(planted_scores(N, UNIVERSE, ["L0H0"]) if scores is None else scores, **fake)})


def plain(details):
    """Details survive JSON, without NaN."""
    return json.loads(json.dumps(details, allow_nan=False))
