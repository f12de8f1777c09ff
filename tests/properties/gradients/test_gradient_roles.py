"""Hidden heroes and gradient bloats: counts that are known by hand, on planted models and in simulated populations."""

import numpy as np
import pytest
from pydantic import ValidationError

from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.properties.gradients.gradient_ablation_agreement import GRADIENT_ABLATION_AGREEMENT
from pytest_circuits.properties.gradients.gradient_bloats import GRADIENT_BLOATS
from pytest_circuits.properties.gradients.hidden_heroes import HIDDEN_HEROES
from tests.fakes.gradients import Planted, Table, settle

UNIVERSE = Universe(2, 4)  # 10 components
N = UNIVERSE.components
G = np.array([10.0, 9, 8, 7, 6, 5, 4, 3, 2, 1])
C = np.array([0.0, 0.01, 1.0, 0.3, 0.2, 0.08, 0.0, 0.5, 0.02, 2.0])
"""Low gradients (0.5: the last five) with C > 0.1: numbers 7 and 9. High ones (the first five) with C < 0.05: 0 and 1."""
HEROES, BLOATS = ["L1H2", "L1MLP"], ["L0H0", "L0H1"]


def table(n=200, g=G, c=C, noise=0.3, seed=0, **more):
    rng = np.random.default_rng(seed)
    around = [rng.gamma(1 / noise**2, noise**2, (n, len(g))) for _ in range(2)]
    return Table(UNIVERSE, around[0] * g, around[1] * c, **more)


def test_clear_heroes_and_bloats_are_counted_and_named():
    heroes, bloats = settle(HIDDEN_HEROES, table()), settle(GRADIENT_BLOATS, table())
    assert (heroes.value, heroes.interval, heroes.details["heroes"]) == (2, (2, 2), HEROES)
    assert (bloats.value, bloats.interval, bloats.details["bloats"]) == (2, (2, 2), BLOATS)
    assert heroes.n == 100 and heroes.details["causal_groups"] == 100
    assert heroes.details["smaller_gradients"]["L1H2"] == [2, 2], "those of L1H3 and L1MLP are smaller"
    value, low, high = heroes.details["causal"]["L1MLP"]
    assert low < value < high and value == pytest.approx(2, abs=0.2)
    assert "L1H2, L1MLP} for sure" in heroes.details["notes"][1]


def test_a_doubtful_effect_or_place_makes_the_count_an_interval():
    close = table(n=40, c=np.where(np.arange(N) == 7, 0.12, C), noise=1.0)
    found = settle(HIDDEN_HEROES, close)
    assert found.details["heroes"] == ["L1MLP"] and found.interval[0] == found.value == 1 and found.interval[1] >= 2
    assert set(HEROES) <= set(found.details["possible"])
    assert "L1H2" in found.details["undecided_because_of_effect"]
    mild = settle(GRADIENT_BLOATS, table(c=np.where(np.arange(N) == 1, 0.042, C), noise=0.7)).details
    assert (mild["bloats"], mild["undecided_because_of_effect"], mild["undecided_because_of_gradient"]) == (["L0H0"], ["L0H1"], [])
    swapped = table(n=40, g=np.where(np.arange(N) == 4, 5.01, G), noise=0.5, c=np.where(np.arange(N) == 5, 1.0, C))
    doubt = settle(HIDDEN_HEROES, swapped).details
    assert "L1H0" in doubt["undecided_because_of_gradient"] and "L1H0" not in doubt["heroes"]


@pytest.mark.parametrize(
    ("options", "heroes"),
    [
        ({"delta": 0.7}, ["L1MLP"]),
        ({"delta": 0.0, "low": 0.2}, ["L1H3", "L1MLP"]),
        ({"low": 0.9, "delta": 0.15}, ["L0H2", "L0H3", "L0MLP", "L1H2", "L1MLP"]),
    ],
)
def test_thresholds_and_shares_are_applied_afterwards(options, heroes):
    assert settle(HIDDEN_HEROES, table(n=400, noise=0.1), **options).details["heroes"] == heroes


def test_the_published_rule_counts_rank_gaps_with_the_number_chance_gives():
    """Δ by hand: rank(G) is 10 … 1; rank(C) with average ranks of what rounding ties."""
    exact = table(noise=1e-4, c=C + np.arange(N) * 1e-3)
    found = settle(HIDDEN_HEROES, exact, rule="rank_gap", gap=5)
    c_rank = (C + np.arange(N) * 1e-3).argsort().argsort() + 1
    delta = dict(zip(UNIVERSE.component_names, (np.arange(10, 0, -1) - c_rank).tolist(), strict=True))
    assert found.details["rank_difference"] == delta
    assert found.details["heroes"] == [u for u, d in delta.items() if d <= -5] == HEROES
    assert found.details["expected_by_chance"] == pytest.approx(10 * (5 * 6 / 100) / 2)
    assert 0 < found.details["chance_of_as_many"] <= 1
    bloats = settle(GRADIENT_BLOATS, exact, rule="rank_gap", gap=5)
    assert bloats.details["bloats"] == [u for u, d in delta.items() if d >= 5]
    assert found.interval == (2, 2) and "bootstrap" in found.details
    certified = settle(HIDDEN_HEROES, exact, gap=5).details["rank_gap"]
    assert certified["heroes"] == HEROES and certified["expected_by_chance"] == found.details["expected_by_chance"]


def test_noisy_rank_gaps_have_a_wide_whole_numbered_interval():
    rng = np.random.default_rng(3)
    noisy = Table(UNIVERSE, rng.gamma(1, 1, (40, N)), rng.gamma(1, 1, (40, N)))
    found = settle(HIDDEN_HEROES, noisy, rule="rank_gap", gap=4)
    low, high = found.interval
    assert low == int(low) and high == int(high) and 0 <= low <= found.value <= high <= N and high - low >= 2


def test_ranks_of_an_accuracy_at_its_floor_are_inconclusive_and_bounds_are_not():
    wrong = np.zeros((400, N), bool)
    wrong[:, 9], wrong[:300, 7] = True, True
    at_floor = table(n=400, wrong=wrong)
    published = settle(HIDDEN_HEROES, at_floor, rule="rank_gap", gap=5, effect="accuracy")
    assert published.unsettled and "90%" in published.unsettled and published.details["share_at_floor"] == 0.8
    assert published.details["share_at_ceiling"] == 0.1
    sound = settle(HIDDEN_HEROES, at_floor, effect="accuracy")
    assert sound.unsettled is None and sound.details["heroes"] == HEROES
    bloats = settle(GRADIENT_BLOATS, at_floor, effect="accuracy", epsilon=0.1)
    assert bloats.details["bloats"] == ["L0H0", "L0H1", "L0H2", "L0H3", "L0MLP"]


def test_tied_gradients_are_low_and_never_high():
    """Saturated units: one has float32 rounding for a gradient, which is no place in a ranking."""
    g = np.array([0.0, 6e-8, 0, 0, 0, 0, 0, 0, 16, 32])
    c = np.array([0.0, 1, 0, 0, 0, 0, 0, 0, 1, 0])
    tied = table(g=g, c=c, noise=0.01)
    assert settle(HIDDEN_HEROES, tied).details["heroes"] == ["L0H1"]
    assert settle(GRADIENT_BLOATS, tied).details["bloats"] == ["L1MLP"]


def test_planted_hero_and_bloat_are_found_by_both_rules():
    planted = Planted("hero_bloat")
    for rule in ("certified", "rank_gap"):
        for gradient in ("atp", "gradient"):
            heroes, bloats = (settle(p, planted, gradient=gradient, rule=rule) for p in (HIDDEN_HEROES, GRADIENT_BLOATS))
            assert (heroes.details["heroes"], heroes.interval) == (["L0H2"], (1, 1))
            assert (bloats.details["bloats"], bloats.interval) == (["L1H0"], (1, 1))
    honest = settle(HIDDEN_HEROES, planted, gradient="eap_ig")
    assert honest.details["possible"] == [], "integrated gradients see the hero"


def test_backups_are_no_heroes_though_gradients_miss_them():
    found = settle(HIDDEN_HEROES, Planted("backup"), gradient="atp")
    assert found.details["possible"] == []


def test_no_false_heroes_or_bloats_and_counts_in_their_intervals_in_simulated_models():
    """Truth next to the thresholds: C = delta (no hero) and C = epsilon (no bloat) for half of the components."""
    rng = np.random.default_rng(4)
    false, missed, trials = 0, 0, 60
    for seed in range(trials):
        c = rng.permutation([0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.3, 0.3, 0.0, 0.0])
        simulated = table(n=120, c=c, noise=1.0, seed=seed)
        heroes, bloats = settle(HIDDEN_HEROES, simulated), settle(GRADIENT_BLOATS, simulated)
        is_hero, is_bloat = (c > 0.1) & (np.arange(N) >= 5), (c < 0.05) & (np.arange(N) < 5)
        names = np.array(UNIVERSE.component_names)
        false += bool(set(heroes.details["heroes"]) - set(names[is_hero])) + bool(set(bloats.details["bloats"]) - set(names[is_bloat]))
        missed += not heroes.interval[0] <= is_hero.sum() <= heroes.interval[1]
        missed += not bloats.interval[0] <= is_bloat.sum() <= bloats.interval[1]
    assert false <= 2 * trials * 0.05 + 3 and missed <= 2 * trials * 0.05 + 3


def test_random_rankings_have_published_heroes_and_no_certified_ones():
    """20 components: gradients without any relation to effects; half of all components are 6 ranks off."""
    rng = np.random.default_rng(5)
    universe, published, certified = Universe(4, 4), [], []
    for _ in range(40):
        g, c = rng.permutation(np.linspace(1, 2, 20)), rng.permutation(np.linspace(0, 0.09, 20))
        model = Table(universe, rng.gamma(100, 0.01, (60, 20)) * g, rng.gamma(1, 1, (60, 20)) * c)
        published.append(settle(HIDDEN_HEROES, model, rule="rank_gap", resamples=200).value)
        certified.append(settle(HIDDEN_HEROES, model).value)
    assert np.mean(published) == pytest.approx(5.25, abs=0.8)
    assert sum(certified) == 0, "nothing costs more than 0.09"


@pytest.mark.parametrize(
    ("make", "options", "reason"),
    [
        (lambda: table(g=np.ones(N), noise=1e-12), {}, "the same mean weight_gradient score"),
        (lambda: table(g=np.zeros(N)), {}, r"the same mean weight_gradient score \(0\)"),
        (lambda: table(c=np.zeros(N)), {}, "no ablation changes the loss"),
        (lambda: table(), {"effect": "accuracy"}, "no ablation changes the accuracy"),
        (lambda: table(), {"rule": "rank_gap", "gap": 10}, "differ by at most 9"),
        (lambda: table(), {"low": 0.05}, "less than one"),
        (lambda: table(right=np.arange(200) % 2 == 0), {}, "below min_accuracy"),
        (lambda: table(n=8), {}, "groups"),
        (lambda: table(c=np.where(C > 1, np.nan, C)), {}, "NaN or infinite"),
        (lambda: table(g=np.where(C > 1, np.inf, G)), {}, "NaN or infinite"),
    ],
)
def test_what_cannot_be_measured_is_invalid_with_its_reason(make, options, reason):
    with pytest.raises(Invalid, match=reason):
        settle(HIDDEN_HEROES, make(), **options)


def test_one_component_is_no_ranking():
    with pytest.raises(Invalid, match="at least 2"):
        settle(HIDDEN_HEROES, Table(Universe(1, 0), np.ones((20, 1)), np.random.default_rng(0).random((20, 1))))


def test_the_very_same_ablation_is_no_gradient_and_typos_are_refused():
    for prop in (HIDDEN_HEROES, GRADIENT_BLOATS):
        with pytest.raises(ValidationError, match="agrees with itself"):
            prop.parameters(task="t", gradient="exact", gradient_options={"kind": "zero"})
        with pytest.raises(ValidationError, match="no option 'normalization'"):
            prop.parameters(task="t", gradient_options={"normalization": "none"})
        with pytest.raises(ValidationError):
            prop.parameters(task="t", rule="sound")
    with pytest.raises(ValidationError):
        GRADIENT_BLOATS.parameters(task="t", epsilon=0.0)


def test_agreement_tells_noise_ceilings_and_layers():
    """C is noise around one value, so that its own halves do not agree; G is clear."""
    rng = np.random.default_rng(6)
    model = Table(UNIVERSE, rng.gamma(100, 0.01, (120, N)) * G, rng.normal(0.5, 3, (120, N)))
    found = settle(GRADIENT_ABLATION_AGREEMENT, model)
    ceiling = found.details["noise_ceiling"]
    assert ceiling["gradient"] > 0.99 and abs(ceiling["causal"]) < 0.5 and ceiling["largest"] < 0.85
    g, c = np.array(list(found.details["by_component"].values())).T
    assert found.details["layer_profile"] == {
        "gradient": pytest.approx([g[:5].mean(), g[5:].mean()]), "causal": pytest.approx([c[:5].mean(), c[5:].mean()]),
    }  # fmt: skip
    assert "noise ceiling: two halves" in found.details["notes"][2]


def test_gradients_over_several_examples_do_not_mix_both_sides_of_the_split():
    model = table(n=40, blocks=np.arange(40) // 8)
    found = settle(GRADIENT_ABLATION_AGREEMENT, model, gradient_options={"gradient_batch": 8})
    asked = next(r for r in model.asked if type(r).__name__ == "Attribute")
    assert asked.part.which == "discovery" and found.details["gradient_blocks"] <= 5
    alone = table(n=40)
    settle(GRADIENT_ABLATION_AGREEMENT, alone)
    assert next(r for r in alone.asked if type(r).__name__ == "Attribute").part.which == "all"


def test_gradients_of_a_few_examples_are_pointed_out():
    spiky = table()
    spiky.gradient[[0, 1]] *= 400
    message = settle(HIDDEN_HEROES, spiky).details["notes"][-1]
    assert "1 of 100 discovery examples give" in message
    assert not any("depends on these few" in line for line in settle(HIDDEN_HEROES, table()).details["notes"])
