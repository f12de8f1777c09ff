"""Planted models opened for measuring, and small calculations on what was measured."""

from __future__ import annotations

from functools import cache

import numpy as np

from pytest_circuits import open_model
from tests.fakes.planted_oracle import TOLERANCE, planted, universe


@cache
def opened(name):
    case = planted(name)
    return case, open_model(case.model, case.tokenizer)


@cache
def swept(name, kind):
    case, subject = opened(name)
    return subject.sweep(case.task, kind=kind)


def columns(case, units):
    names = universe(case)
    return [names.index(unit) for unit in units]


def close(found, wanted):
    np.testing.assert_allclose(found, np.broadcast_to(wanted, np.shape(found)), atol=TOLERANCE, rtol=0)


def faithfulness(outcome, empty):
    """(F(kept) − F(∅)) / (F(M) − F(∅)) by means over the examples."""
    nothing = empty.metric.mean()
    return (outcome.metric.mean() - nothing) / (outcome.baseline.metric.mean() - nothing)


def single_effects(name, kind, units):
    case, _ = opened(name)
    found = swept(name, kind)
    return (found.metric - found.baseline.metric[:, None])[:, columns(case, units)]
