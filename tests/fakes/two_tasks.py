"""Two tasks whose shared sets are known: three components in every circuit of one, others in some of them."""

from __future__ import annotations

import numpy as np

from tests.fakes.sets import UNITS, Table, World, rows

N = 60
CORE = ["L0H0", "L0MLP", "L1H1"]
KIND = ["mlp" if u.endswith("MLP") else "head" for u in UNITS]


def noisy(seed=0, flicker=0.6):
    members = rows(N, (N, CORE))
    rng = np.random.default_rng(seed)
    for unit in ("L1H0", "L2H0", "L2MLP"):
        members[:, UNITS.index(unit)] = rng.random(N) < flicker
    return members


def world(**tables):
    return World({"t": Table(noisy()), "u": Table(rows(N, (N, ["L0H0", "L2MLP", "L2H2"]))), **tables})
