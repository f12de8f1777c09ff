"""Exact amounts, circuit sets and unit names against plain definitions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.core.results import Attribution, CircuitSet
from pytest_circuits.core.shares import Size, exact, needed, share
from pytest_circuits.core.units import Universe, head_mlp_split, layer_of, per_layer
from pytest_circuits.errors import OptionError, UnitError


def test_needed_is_exact_for_every_percentage_and_n_up_to_1000():
    """ceil(P·n) by integers alone; a float ceil is wrong for many of these."""
    wrong = 0
    for percent in range(1, 101):
        for n in range(0, 1001):
            expected = -(-percent * n // 100)
            assert needed(percent / 100, n) == expected
            wrong += ceil(percent / 100 * n) != expected
    assert wrong > 100


@pytest.mark.parametrize("p", [0.005, 0.333, 0.999, 1e-3, 0.0625])
def test_needed_is_exact_for_other_shares(p):
    """As the decimal was written."""
    for n in range(1, 1001):
        assert needed(p, n) == ceil(Fraction(str(p)) * n)


@pytest.mark.parametrize("p", [0, 0.0, -0.1, 1.0001, 2, True, None, "0.5", float("nan"), float("inf")])
def test_a_share_outside_0_to_1_is_refused(p):
    """Zero and booleans too."""
    with pytest.raises(OptionError, match=r"\(0, 1\]"):
        share(p)


def test_sizes_are_exact_for_every_percentage():
    """floor, ceil and nearest (halves up), at least 1 and at most all."""
    for percent in range(1, 101):
        for universe in (1, 2, 15, 99, 100, 234, 700, 1000, 1188):
            size, product = Size.parse(f"{percent}%"), Fraction(percent, 100) * universe
            assert size.of(universe) == max(1, floor(product))
            assert size.of(universe, "ceil") == ceil(product)
            assert size.of(universe, "nearest") == max(1, floor(product + Fraction(1, 2)))
    assert Size.parse("0.29%").of(10000) == 29  # 0.0029 * 10000 is 28.999… in floats
    assert (Size.parse(7).of(5), Size.parse(7).of(700), Size.parse(" 10 % ").of(700)) == (5, 7, 70)
    assert (str(Size.parse("12.5%")), str(Size.parse(7)), exact(0.95)) == ("12.5%", "7", Fraction(19, 20))


@pytest.mark.parametrize("size", [0, -1, "0%", "-5%", "101%", "10", 0.1, "ten%", "%", "1/0%", "nan%", "inf%", None, True, [3]])
def test_impossible_sizes_are_refused(size):
    """With what is allowed and what was given."""
    with pytest.raises(OptionError, match=r"circuit size.*got"):
        Size.parse(size)


def test_an_unknown_rounding_is_refused():
    """With the allowed ones."""
    with pytest.raises(OptionError, match="floor, ceil, nearest"):
        Size.parse("10%").of(100, "up")


def attribution(rows) -> Attribution:
    scores = np.array(rows, np.float32)
    return Attribution(scores, tuple(f"L0H{i}" for i in range(scores.shape[1])), "atp", "component", "logit_diff")


def test_circuits_take_the_largest_absolute_scores():
    """Negative scores count by their size; ties go to the unit that comes first."""
    found = attribution([[1, -5, 2, 0], [3, 3, 3, 3], [0, 1, 1, 1]]).circuits(2)
    assert found.members.tolist() == [[False, True, True, False], [True, True, False, False], [False, True, True, False]]


def test_a_row_of_zeros_has_no_circuit_and_zeros_are_never_members():
    """Not even when K asks for more units than have a score."""
    found = attribution([[0, 0, 0, 0], [0, 2, 0, 0], [-0.0, 1, 2, 3]]).circuits("100%")
    assert found.members.sum(1).tolist() == [0, 1, 3]
    assert found.coverage(np.array([True, True, True, True])).tolist() == [0.0, 1.0, 1.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 10**6), st.integers(1, 12))
def test_circuits_equal_a_sort_written_out(n, units, seed, k):
    """By (−|score|, column), zeros left out; many ties."""
    scores = np.random.default_rng(seed).integers(-3, 4, (n, units)).astype(np.float32)
    found = attribution(scores).circuits(k)
    for row, mine in zip(scores, found.members, strict=True):
        order = sorted(range(units), key=lambda i: (-abs(row[i]), i))[: min(k, units)]
        assert set(np.flatnonzero(mine)) == {i for i in order if row[i] != 0}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 8), st.integers(0, 10**6), st.integers(1, 100))
def test_shared_sets_and_reuse_equal_their_definitions(n, units, seed, percent):
    """S_P = { u : count ≥ ceil(P·n) }; coverage |C ∩ S|/|C|, size min(|S|, k)/k; their mean."""
    members = np.random.default_rng(seed).random((n, units)) < 0.6
    found, p = CircuitSet(members, tuple(f"L0H{i}" for i in range(units))), percent / 100
    circuits = [set(np.flatnonzero(row)) for row in members]
    shared = {u for u in range(units) if 100 * sum(u in c for c in circuits) >= percent * n}
    assert found.shared(p) == tuple(f"L0H{u}" for u in sorted(shared))
    assert found.reuse(p) == pytest.approx(np.mean([len(c & shared) / len(c) if c else 0 for c in circuits]))
    by_size = np.mean([min(len(shared), len(c)) / len(c) if c else 0 for c in circuits])
    assert found.reuse(p, "size") == pytest.approx(by_size)
    assert found.reuse(1.0) == pytest.approx(found.reuse(1.0, "size"))


def test_an_unknown_definition_of_reuse_is_refused():
    """Coverage or size."""
    with pytest.raises(OptionError, match="coverage, size"):
        CircuitSet(np.ones((2, 2), bool), ("L0H0", "L0H1")).reuse(0.5, "coverge")


def test_no_examples_share_nothing():
    """Every unit is in at least 0 of 0 examples, but there is no shared set of nothing."""
    nothing = CircuitSet(np.zeros((0, 3), bool), ("L0H0", "L0H1", "L0MLP"))
    with pytest.raises(OptionError, match="no examples"):
        nothing.shared(0.9)
    with pytest.raises(OptionError, match="no examples"):
        nothing.reuse(0.9)


MODEL = Universe(layers=12, heads=4, neurons=20)


def test_names_and_columns_are_one_order():
    """By layer, heads before the MLP; neurons by layer."""
    assert MODEL.components == 60 and MODEL.names()[:6] == ("L0H0", "L0H1", "L0H2", "L0H3", "L0MLP", "L1H0")
    assert MODEL.index(MODEL.names()) == list(range(60))
    assert MODEL.index(MODEL.names("neuron"), "neuron") == list(range(240)) and MODEL.size("neuron") == 240
    assert MODEL.index(["L10H1", "L11MLP"]) == [51, 59] and MODEL.index(["L10N7"], "neuron") == [207]
    assert [layer_of(n) for n in ("L10H1", "L3MLP", "L11N4")] == [10, 3, 11]
    assert head_mlp_split(["L0H1", "L0MLP", "L1MLP"]) == {"heads": 1, "mlps": 2} and per_layer(["L0H1", "L2MLP", "L2H0"], 3) == [1, 0, 2]


@pytest.mark.parametrize(
    ("name", "level", "message"),
    [
        ("L12H0", "component", r"'L12H0' does not exist: this model has layers 0–11"),
        ("L12MLP", "component", "layers 0–11"),
        ("L3H4", "component", r"heads 0–3"),
        ("L3N20", "neuron", r"neurons 0–19"),
        ("L3H1", "neuron", "not a neuron"),
        ("L3N1", "component", "not a component"),
        ("L3", "component", "not a unit name"),
        ("l3h1", "component", "not a unit name"),
        ("L3H1 ", "component", "not a unit name"),
        ("L3H1\n", "component", "not a unit name"),
        ("10.1", "component", "not a unit name"),
        (10.1, "component", "not a unit name"),
        ("L3MLP2", "component", "not a unit name"),
        ("L-1H0", "component", "not a unit name"),
        ("L03H1", "component", "not a unit name"),
        ("L3H٣", "component", "not a unit name"),
        ("", "component", "not a unit name"),
    ],
)
def test_wrong_unit_names_are_refused(name, level, message):
    """What is wrong, and what this model has."""
    with pytest.raises(UnitError, match=message):
        MODEL.index([name], level)
