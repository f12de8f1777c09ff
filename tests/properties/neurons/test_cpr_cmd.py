"""CPR and CMD: the grid, closed forms, identities, small universes, chance, intervals, refusals; and real models at each level."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits import open_model
from pytest_circuits.attribution import METHODS
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Bound
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Ablate
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.neurons.cmd import Cmd, distance
from pytest_circuits.properties.neurons.cpr import Cpr
from pytest_circuits.properties.neurons.curve_grid import GRID, CurveSizes, largest_area, trapezoid
from pytest_circuits.stats.bootstrap import bootstrap_interval
from pytest_circuits.stats.ratio import fieller
from tests.fakes import tiny
from tests.fakes.curves import Units, World, additive, groups_of
from tests.properties.neurons.test_neuron_circuit import settled

SHARES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
N = 30


def component_world(scores: np.ndarray, metric, n: int = N, **more) -> World:
    """Components of a model of one layer."""
    units = scores.shape[1]
    universe = Universe(1, units - 1)
    return World({"component": Units(universe.component_names, scores, metric)}, groups_of(n), universe=universe, **more)


def by_size(curve, n: int = N, spread: float = 0.0):
    """A metric whose faithfulness at k live units is curve(k)."""
    scale = np.random.default_rng(0).normal(10, 1 + spread, n)
    return lambda live: scale * curve(int(live.sum()))


def ranked(units: int, sign: float = -1.0) -> np.ndarray:
    return np.broadcast_to(sign * np.arange(units, 0, -1.0), (N, units))


def test_the_trapezoid_is_exact_on_the_grid():
    """f ≡ 1 scores 0.999, and lines what they should."""
    weights = trapezoid()
    assert [float(p) for p in GRID] == SHARES
    assert sum(weights) == Fraction("0.999")
    assert sum(w * p for w, p in zip(weights, GRID, strict=True)) == (1 - Fraction("0.001") ** 2) / 2
    f = np.random.default_rng(0).normal(size=10)
    assert float(np.dot([float(w) for w in weights], f)) == pytest.approx(np.trapezoid(f, SHARES))


@pytest.mark.parametrize("units", [1000, 2000, 29, 57, 58, 100, 36])
def test_sizes_are_exact_where_floats_are_not(units):
    """int(0.29·100) is 28 in floats; of each share the whole number of units is taken."""
    assert CurveSizes(units).grid == tuple(int(p * 1000) * units // 1000 for p in map(Fraction, map(str, SHARES)))
    assert all(0 < k < units for k in CurveSizes(units).measured)


@pytest.mark.parametrize("units", [1000, 36, 5, 2])
@pytest.mark.parametrize("name", ["cpr", "cmd"])
def test_a_curve_that_is_1_from_the_first_unit_on_reaches_what_the_report_says(name, units):
    """0.999 of a thousand units; less in small universes, where shares of less than one unit are ∅."""
    found = component_world(ranked(units), by_size(lambda k: float(k > 0))).measure(name)
    reachable = np.trapezoid([float(int(p * units) > 0) for p in GRID], SHARES)
    grid = found.details["grid"]
    assert grid["total"] == 0.999 and grid["reachable"] == pytest.approx(reachable) == largest_area(CurveSizes(units))
    assert found.value == pytest.approx(reachable if name == "cpr" else 0.999 - reachable, abs=1e-12)
    assert found.interval == pytest.approx((found.value, found.value), abs=1e-7)
    small = units < 1000
    assert small == bool(grid["shares_below_one_unit"]) == any("less than one of" in line for line in found.details["notes"])
    if small:
        assert grid["shares_of_one_size"][0] == {"size": 0, "shares": grid["shares_below_one_unit"]} or units == 36
    if name == "cmd":
        assert found.details["lowest"] == pytest.approx(found.value, abs=1e-12)


def test_nothing_that_is_known_is_measured():
    """A circuit of no unit is ∅, and one of all units the intact model; sizes that several shares fall on are asked for once."""
    world = component_world(ranked(36), by_size(lambda k: k / 36))
    found = world.measure("cpr", random_rankings=3)
    empty, kept, chance = [r for r in world.requests if isinstance(r, Ablate) and r.mode == "keep"]
    assert empty.sets == ((),) and [len(s) for s in kept.sets] == [1, 3, 7, 18]
    assert [len(s) for s in chance.sets] == [1, 3, 7, 18] * 3
    assert all(set(a) < set(b) for a, b in zip(chance.sets[::4], chance.sets[1::4], strict=True))  # of one ranking
    assert [p["size"] for p in found.details["curve"]] == [0, 0, 0, 0, 0, 1, 3, 7, 18, 36]
    assert {r.kind for r in (empty, kept, chance)} == {"counterfactual"}
    assert {(r.part.which, r.reference.which) for r in (empty, kept, chance)} == {("evaluation", "discovery")}


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(3, 300), st.floats(0.2, 1.0))
def test_the_two_add_up_where_no_faithfulness_is_above_1(seed, units, top):
    """Identity 21: CPR + CMD = 0.999, whatever the curve, for scores of one sign."""
    rng = np.random.default_rng(seed)
    curve = np.concatenate([[0], rng.uniform(-1, top, units - 1), [1]])
    cpr, cmd = (component_world(ranked(units), by_size(lambda k: curve[k], spread=3)).measure(n, random_rankings=1) for n in ("cpr", "cmd"))
    assert cpr.value + cmd.value == pytest.approx(0.999, abs=1e-9)
    expected = np.trapezoid([curve[k] for k in CurveSizes(units).grid], SHARES)
    assert cpr.value == pytest.approx(expected, abs=1e-9)
    assert cpr.details["curve"] == cmd.details["curve"]
    above = component_world(ranked(units), by_size(lambda k: curve[k] + 1.5 * (0 < k < units)))
    f = np.array([curve[k] + 1.5 * (0 < k < units) for k in CurveSizes(units).grid])
    assert above.measure("cmd").value == pytest.approx(np.trapezoid(abs(1 - f), SHARES), abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.1, 50), st.floats(-100, 100))
def test_an_affine_change_of_the_metric_changes_nothing(seed, a, b):
    """Identity 13."""
    rng = np.random.default_rng(seed)
    w = rng.gamma(1, 1, 40) * rng.normal(1, 0.5, (N, 40))
    for name in ("cpr", "cmd"):
        one = component_world(-w, additive(w)).measure(name, random_rankings=2)
        other = component_world(-a * w, additive(a * w, b)).measure(name, random_rankings=2)
        assert [other.value, *other.interval] == pytest.approx([one.value, *one.interval], rel=1e-6, abs=1e-7)
        assert other.details["chance"]["values"] == pytest.approx(one.details["chance"]["values"], rel=1e-6, abs=1e-7)


def test_cpr_ranks_by_sign_and_cmd_by_size():
    """Units that hurt come last for CPR, whose curve then rises above 1, and where their size puts them for CMD."""
    effects = np.array([5.0, -4.0, 3.0, -2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125] * 2)
    w = effects * np.random.default_rng(0).normal(1, 0.02, (N, 20))
    cpr, cmd = (component_world(-w, additive(w, 1.0)).measure(name) for name in ("cpr", "cmd"))
    signed, absolute = np.argsort(-effects, kind="stable"), np.argsort(-np.abs(effects), kind="stable")
    for found, order in ((cpr, signed), (cmd, absolute)):
        f = np.array([effects[order[:k]].sum() / effects.sum() for k in CurveSizes(20).grid])
        assert [p["faithfulness"] for p in found.details["curve"]] == pytest.approx(list(f), abs=0.05)
        expected = f if found is cpr else abs(1 - f)
        assert found.value == pytest.approx(np.trapezoid(expected, SHARES), abs=0.03)
    assert max(p["faithfulness"] for p in cpr.details["curve"]) > 2 and cpr.details["helping"] == 16
    loss = component_world(w, lambda live: -(w @ live.astype(float)) + w.sum(1))
    assert loss.measure("cpr", metric="kl", attribution="exact").value == pytest.approx(cpr.value, rel=1e-6)


def test_the_interval_of_cpr_is_that_of_a_ratio_of_means():
    """CPR is linear in what circuits keep, so Fieller's interval of the weighted sum is its own."""
    rng = np.random.default_rng(2)
    w = rng.gamma(1, 1, 40) * rng.normal(1, 0.8, (N, 40))
    world = component_world(-w, additive(w))
    found = world.measure("cpr", confidence=0.9)
    rows, discovery = world.evaluation(), [i for i in range(N) if i not in set(world.evaluation())]
    order = np.argsort(-w[discovery].mean(0), kind="stable")
    area = sum(float(t) * w[rows][:, order[:k]].sum(1) for t, k in zip(trapezoid(), CurveSizes(40).grid, strict=True))
    value, interval = fieller(area, w[rows].sum(1), [str(i) for i in rows], 0.9)
    assert found.value == pytest.approx(value) and found.interval == pytest.approx(interval)


def test_random_rankings_are_the_chance_level():
    """Seeded, as many as asked for, shared by both scores; their expectation where effects add up is the share that is kept."""
    w = np.random.default_rng(3).gamma(1, 1, 200) * np.ones((N, 1)) * np.random.default_rng(4).normal(1, 0.1, (N, 1))
    many = component_world(-w, additive(w))
    found = many.measure("cpr", random_rankings=60)
    chance = found.details["chance"]
    expected = np.trapezoid([k / 200 for k in CurveSizes(200).grid], SHARES)
    assert len(set(chance["values"])) == 60
    assert (
        chance["mean"]
        == pytest.approx(np.mean(chance["values"]))
        == pytest.approx(expected, abs=4 * chance["standard_deviation"] / sqrt(60))
    )
    assert found.value > max(chance["values"])
    again, other = (component_world(-w, additive(w)).measure("cpr", random_rankings=3, random_seed=s) for s in (0, 1))
    assert again.details["chance"]["values"] == chance["values"][:3] != other.details["chance"]["values"]
    none = component_world(-w, additive(w))
    assert none.measure("cpr", random_rankings=0).details["chance"] == {"rankings": 0, "values": []}
    both = component_world(-w, additive(w))
    both.measure("cmd", random_rankings=60)
    assert [r for r in both.requests if isinstance(r, Ablate)][-1] == [r for r in many.requests if isinstance(r, Ablate)][-1]


def test_the_interval_of_cmd_holds_the_truth_although_noise_only_adds_to_it():
    """Circuits that are exactly faithful: the estimate lies above the truth in most studies, BCa's interval nearly always."""
    f = np.array([0, 0, 0.05, 0.1, 0.3, 0.6, 1, 1, 1, 1.0])
    truth, missed, trials = float(np.trapezoid(abs(1 - f), SHARES)), 0, 120
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        whole, noise = np.maximum(rng.normal(8, 2.5, 30), 0.5), rng.normal(0, 3, (30, 10)) * (np.arange(10) % 9 > 1)
        gains = np.outer(whole, f) + noise
        _, (low, high), _ = bootstrap_interval(
            lambda c, g=gains, w=whole: distance(c @ g, c @ w), [30], resamples=400, lowest=0.0
        )  # fmt: skip
        missed += not low <= truth <= high
    assert missed <= trials * 0.06 + 3 * sqrt(trials * 0.06 * 0.94)


@pytest.mark.parametrize("name", ["cpr", "cmd"])
def test_what_cannot_be_measured_is_invalid(name):
    noise = np.random.default_rng(1).normal(0.02, 1, N)
    for scores, metric, reason in (
        (np.zeros((N, 20)), by_size(lambda k: k / 20), "scores of the 20 components .* are zero"),
        (ranked(20), by_size(lambda k: -k / 20), "ablation does not lower it"),
        (ranked(20), lambda live: np.ones(N), "nothing for a circuit to keep"),
        (ranked(20), lambda live: live.mean() * noise, "contains 0"),
        (ranked(1), by_size(float), "the universe has 1 component"),
    ):
        with pytest.raises(Invalid, match=reason):
            component_world(scores, metric).measure(name)
    with pytest.raises(Invalid, match="no behaviour"):
        component_world(ranked(20), by_size(lambda k: k / 20), right=np.zeros(N, bool)).measure(name)


def test_what_makes_no_sense_is_refused_when_the_spec_is_read():
    for method in ("eap", "eap_ig", "weight_gradient"):
        with pytest.raises(ValidationError, match=r"magnitudes.* relp"):
            Cpr(task="t", attribution=method)
    assert Cpr(task="t", attribution="eap", level="edge").level == "edge" and Cmd(task="t", attribution="eap").level == "component"
    for kind in (Cpr, Cmd):
        with pytest.raises(ValidationError, match="has no meaning at level: component"):
            kind(task="t", site="mlp_output")
        with pytest.raises(ValidationError, match="does not work at edge level"):
            kind(task="t", attribution="relp", level="edge")
        with pytest.raises(ValidationError, match="has no option"):
            kind(task="t", ablation_options={"prompts": "corrupt"})
    cmd = PROPERTIES.get("cmd")
    assert Bound(0.0).vacuous(cmd.lowest, cmd.highest) and not Bound(None, 0.1).vacuous(cmd.lowest, cmd.highest)


def test_magnitudes_are_what_the_methods_give():
    """What is refused for CPR is exactly what is never negative."""
    subject, task = open_model(tiny.model("llama")), tiny.task(n=6)
    for method in METHODS.builtin:
        for level in METHODS.fact(method, "levels"):
            negative = bool((subject.attribute(task, method, level).scores < 0).any())
            assert negative != (level in METHODS.fact(method, "nonnegative", ())), (method, level)


@pytest.mark.parametrize(
    ("level", "more"),
    [
        ("component", {"attribution": "relp"}),
        ("edge", {"attribution": "eap"}),
        ("neuron", {"attribution": "relp", "site": "mlp_output", "ablation": "mean", "ablation_options": {"prompts": "corrupt"}}),
    ],
)
def test_on_a_real_model_at_every_level_the_curve_is_what_ablating_by_hand_gives(level, more):
    """Ranked, cut and ablated through the public calls, one set at a time."""
    subject, drawn = open_model(tiny.model("llama", seed=2)), tiny.task(n=20, seed=4, lengths=(5,))
    how = {"level": level, "kind": more.get("ablation", "counterfactual"), **more.get("ablation_options", {})}
    how |= {"site": more["site"]} if "site" in more else {}
    base = subject.ablate_many(drawn, [()]).metric[0]
    gain = base - subject.ablate_many(drawn, [()], "keep", **how).metric[0]
    pairs = [p if g > 0 else type(p)(p.clean, p.corrupt, p.foils[0], (p.answer,)) for p, g in zip(drawn, gain, strict=True)]
    task = type(drawn)("random", tuple(pairs), "choices")
    found, (discovery, evaluation) = settled("cpr", task, subject, level=level, random_rankings=1, **more)
    sides = {"examples": [int(i) for i in evaluation], "reference": [int(i) for i in discovery]}
    options = {"site": more["site"]} if "site" in more else {}
    ranking = subject.attribute(task, more["attribution"], level, examples=sides["reference"], **options)
    order = np.argsort(ranking.scores.astype(np.float64).mean(0).astype(np.float32), kind="stable")
    intact = subject.ablate_many(task, [()], examples=sides["examples"]).metric[0].mean()
    outcomes = [
        subject.ablate_many(task, [[ranking.units[i] for i in order[: int(p * len(order))]]], "keep", **how, **sides).metric[0].mean()
        for p in (Fraction(0), *GRID)
    ]
    f = (np.array(outcomes[1:]) - outcomes[0]) / (intact - outcomes[0])
    assert [p["faithfulness"] for p in found.details["curve"]] == pytest.approx(list(f), rel=1e-4, abs=1e-5)
    assert found.value == pytest.approx(np.trapezoid(f, SHARES), rel=1e-4)
    assert found.details["universe"] == subject.anatomy.universe.size(level) or level == "neuron"
