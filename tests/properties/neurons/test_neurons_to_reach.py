"""The smallest circuit that reaches a faithfulness: the search, its interval, what it costs, and the ratio of two of them."""

from __future__ import annotations

from math import ceil, log2, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits.core.verdict import Bound, decide
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Ablate
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.neurons.neurons_to_reach import NeuronsToReach
from pytest_circuits.properties.neurons.size_search import Probe, coarse_grid, next_sizes, smallest
from pytest_circuits.properties.neurons.sparsity_ratio import SparsityRatio, count_correlation, quotient
from pytest_circuits.stats.ratio import fieller
from tests.fakes.curves import Units, World, additive, groups_of, neuron_world, neurons

N = 40


def ranked(units: int, n: int = N) -> np.ndarray:
    """Scores by which units are ranked in their order."""
    return np.broadcast_to(-np.arange(units, 0, -1.0), (n, units))


def by_size(curve: np.ndarray, noise: float = 0.0, seed: int = 0, n: int = N):
    """A metric whose faithfulness at k live units is curve[k]; noise is smooth in k, and 0 at both ends."""
    rng = np.random.default_rng(seed)
    scale, wobble = rng.normal(10, 1, n), noise * rng.normal(0, 1, n)
    steps = np.sin(np.linspace(0, np.pi, len(curve)))
    return lambda live: scale * curve[int(live.sum())] + wobble * steps[int(live.sum())]


def growing(units: int, seed: int) -> np.ndarray:
    steps = np.random.default_rng(seed).gamma(0.5, 1, units) + 1e-3
    return np.concatenate([[0.0], np.cumsum(steps) / steps.sum()])


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 300), st.integers(0, 10**6), st.floats(0.05, 1))
def test_on_a_growing_curve_it_is_the_smallest_of_all_sizes(units, seed, reach):
    """Found with about as many probes as a bisection needs, and certified to the neuron: the size below was measured and is not enough."""
    curve = growing(units, seed)
    world = neuron_world(by_size(curve), ranked(units))
    found = world.measure("neurons_to_reach", reach=reach)
    truth = int(np.argmax(curve >= reach - 1e-12))
    assert found.value == truth or curve[truth] == pytest.approx(reach, abs=1e-9)
    assert found.interval == (found.value, found.value)  # every example has the same curve
    probes = {p["size"]: p["faithfulness"] for p in found.details["curve"]}
    assert probes[int(found.value)] >= reach
    assert found.value == 1 or probes[int(found.value) - 1] < reach
    assert len(probes) <= 2 * ceil(log2(units)) + 4
    assert found.details["share"] == found.value / units and not found.details["falls_below_again_at"]


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 200), st.integers(0, 10**6), st.floats(0.1, 1))
def test_on_any_curve_it_is_the_smallest_of_the_probed_sizes(units, seed, reach):
    """Also where the curve goes up and down: each end of the interval, and the value, has a measured neighbour that falls short."""
    rng = np.random.default_rng(seed)
    curve = np.concatenate([[0], rng.normal(0.8, 0.5, units - 1), [1]])
    found = neuron_world(by_size(curve, 6.0, seed), ranked(units)).measure("neurons_to_reach", reach=reach)
    probes = {p["size"]: (p["low"], p["faithfulness"], p["high"]) for p in found.details["curve"]}
    for answer, end in ((found.interval[0], 2), (found.value, 1), (found.interval[1], 0)):
        reaching = [n for n, probe in probes.items() if probe[end] >= reach]
        assert answer == min(reaching)
        assert answer == 1 or probes[int(answer) - 1][end] < reach
    assert found.interval[0] <= found.value <= found.interval[1]
    below = [n for n, probe in sorted(probes.items()) if n > found.value and probe[1] < reach]
    assert found.details["falls_below_again_at"] == below
    assert bool(below) == any("again" in line for line in found.details["notes"])


def test_the_coarse_grid_is_one_request_and_each_probe_is_one_of_its_own():
    """So that claims with another reach or another confidence ask for the same again."""
    curve = growing(100, 5)
    one, other = (neuron_world(by_size(curve, 3.0), ranked(100)) for _ in range(2))
    one.measure("neurons_to_reach", reach=0.9)
    other.measure("neurons_to_reach", reach=0.5, confidence=0.8)
    first, second = ([r for r in w.requests if isinstance(r, Ablate) and r.level == "neuron"] for w in (one, other))
    assert first[:2] == second[:2] and first[0].sets == ((),) and [len(s) for s in first[1].sets] == [1, 2, 4, 8, 16, 32, 64]
    assert all(len(r.sets) == 1 for r in first[2:]) and all(r.mode == "keep" for r in first)
    assert max(len(many) for many in one.asked) <= 3
    assert not any(len(s) == 100 for r in first for s in r.sets)  # everything kept is the intact model


def test_where_scored_neurons_do_not_reach_it_the_claim_is_invalid_with_the_best_value():
    """Neurons without a score have no rank; only the whole universe would do."""
    curve = np.concatenate([np.linspace(0, 0.6, 33), np.linspace(0.61, 1, 32)])
    scores = ranked(64) * (np.arange(64) < 32)
    with pytest.raises(Invalid, match=r"0.9 is not reached by any probed circuit of the 32 of 64 neurons .* best is 0.600 at 32") as found:
        neuron_world(by_size(curve), scores).measure("neurons_to_reach")
    assert found.value.details == {"best": pytest.approx(0.6), "at": 32, "scored": 32, "universe": 64, "reach": 0.9}
    unclear = np.concatenate([np.linspace(0, 0.91, 33), np.linspace(0.92, 1, 32)])
    low = neuron_world(by_size(unclear, 2.0, seed=2), scores).measure("neurons_to_reach", reach=0.88)
    assert low.value <= 32 and low.interval[1] == 64 and any("upper end is the whole universe" in line for line in low.details["notes"])


@pytest.mark.parametrize(
    ("metric", "scores", "reason"),
    [
        (additive(np.ones((N, 6))), np.zeros((N, 6)), "all relp scores"),
        (additive(-np.ones((N, 6))), ranked(6), "ablation does not lower it"),
        (lambda live: np.full(N, 1.0), ranked(6), "nothing for a circuit to keep"),
        (additive(np.ones((N, 1))), ranked(1), "universe has 1 unit"),
        (lambda live: live.mean() * np.random.default_rng(1).normal(0.02, 1, N), ranked(6), "contains 0"),
    ],
)
@pytest.mark.parametrize("name", ["neurons_to_reach", "sparsity_ratio"])
def test_what_cannot_be_measured_is_invalid(name, metric, scores, reason):
    world = neuron_world(metric, scores)
    world.places["mlp_output"] = world.places["mlp_activation"]
    with pytest.raises(Invalid, match=reason):
        world.measure(name)


def test_an_unreachable_level_and_vacuous_bounds_are_refused():
    for wrong in (0, 1.2, -1):
        with pytest.raises(ValidationError, match="reach"):
            NeuronsToReach(task="t", reach=wrong)
        with pytest.raises(ValidationError, match="reach"):
            SparsityRatio(task="t", reach=wrong)
    counts, ratio = PROPERTIES.get("neurons_to_reach"), PROPERTIES.get("sparsity_ratio")
    assert Bound(1.0).vacuous(counts.lowest, counts.highest) and not Bound(None, 200.0).vacuous(counts.lowest, counts.highest)
    assert Bound(0.0).vacuous(ratio.lowest, ratio.highest) and Bound(None, -1.0).vacuous(ratio.lowest, ratio.highest)


class Population:
    """Faithfulness that grows with the number of units, from which examples differ smoothly; `turn` reverses their differences."""

    def __init__(self, units: int, slowness: float, turn: float = 1.0) -> None:
        steps = np.exp(-np.arange(units) / slowness)
        self.curve = np.cumsum(steps / steps.sum())
        self.bump = turn * np.exp(-(((np.arange(units) - self.truth(0.9)) / self.truth(0.9)) ** 2))

    def truth(self, reach: float) -> int:
        return int(np.argmax(self.curve >= reach)) + 1

    def search(self, whole: np.ndarray, trait: np.ndarray, reach: float):
        """(low, value, high) and the contrast at the value, as the property finds them."""
        groups = [str(i) for i in range(len(whole))]
        gains = np.outer(self.curve, whole) + np.outer(self.bump, trait)
        gains[-1] = whole
        probes: dict[int, Probe] = {}
        sizes = coarse_grid(len(gains))
        while sizes:
            for k in sizes:
                value, (low, high) = fieller(gains[k - 1], whole, groups)
                probes[k] = Probe(low, value, high)
            sizes = next_sizes(probes, reach, len(gains))
        low, value, high = (smallest(probes, reach, end) for end in (2, 1, 0))
        return (low, value, high), gains[value - 1] - reach * whole


def within(misses: int, trials: int, rate: float) -> bool:
    """Not more misses than chance explains at this rate."""
    return misses <= trials * rate + 3 * sqrt(trials * rate * (1 - rate))


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_intervals_hold_the_true_count_and_the_true_ratio_as_often_as_they_say(turn):
    """Nominal for the count; for the ratio also where the two counts vary exactly against each other (a rate of 7% was measured there)."""
    small, large = Population(256, 30.0), Population(256, 60.0, turn)
    true, quotient_of_truths = small.truth(0.9), large.truth(0.9) / small.truth(0.9)
    trials = 250
    missed = missed_ratio = 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        whole, trait = np.maximum(rng.normal(8, 2.5, 24), 0.5), rng.normal(0, 0.8, 24)
        (one, one_contrast), (other, other_contrast) = (p.search(whole, trait, 0.9) for p in (small, large))
        missed += not one[0] <= true <= one[2]
        r = count_correlation(other_contrast, one_contrast, [str(i) for i in range(24)])
        assert turn * r > 0.9
        low, high = quotient(other, one, r)
        missed_ratio += not low <= quotient_of_truths <= high
    assert within(missed, trials, 0.05)
    assert within(missed_ratio, trials, 0.07)


def two_sites(activations: np.ndarray, outputs: np.ndarray, noise: float = 0.0) -> World:
    places = {
        site: Units(neurons(len(curve) - 1), ranked(len(curve) - 1), by_size(curve, noise))
        for site, curve in (("mlp_activation", activations), ("mlp_output", outputs))
    }
    return World(places, groups_of(N))


def test_the_ratio_is_that_of_the_counts_with_the_same_probes():
    """4 activations of 200 against 40 outputs of 50; every request of it is also one of the two claims about counts."""
    steps = lambda at, n: (np.arange(n + 1) >= at) * 0.95 + (np.arange(n + 1) == n) * 0.05  # noqa: E731
    world = two_sites(steps(4, 200), steps(40, 50))
    found = world.measure("sparsity_ratio")
    assert found.value == 10 and found.details["ratio_of_shares"] == pytest.approx(40 / 50 / (4 / 200))
    assert (found.details["mlp_activation"]["neurons"], found.details["mlp_output"]["neurons"]) == (4, 40)
    other = two_sites(steps(4, 200), steps(40, 50))
    for site in ("mlp_activation", "mlp_output"):
        other.measure("neurons_to_reach", site=site)
    assert set(world.requests) == set(other.requests)
    assert decide(found, Bound(5.0)).kind == "certified" and "10 times" in found.details["notes"][-1]


@given(st.floats(1, 50), st.floats(1, 50), st.floats(1, 3), st.floats(1, 3), st.floats(-1, 1))
def test_the_quotient_lies_between_ignoring_one_interval_and_adding_both(a, b, wide_a, wide_b, r):
    """One known exactly leaves the interval of the other; worst case, they add up as Bonferroni's would."""
    above, below = (a / wide_a, a, a * wide_a), (b / wide_b, b, b * wide_b)
    low, high = quotient(above, below, r)
    assert low <= a / b <= high
    assert a / b / wide_a / wide_b <= low * (1 + 1e-9) and high <= a / b * wide_a * wide_b * (1 + 1e-9)
    assert low <= a / b / max(wide_a, wide_b) * (1 + 1e-9)
    assert quotient(above, (b, b, b), r) == pytest.approx((above[0] / b, above[2] / b))
    assert quotient(above, below, -1.0) == pytest.approx((a / b / wide_a / wide_b, a / b * wide_a * wide_b))
    assert quotient(above, below, abs(r)) == quotient(above, below, 0.0)


def test_counts_that_do_not_vary_get_the_most_cautious_correlation():
    groups = list("aabbcc")
    assert count_correlation(np.zeros(6), np.arange(6.0), groups) == -1
    assert count_correlation(np.arange(6.0), np.arange(6.0), groups) == pytest.approx(1)
    assert count_correlation(np.array([1.0, -1, 2, -2, 3, -3]), np.arange(6.0), groups) == -1  # groups, not examples, are what varies
