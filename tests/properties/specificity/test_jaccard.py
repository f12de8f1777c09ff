"""jaccard over chance: by hand and against the typed null."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits.properties import PROPERTIES
from pytest_circuits.stats.overlap import typed_null
from tests.fakes.sets import UNITS, Table, rows
from tests.fakes.two_tasks import CORE, KIND, N, world


def overlap(made, **parameters):
    return made.measure("jaccard", **{"tasks": ["t", "u"], "p": 0.8, "resamples": 200} | parameters)


def test_jaccard_over_chance_is_the_distance_from_random_sets_of_the_types():
    plain, over = overlap(world()), overlap(world(), over_chance=True)
    null = typed_null(np.isin(UNITS, CORE), np.isin(UNITS, ["L0H0", "L2MLP", "L2H2"]), KIND)
    assert plain.value == pytest.approx(1 / 5) == over.details["jaccard"]
    assert over.value == pytest.approx(1 / 5 - null.mean) == plain.details["over_chance"]
    assert over.interval[0] <= over.value <= over.interval[1]
    assert f"Jaccard 0.200, of which {null.mean:.3f} by chance" in over.details["notes"]


def test_sets_that_overlap_by_counting_alone_are_at_zero_over_chance():
    """All three MLPs in both: there is no other way to have three."""
    mlps = ["L0MLP", "L1MLP", "L2MLP"]
    made = world(t=Table(rows(N, (N, mlps))), u=Table(rows(N, (N, mlps))))
    assert overlap(made).value == 1
    assert overlap(made, over_chance=True).value == pytest.approx(0)


def test_sets_that_avoid_each_other_are_below_chance():
    made = world(u=Table(rows(N, (N, ["L0H1", "L1MLP", "L1H2"]))))
    found = overlap(made, over_chance=True)
    assert -1 < found.value < 0 and found.value == -found.details["chance"]["by_type"]["mean"]


def test_the_range_of_jaccard_depends_on_chance_being_subtracted():
    prop = PROPERTIES.get("jaccard")
    assert prop.range(prop.parameters(tasks=["t", "u"])) == (0, 1)
    assert prop.range(prop.parameters(tasks=["t", "u"], over_chance=True)) == (-1, 1)
