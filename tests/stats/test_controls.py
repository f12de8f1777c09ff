"""Random controls: what is drawn, what is refused, and the rank of an observation."""

import subprocess
import sys
from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.core.units import Universe, head_mlp_split, is_mlp
from pytest_circuits.errors import Invalid, OptionError, UnitError
from pytest_circuits.stats import CONTROLS
from pytest_circuits.stats.controls import Stratum, distinct, draw_controls, expected_overlap, monte_carlo_p

UNIVERSE = Universe(4, 4)
SHARED = ("L0H1", "L1H2", "L0MLP")
some = st.sets(st.sampled_from(UNIVERSE.component_names), min_size=1, max_size=9).map(tuple)


@given(some, st.sampled_from(["c3", "c3_parity", "c3_any"]), st.integers(0, 50))
@settings(deadline=None)
def test_controls_have_the_size_and_types_that_their_rule_promises(shared, rule, seed):
    try:
        found = draw_controls(shared, UNIVERSE, rule, 5, seed)
    except Invalid:
        mlps = sum(map(is_mlp, shared))
        assert rule == "c3" and (mlps > 2 or len(shared) - mlps > 8)  # of 4 MLPs and 16 heads
        return
    for control in found:
        assert len(set(control)) == len(shared)
        assert list(control) == [name for name in UNIVERSE.component_names if name in control]
        if rule != "c3_parity":
            assert set(control) & set(shared) == set()
        if rule != "c3_any":
            assert head_mlp_split(control) == head_mlp_split(shared)


@given(some, st.integers(0, 50))
@settings(deadline=None)
def test_the_first_draws_do_not_depend_on_how_many_are_drawn_nor_on_order(shared, seed):
    assert draw_controls(shared, UNIVERSE, "c3_parity", 49, seed)[:20] == draw_controls(shared[::-1], UNIVERSE, "c3_parity", 20, seed)


def test_draws_do_not_depend_on_the_hash_seed():
    code = (
        "from pytest_circuits.stats.controls import draw_controls; from pytest_circuits.core.units import Universe;"
        "print(draw_controls({'L0H1', 'L1H2', 'L0MLP'}, Universe(4, 4), 'c3', 9, 3))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": h, "PYTHONPATH": "."}, capture_output=True, text=True, check=True
        ).stdout
        for h in "123"
    }
    assert len(runs) == 1


def test_every_possible_control_is_equally_likely():
    draws = draw_controls(("L0H0", "L0MLP"), Universe(2, 3), "c3", 2000, 0)
    counts = Counter(draws)
    assert len(counts) == distinct(("L0H0", "L0MLP"), Universe(2, 3), "c3") == 5
    assert min(counts.values()) > 400 - 5 * 18 and max(counts.values()) < 400 + 5 * 18


def test_other_seeds_give_other_controls():
    assert draw_controls(SHARED, UNIVERSE, "c3", 10, 0) != draw_controls(SHARED, UNIVERSE, "c3", 10, 1)


def test_distinct_counts_the_possible_sets():
    assert distinct(SHARED, UNIVERSE, "c3") == comb(14, 2) * 3
    assert distinct(SHARED, UNIVERSE, "c3_parity") == comb(16, 2) * 4
    assert distinct(SHARED, UNIVERSE, "c3_any") == comb(17, 3)
    assert distinct(UNIVERSE.component_names, UNIVERSE, "c3_parity") == 1


def test_the_expected_overlap_is_what_draws_have_on_average():
    assert expected_overlap(SHARED, UNIVERSE, "c3") == 0.0
    expected = expected_overlap(SHARED, UNIVERSE, "c3_parity")
    assert expected == pytest.approx((2 * 2 / 16 + 1 / 4) / 3)
    overlaps = [len(set(c) & set(SHARED)) / 3 for c in draw_controls(SHARED, UNIVERSE, "c3_parity", 2000)]
    assert np.mean(overlaps) == pytest.approx(expected, abs=5 * np.std(overlaps) / 2000**0.5)
    assert expected_overlap(UNIVERSE.component_names, UNIVERSE, "c3_parity") == 1.0


def test_a_short_pool_is_invalid_with_the_arithmetic_and_the_alternatives():
    with pytest.raises(Invalid) as caught:
        draw_controls(("L0MLP", "L1MLP", "L2MLP", "L0H0"), UNIVERSE, "c3", 20)
    assert str(caught.value) == (
        "3 MLPs are needed but only 1 of 4 lies outside the shared set; use control: c3_parity (members of the shared set allowed), "
        "control: c3_any (any type), or a smaller circuit size"
    )
    assert caught.value.details == {"needed": 3, "available": 1, "of": 4, "what": "MLPs"}
    with pytest.raises(Invalid, match="11 components are needed but only 9 of 20 lie outside"):
        draw_controls(UNIVERSE.component_names[:11], UNIVERSE, "c3_any", 20)
    for anything in (draw_controls, lambda *rest: distinct(*rest[:3])):
        with pytest.raises(Invalid, match="shared set is empty"):
            anything((), UNIVERSE, "c3", 20)


def test_unknown_rules_and_names_are_refused():
    with pytest.raises(OptionError, match="unknown control 'c4'"):
        draw_controls(SHARED, UNIVERSE, "c4", 20)
    with pytest.raises(UnitError, match="L9H0"):
        draw_controls(("L9H0",), UNIVERSE, "c3", 20)
    with pytest.raises(OptionError, match="at least 1"):
        draw_controls(SHARED, UNIVERSE, "c3", 0)


def test_a_new_rule_is_a_function_and_a_registration():
    def last_layer(shared, universe):
        return [Stratum("last-layer heads", len(shared), tuple(universe.index(["L3H0", "L3H1", "L3H2", "L3H3"])), 4, False)]

    assert set(CONTROLS.names()) >= {"c3", "c3_parity", "c3_any"}
    assert all(name.startswith("L3H") for name in draw_controls(SHARED, UNIVERSE, last_layer, 1)[0])
    with pytest.raises(Invalid, match="4 of 4 lie in the pool; use another control"):
        draw_controls(UNIVERSE.component_names[:5], UNIVERSE, last_layer, 1)


def test_the_rank_p_value_counts_ties_against_the_observation():
    assert monte_carlo_p(1.0, [0.0] * 19) == 0.05
    assert monte_carlo_p(1.0, [0.0] * 18 + [1.0]) == 0.1
    assert monte_carlo_p(-1.0, [0.0] * 19, "less") == 0.05
    assert monte_carlo_p(1.0, [0.0] * 19, "two-sided") == 0.1
    assert monte_carlo_p(0.0, [0.0] * 19, "two-sided") == 1.0
    assert monte_carlo_p(9.0, [0.0] * 20) > 0.047


def test_the_rank_p_value_is_valid_under_the_null():
    rng = np.random.default_rng(0)
    p = [monte_carlo_p(x[0], x[1:]) for x in rng.normal(size=(2000, 20))]
    assert np.mean(np.asarray(p) <= 0.05) < 0.05 + 3.4 * (0.05 * 0.95 / 2000) ** 0.5


def test_no_draws_nan_and_unknown_sides_are_refused():
    with pytest.raises(Invalid, match="no control draws"):
        monte_carlo_p(0.0, [])
    with pytest.raises(Invalid, match="NaN"):
        monte_carlo_p(float("nan"), [0.0])
    with pytest.raises(OptionError, match="unknown side"):
        monte_carlo_p(0.0, [0.0], "up")
