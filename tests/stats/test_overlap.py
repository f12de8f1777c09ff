"""Overlaps of sets, their chance level and their noise ceiling."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle

from pytest_circuits.core.results import CircuitSet
from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.overlap import (
    containment,
    group_tallies,
    jaccard,
    jaccard_rows,
    overlap_coefficient,
    shared_rows,
    split_half,
    typed_null,
)

A = np.array([1, 1, 1, 0, 0], bool)
B = np.array([0, 1, 1, 1, 0], bool)
NONE = np.zeros(5, bool)


def test_overlaps_by_hand():
    assert jaccard(A, B) == 0.5
    assert overlap_coefficient(A, B) == pytest.approx(2 / 3)
    assert containment(A, A | B) == 1.0 and containment(A | B, A) == 0.75
    assert jaccard(A, NONE) == 0.0 and containment(A, NONE) == 0.0
    assert jaccard_rows(np.stack([A, NONE]), np.stack([B, NONE])) == pytest.approx([0.5, np.nan], nan_ok=True)


def test_empty_sets_are_invalid_where_the_overlap_is_undefined():
    for undefined in (lambda: jaccard(NONE, NONE), lambda: overlap_coefficient(A, NONE), lambda: containment(NONE, A)):
        with pytest.raises(Invalid, match="empty"):
            undefined()
    with pytest.raises(Invalid, match="no chance level"):
        typed_null(NONE, NONE, ["head"] * 5)
    with pytest.raises(OptionError, match="bool masks"):
        jaccard(A.astype(int), B.astype(int))


def enumerate_null(a, b, labels):
    """All placements of b's members within each label, a fixed: the definition, by brute force."""
    found = [0]
    for label in dict.fromkeys(labels):
        where = [i for i, other in enumerate(labels) if other == label]
        hits = [sum(a[i] for i in some) for some in combinations(where, int(b[where].sum()))]
        found = [x + y for x in found for y in hits]
    return np.array([i / (a.sum() + b.sum() - i) for i in found]), np.array(found)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from(["head", "mlp"])), min_size=2, max_size=9))
@settings(deadline=None)
def test_the_typed_null_equals_enumeration(units):
    a, b = (np.array([u[i] for u in units], bool) for i in (0, 1))
    labels = [u[2] for u in units]
    if not (a.any() or b.any()):
        return
    values, hits = enumerate_null(a, b, labels)
    null = typed_null(a, b, labels)
    assert null.mean == pytest.approx(values.mean())
    assert null.smallest == pytest.approx(values.min())
    assert null.p_at_least == pytest.approx((hits >= (a & b).sum()).mean())
    assert (values < null.low - 1e-12).mean() < 0.025 + 1e-12 and (values > null.high + 1e-12).mean() < 0.025 + 1e-12
    assert (values <= null.low + 1e-12).mean() >= 0.025 - 1e-9 and (values >= null.high - 1e-12).mean() >= 0.025 - 1e-9


def test_one_stratum_is_the_hypergeometric_distribution():
    a, b = np.zeros(3000, bool), np.zeros(3000, bool)
    a[:300], b[200:600] = True, True
    null = typed_null(a, b, ["neuron"] * 3000)
    hits = np.arange(301)
    chances = oracle.hypergeom(3000, 300, 400).pmf(hits)
    assert null.mean == pytest.approx((chances * hits / (700 - hits)).sum(), rel=1e-9)
    assert null.p_at_least == pytest.approx(oracle.hypergeom(3000, 300, 400).sf(99), rel=1e-6)


def test_mlp_heavy_circuits_overlap_by_counting_alone():
    """Two circuits of 23 of 26 MLPs share at least 20; without types the chance level would look like 5%."""
    labels = ["mlp"] * 26 + ["head"] * 208
    a, b = np.zeros(234, bool), np.zeros(234, bool)
    a[:23], b[3:26] = True, True
    typed, untyped = typed_null(a, b, labels), typed_null(a, b, ["any"] * 234)
    assert typed.smallest == pytest.approx(20 / 26)
    assert typed.mean > 0.77 and typed.p_at_least == 1.0
    assert untyped.mean < 0.06 and untyped.p_at_least < 1e-12


@given(st.integers(0, 999), st.sampled_from([0.1, 0.29, 0.5, 0.95, 1.0]))
@settings(deadline=None)
def test_shared_sets_of_resampled_groups_equal_those_of_the_repeated_examples(seed, p):
    rng = np.random.default_rng(seed)
    members, groups = rng.random((30, 8)) < 0.7, [str(i % 6) for i in range(30)]
    counts = rng.multinomial(6, [1 / 6] * 6, size=4)
    fast = shared_rows(counts, *group_tallies(members, groups), p)
    for row, mask in zip(counts, fast, strict=True):
        rows = [i for i, g in enumerate(groups) for _ in range(row[int(g)])]
        assert mask.tolist() == CircuitSet(members[rows], tuple("abcdefgh")).shared_mask(p).tolist()


def test_the_noise_ceiling_is_one_for_a_stable_set_and_lower_for_a_noisy_one():
    groups = [str(i) for i in range(40)]
    stable = np.tile(np.arange(10) < 4, (40, 1))
    assert split_half(stable, groups, 0.95)[0] == 1.0
    noisy = np.random.default_rng(0).random((40, 10)) < 0.5
    mean, values = split_half(noisy, groups, 0.5, repeats=50)
    assert 0.1 < mean < 0.9 and len(values) == 50
    assert mean == pytest.approx(np.nanmean(values))
    assert split_half(noisy, groups, 0.5, repeats=50)[0] == mean != split_half(noisy, groups, 0.5, seed=1, repeats=50)[0]


def test_halves_keep_groups_whole():
    """Every group has its own unit, in all of its examples: no unit is shared by halves that keep groups whole."""
    groups = [str(i // 5) for i in range(20)]
    members = np.eye(4, dtype=bool)[[int(g) for g in groups]]
    assert split_half(members, groups, 0.5)[0] == 0.0
    assert split_half(members, [str(i % 5) for i in range(20)], 0.1)[0] == 1.0


def test_halves_have_as_many_groups_as_each_other():
    """Every unit is missing in one of four groups: two groups share two units, while three would share all four at 60%."""
    assert split_half(~np.eye(4, dtype=bool), list("abcd"), 0.6)[0] == 0.0


def test_halves_without_any_shared_unit_have_no_ceiling():
    with pytest.raises(Invalid, match="no noise ceiling"):
        split_half(np.zeros((20, 4), bool), [str(i) for i in range(20)], 0.5)
    with pytest.raises(Invalid, match="at least 2 groups"):
        split_half(np.ones((20, 4), bool), ["one"] * 20, 0.5)
