"""Membership of named units in estimated sets, and what random sets do, against enumeration and simulation."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats.membership import NO, UNKNOWN, YES, frequent, possible, random_match, support
from pytest_circuits.stats.overlap import jaccard, typed_null


def names(n):
    return [f"g{i}" for i in range(n)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_match_is_what_enumerating_all_random_sets_gives(data):
    labels = data.draw(st.lists(st.sampled_from(["head", "mlp"]), min_size=2, max_size=7))
    masks = st.lists(st.booleans(), min_size=len(labels), max_size=len(labels)).filter(any)
    found, known = (np.array(data.draw(masks)) for _ in range(2))
    places = {label: [i for i, one in enumerate(labels) if one == label] for label in set(labels)}
    choices = [combinations(here, int(found[here].sum())) for here in places.values()]
    sets = [np.isin(np.arange(len(labels)), sum(picked, ())) for picked in product(*choices)]
    hits = np.array([(s & known).sum() for s in sets])
    expected = {
        "overlap": hits.mean(),
        "recall": hits.mean() / known.sum(),
        "precision": hits.mean() / found.sum(),
        "jaccard": np.mean([jaccard(s, known) for s in sets]),
        "contains": np.mean(hits == known.sum()),
        "excludes": np.mean(hits == 0),
        "p_at_least": np.mean(hits >= (found & known).sum()),
    }
    assert random_match(found, known, labels) == pytest.approx(expected)
    assert random_match(found, known, labels)["jaccard"] == pytest.approx(typed_null(found, known, labels).mean)


def test_random_match_refuses_empty_sets_and_labels_that_do_not_fit():
    with pytest.raises(Invalid, match="empty set"):
        random_match([False, False], [True, False], ["head", "head"])
    with pytest.raises(OptionError, match="1 labels for 2"):
        random_match([True, False], [True, False], ["head"])


def test_frequent_says_yes_no_or_not_known():
    """Of 200 examples: a unit in all, in none, and in as many as asked for."""
    members = np.zeros((200, 3), bool)
    members[:, 0] = True
    members[:100, 2] = True
    members = members[np.random.default_rng(0).permutation(200)]
    groups = names(200)
    assert frequent(members[:, [0]], groups, 0.9)[0] == YES
    assert frequent(members[:, [0, 1]], groups, 0.9)[0] == NO
    assert frequent(members[:, [0, 2]], groups, 0.5)[0] == UNKNOWN
    assert frequent(members[:, [1]], groups, 0.5, inside=False)[0] == YES
    assert frequent(members[:, [0, 1]], groups, 0.5, inside=False)[0] == NO
    assert frequent(members[:, [1, 2]], groups, 0.5, inside=False)[0] == UNKNOWN
    _, rows = frequent(members, groups, 0.5)
    assert rows[:, 0] == pytest.approx([1, 0, 0.5])
    assert (rows[:, 1] <= rows[:, 0]).all() and (rows[:, 0] <= rows[:, 2]).all()


def test_at_p_1_membership_can_be_refuted_and_never_shown():
    """That a unit is in every circuit of the population cannot be learnt from examples."""
    assert frequent(np.ones((1000, 1), bool), names(1000), 1.0)[0] == UNKNOWN
    assert frequent(np.arange(1000)[:, None] % 2 == 0, names(1000), 1.0)[0] == NO


def test_few_examples_that_all_agree_are_not_enough():
    """With frequency 0.9, 20 of 20 happens one time in eight."""
    assert frequent(np.ones((20, 1), bool), names(20), 0.9)[0] == UNKNOWN
    assert frequent(np.ones((20, 1), bool), names(20), 0.5)[0] == YES


def test_groups_count_not_examples():
    """400 copies in 4 groups are 4 observations."""
    assert frequent(np.ones((400, 1), bool), [f"g{i % 4}" for i in range(400)], 0.5)[0] == UNKNOWN


@pytest.mark.parametrize("inside", [True, False])
def test_membership_is_wrongly_asserted_or_denied_in_few_of_many_studies(inside):
    """Four units, three clearly on the right side of P and one just on the wrong side (or all just on the right one): at most 5%."""
    rng = np.random.default_rng(1)
    clear = 0.99 if inside else 0.1
    wrong = 0.5 - 1e-9 if inside else 0.5
    right = 0.5 if inside else 0.5 - 1e-9
    asserted = denied = 0
    for _ in range(100):
        draw = rng.random((60, 4))
        asserted += frequent(draw < [clear, clear, clear, wrong], names(60), 0.5, inside=inside)[0] == YES
        denied += frequent(draw < [right] * 4, names(60), 0.5, inside=inside)[0] == NO
    assert asserted <= 5 and denied <= 5


def test_support_is_the_share_of_resamples_that_agree():
    """Whether group 0 was drawn: 1 − (1 − 1/5)^5 = 0.672 of them."""
    between, share = support(lambda counts: counts[:, 0] > 0, 5, resamples=20000)
    assert (between, share) == (UNKNOWN, pytest.approx(1 - 0.8**5, abs=0.015))
    assert support(lambda counts: counts.sum(1) == 5, 5) == (YES, 1.0)
    assert support(lambda counts: counts[:, 0] < 0, 5) == (NO, 0.0)
    assert support(lambda counts: counts[:, 0] < 5, 5)[0] == YES  # all but 1 in 3125
    with pytest.raises(Invalid, match="at least 2 groups"):
        support(lambda counts: counts[:, 0] > 0, 1)


def test_a_unit_is_possible_unless_its_frequency_is_clearly_below_p():
    """Of 100 groups of one example: 50 is 3 standard errors below 65%, 60 is one below it, 65 is at it, none never."""
    tallies = np.zeros((100, 4), np.int64)
    for unit, count in enumerate((50, 60, 65, 0)):
        tallies[:count, unit] = 1
    assert possible(tallies, np.ones(100, np.int64), 0.65).tolist() == [False, True, True, False]
    assert possible(tallies, np.ones(100, np.int64), 0.65, 0.999).tolist() == [True, True, True, False]
    clustered = np.repeat(tallies[::10], 10, axis=0)  # ten groups of ten alike are ten observations
    sums = clustered.reshape(10, 10, 4).sum(1)
    assert possible(sums, np.full(10, 10), 0.65).tolist() == [True, True, True, False]
