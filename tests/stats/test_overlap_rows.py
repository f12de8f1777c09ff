"""Agreement of sets over resamples: each row equals what the plain definition gives for the repeated examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.core.results import CircuitSet
from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.overlap import (  # fmt: skip
    agreement_rows,
    alone_rows,
    chance_rows,
    group_tallies,
    half_rows,
    halves,
    jaccard,
    split_half,
    typed_null,
)

LABELS = ["head"] * 5 + ["mlp"] * 3
UNITS = tuple("abcdefgh")
GROUPS = [str(i % 6) for i in range(30)]


def plain(a, b, labels):
    """Jaccard, less chance where labels are given; 0 for two empty sets."""
    if not (a | b).any():
        return 0.0
    return jaccard(a, b) - (typed_null(a, b, labels).mean if labels else 0.0)


def shared(members, p):
    return CircuitSet(members, UNITS).shared_mask(p) if len(members) else np.zeros(8, bool)


def case(seed):
    rng = np.random.default_rng(seed)
    return rng.random((30, 8)) < 0.6, rng.multinomial(6, [1 / 6] * 6, size=4)


@given(st.integers(0, 999))
@settings(deadline=None, max_examples=60)
def test_chance_rows_are_the_typed_null_of_every_row(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((6, 8)) < 0.4, rng.random((6, 8)) < 0.4
    found = chance_rows(a, b, LABELS)
    for x, y, value in zip(a, b, found, strict=True):
        assert value == pytest.approx(typed_null(x, y, LABELS).mean if (x | y).any() else np.nan, nan_ok=True)


def test_labels_in_any_order_are_counted_by_their_names():
    order = np.random.default_rng(0).permutation(8)
    a, b = np.eye(8, dtype=bool)[[0, 6]], np.tile(np.arange(8) < 6, (2, 1))
    assert chance_rows(a[:, order], b[:, order], [LABELS[i] for i in order]) == pytest.approx(chance_rows(a, b, LABELS))


def test_two_empty_sets_agree_in_nothing():
    none = np.zeros((1, 8), bool)
    assert agreement_rows(none, none).tolist() == [0.0]
    assert agreement_rows(none, none, LABELS).tolist() == [0.0]
    with pytest.raises(OptionError, match="two masks over 8 labelled units"):
        chance_rows(none, np.zeros((2, 8), bool), LABELS)


@given(st.integers(0, 999), st.sampled_from([0.3, 0.5, 0.8]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_halves_of_resampled_groups_equal_those_of_the_repeated_examples(seed, p, over_chance):
    members, counts = case(seed)
    labels = LABELS if over_chance else None
    first = halves(6, 3, seed)
    found = half_rows(counts, *group_tallies(members, GROUPS), p, first, labels)
    for row, value in zip(counts, found, strict=True):
        each = []
        for half in first:
            one, two = ([i for i, g in enumerate(GROUPS) for _ in range(row[int(g)]) if half[int(g)] == side] for side in (1, 0))
            each.append(plain(shared(members[one], p), shared(members[two], p), labels))
        assert value == pytest.approx(np.mean(each))


@given(st.integers(0, 999), st.sampled_from([0.3, 0.5, 0.8]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_groups_alone_equal_those_of_the_repeated_examples(seed, p, over_chance):
    members, counts = case(seed)
    labels, which = (LABELS if over_chance else None), [0, 2, 5]
    found = alone_rows(counts, *group_tallies(members, GROUPS), p, which, labels)
    for row, value in zip(counts, found, strict=True):
        each = []
        for group in which:
            own = [i for i, g in enumerate(GROUPS) if int(g) == group]
            rest = [i for i, g in enumerate(GROUPS) for _ in range(row[int(g)]) if int(g) != group]
            each += [plain(shared(members[own], p), shared(members[rest], p), labels)] * row[group]
        assert value == pytest.approx(np.mean(each) if each else np.nan, nan_ok=True)


def test_halves_are_halves():
    found = halves(7, 50, 1)
    assert (found.sum(1) == 3).all() and set(found.ravel()) == {0, 1}
    assert len({tuple(row) for row in found}) > 20
    assert (halves(7, 50, 1) == found).all() and not (halves(7, 50, 2) == found).all()
    assert found.sum(0).min() > 15 and found.sum(0).max() < 28


def test_split_half_is_the_mean_over_these_halves():
    members, _ = case(1)
    mean, values = split_half(members, GROUPS, 0.5, repeats=20)
    ones = np.ones((1, 6), np.int64)
    assert mean == pytest.approx(half_rows(ones, *group_tallies(members, GROUPS), 0.5, halves(6, 20))[0])
    with pytest.raises(Invalid, match="at least 2 groups"):
        split_half(members, ["one"] * 30, 0.5)
    assert len(values) == 20
