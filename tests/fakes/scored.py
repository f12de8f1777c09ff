"""A property whose per-example values a test states for each model, as a baseline keeps them: a mean over groups with its values."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_circuits.core.verdict import Estimate
from pytest_circuits.measurement.requests import Describe, Encode
from pytest_circuits.properties.parameters import Parameters, TaskName
from pytest_circuits.properties.payload import per_group
from pytest_circuits.properties.protocol import Claim, Property
from pytest_circuits.stats.betting import grouped_mean_interval

RIGHT = {"weights of model": 0.75, "weights of other": 0.5}
"""The share of examples, the first ones, on which the model of these weights has 1 and not 0; 1 for any other."""


class Scored(Parameters):
    """The mean of the values; `keeps` says whether the baseline gets them."""

    task: TaskName
    keeps: bool = True


def estimate(claim: Claim) -> Any:
    p = claim.parameters
    model = yield Describe(claim.model)
    encoded = yield Encode(claim.model, claim.tasks[p.task])
    values = (np.arange(encoded.n) < round(RIGHT.get(model.fingerprint, 1.0) * encoded.n)).astype(float)
    value, interval, _ = grouped_mean_interval(values, list(encoded.groups), p.confidence)
    kept = per_group(values, list(encoded.groups), 0.0, 1.0) if p.keeps else {}
    return Estimate(value, interval, encoded.n, p.confidence, "betting", "scored", {}, payload=kept)


SCORED = Property("scored", Scored, estimate, 0.0, 1.0, "values that a test states")
