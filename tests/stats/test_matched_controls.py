"""Controls from the neighbourhood of a set: same layers, nearest norms, and what is left out of their pools."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.core.units import Universe, head_mlp_split, is_mlp, layer_of, per_layer
from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.stats import CONTROLS
from pytest_circuits.stats.controls import distinct, draw_controls, expected_overlap, strata_of
from pytest_circuits.stats.matched_controls import control_rule, same_layer

UNIVERSE = Universe(4, 4)
NORMS = np.arange(UNIVERSE.components, dtype=float)
some = st.sets(st.sampled_from(UNIVERSE.component_names), min_size=1, max_size=8).map(lambda s: tuple(sorted(s)))


def heads(names):
    return [name for name in names if not is_mlp(name)]


@given(some, st.sampled_from(["c3_typed_layer", "c3_matched"]), st.integers(0, 5), st.integers(0, 99))
@settings(deadline=None)
def test_neighbours_have_the_types_of_the_set_lie_outside_it_and_never_shrink(shared, name, seed, shuffle):
    rule = control_rule(name, np.random.default_rng(shuffle).random(UNIVERSE.components))
    try:
        found = draw_controls(shared, UNIVERSE, rule, 5, seed)
    except Invalid as problem:
        assert sum(map(is_mlp, shared)) > 2 and "MLPs are needed but only" in str(problem)
        return
    for control in found:
        assert len(set(control)) == len(shared)
        assert not set(control) & set(shared)
        assert head_mlp_split(control) == head_mlp_split(shared)


@given(st.sets(st.sampled_from(heads(UNIVERSE.component_names)), min_size=1, max_size=8))
@settings(deadline=None)
def test_each_layer_gives_as_many_heads_as_it_can(shared):
    """A layer with k members has 4 − k others: min(k, 4 − k) are taken there, and nothing is drawn for nobody."""
    shared = tuple(sorted(shared))
    wanted = per_layer(shared, 4)
    own = sum(min(k, 4 - k) for k in wanted)
    rule = control_rule("c3_typed_layer")
    assert same_layer(shared, UNIVERSE, strata_of(shared, UNIVERSE, rule)) == own
    for control in draw_controls(shared, UNIVERSE, rule, 3):
        got = per_layer(control, 4)
        assert sum(map(min, got, wanted)) == own


def test_what_a_layer_lacks_comes_from_the_nearest_one_the_lower_first():
    shared = ("L2H0", "L2H1", "L2H2")  # one head is left in layer 2; two must come from elsewhere
    strata = strata_of(shared, UNIVERSE, "c3_typed_layer")
    assert [(s.what, s.take, len(s.pool)) for s in strata] == [("heads of layer 1", 2, 4), ("heads of layer 2", 1, 1)]
    assert distinct(shared, UNIVERSE, "c3_typed_layer") == 6
    full = ("L2H0", "L2H1", "L2H2", "L2H3", "L1H0", "L1H1", "L1H2")  # layer 1 keeps its last head for itself
    found = {s.what: s.take for s in strata_of(full, UNIVERSE, "c3_typed_layer")}
    assert found == {"heads of layer 0": 2, "heads of layer 1": 1, "heads of layer 3": 4}


def test_an_mlp_is_replaced_by_one_of_the_two_nearest():
    (stratum,) = strata_of(("L1MLP",), UNIVERSE, "c3_typed_layer")
    assert [UNIVERSE.component_names[i] for i in stratum.pool] == ["L0MLP", "L2MLP"]
    (stratum,) = strata_of(("L0MLP", "L1MLP"), UNIVERSE, "c3_typed_layer")
    assert [UNIVERSE.component_names[i] for i in stratum.pool] == ["L2MLP", "L3MLP"]
    assert same_layer(("L1MLP",), UNIVERSE, [stratum]) == 0


def test_the_matched_control_takes_the_nearest_norms_of_the_layer():
    norms = NORMS.copy()
    norms[UNIVERSE.index(["L1H0", "L1H1", "L1H2", "L1H3"])] = [5.0, 5.5, 4.9, 50.0]
    rule = control_rule("c3_matched", norms)
    assert set(draw_controls(("L1H0",), UNIVERSE, rule, 40)) == {("L1H1",), ("L1H2",)}
    assert same_layer(("L1H0",), UNIVERSE, strata_of(("L1H0",), UNIVERSE, rule)) == 1


def test_matched_mlps_have_the_nearest_norm_whatever_their_layer():
    norms = NORMS.copy()
    norms[UNIVERSE.index(["L0MLP", "L1MLP", "L2MLP", "L3MLP"])] = [3.0, 9.0, 3.2, 2.9]
    rule = control_rule("c3_matched", norms)
    assert set(draw_controls(("L0MLP",), UNIVERSE, rule, 40)) == {("L2MLP",), ("L3MLP",)}


def test_the_matched_control_says_what_it_needs():
    assert CONTROLS.fact("c3_matched", "norms") is True
    assert not any(CONTROLS.fact(name, "norms") for name in CONTROLS if name != "c3_matched")
    for call in (lambda: control_rule("c3_matched"), lambda: draw_controls(("L0H0",), UNIVERSE, "c3_matched", 20)):
        with pytest.raises(OptionError, match="activation norm of every component"):
            call()
    with pytest.raises(OptionError, match="3 norms for 20 components"):
        draw_controls(("L0H0",), UNIVERSE, control_rule("c3_matched", [1.0, 2.0, 3.0]), 20)
    with pytest.raises(Invalid, match="NaN"):
        control_rule("c3_matched", [float("nan")] * 20)
    with pytest.raises(Invalid, match="smallest -1"):
        control_rule("c3_matched", [-1.0] * 20)


def test_equal_norms_are_told_apart_by_order():
    rule = control_rule("c3_matched", np.zeros(20))
    assert set(draw_controls(("L1H3",), UNIVERSE, rule, 40)) == {("L1H0",), ("L1H1",)}


@pytest.mark.parametrize("name", ["c3", "c3_any", "c3_typed_layer", "c3_matched"])
def test_components_to_avoid_are_left_out_where_enough_others_are_left(name):
    shared, avoid = ("L1H0",), ("L1H0", "L1H1", "L0H0", "L3MLP")
    rule = control_rule(name, NORMS, avoid)
    drawn = {u for control in draw_controls(shared, UNIVERSE, rule, 200) for u in control}
    assert drawn and not drawn & set(avoid)
    assert expected_overlap(shared, UNIVERSE, rule, avoid) == 0


@pytest.mark.parametrize("name", ["c3", "c3_typed_layer", "c3_matched"])
def test_where_too_few_others_are_left_they_are_not_avoided_and_the_overlap_says_so(name):
    shared, avoid = ("L1MLP", "L0H0"), ("L0MLP", "L2MLP", "L3MLP", "L0H1")
    rule = control_rule(name, NORMS, avoid)
    for control in draw_controls(shared, UNIVERSE, rule, 20):
        assert head_mlp_split(control) == {"heads": 1, "mlps": 1}
        assert "L0H1" not in control
    assert expected_overlap(shared, UNIVERSE, rule, avoid) == 0.5


def test_parity_avoids_nothing():
    assert strata_of(("L1H0",), UNIVERSE, control_rule("c3_parity", avoid=("L0H0",))) == strata_of(("L1H0",), UNIVERSE, "c3_parity")


def test_short_pools_name_the_ways_out_also_for_bound_rules():
    for rule in ("c3_typed_layer", control_rule("c3_typed_layer"), control_rule("c3_matched", NORMS), control_rule("c3")):
        with pytest.raises(
            Invalid, match=r"3 MLPs are needed but only 1 of 4 lies outside the shared set; use control: c3_parity .* c3_any"
        ):
            draw_controls(("L0MLP", "L1MLP", "L2MLP"), UNIVERSE, rule, 20)


def test_counterparts_are_near_on_average():
    """Against c3, whose counterparts lie anywhere."""
    universe = Universe(12, 4)
    shared = tuple(f"L{layer}H{h}" for layer in (5, 6) for h in range(4))

    def distance(rule):
        return np.mean([abs(layer_of(u) - 5.5) for c in draw_controls(shared, universe, rule, 100) for u in c])

    assert distance("c3_typed_layer") == pytest.approx(1.5)  # layers 4 and 7, four heads each
    assert distance("c3") > 2.8
