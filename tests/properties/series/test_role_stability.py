"""Role stability over models that are tables: agreement by hand, roles and their chance, what cannot be compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, spearmanr

from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.requests import Describe
from pytest_circuits.properties.protocol import Claim
from pytest_circuits.properties.series.role_stability import ROLE_STABILITY, RoleStability
from tests.fakes.gradients import TASK, Table

UNIVERSE = Universe(4, 4, 8)  # 20 components
N = UNIVERSE.components


def table(importance, gradient=None, n=80, noise=0.02, seed=0, **more):
    """A model whose components cost and score this much, with noise on each example."""
    rng = np.random.default_rng(seed)
    importance, gradient = np.asarray(importance, float), np.asarray(importance if gradient is None else gradient, float)
    return Table(
        more.pop("universe", UNIVERSE),
        np.abs(gradient + noise * rng.normal(size=(n, len(gradient)))),
        importance + noise * rng.normal(size=(n, len(importance))),
        **more,
    )


def run(tables, fingerprints=None, **parameters):
    """The property over these models, asked of the tables as an executor would ask models."""
    series = tuple(ModelSource(f"s@{i}", f"p{i}", at=float(i)) for i in range(len(tables)))
    where = dict(zip(series, tables, strict=True))
    marks = dict(zip(series, fingerprints or [f"weights {i}" for i in range(len(tables))], strict=True))
    p = RoleStability.model_validate({"task": "t", "resamples": 200, **parameters})
    steps = ROLE_STABILITY.estimate(Claim("role_stability", p, series[-1], {"t": TASK}, series))

    def answer(request):
        found = where[request.model].answer(request)
        return replace(found, fingerprint=marks[request.model]) if isinstance(request, Describe) else found

    return drive(steps, answer)


BASE = np.linspace(0.1, 2.0, N)


def shuffled(seed):
    return np.random.default_rng(seed).permutation(BASE)


def test_the_value_is_the_mean_rho_of_all_pairs():
    """With hardly any noise it is that of the planted rankings, whatever is ranked."""
    costs = [BASE + np.random.default_rng(i).normal(size=N) * 0.4 for i in range(4)]
    grads = [np.abs(c + np.random.default_rng(10 + i).normal(size=N)) for i, c in enumerate(costs)]
    tables = [table(c, g, noise=1e-6, seed=i) for i, (c, g) in enumerate(zip(costs, grads, strict=True))]
    rank = lambda v: np.argsort(np.argsort(v))  # noqa: E731
    rows = {"importance": costs, "gradient": grads, "gap": [rank(g) - rank(c) for c, g in zip(costs, grads, strict=True)]}
    for ranking, these in rows.items():
        found = run(tables, ranking=ranking)
        expected = np.mean([spearmanr(these[i], these[j])[0] for i in range(4) for j in range(i + 1, 4)])
        assert found.value == pytest.approx(expected, abs=1e-9)
        assert found.details["mean_over_pairs"][ranking] == found.value
        assert found.details["pairs"][ranking][0][1] == pytest.approx(spearmanr(these[0], these[1])[0], abs=1e-9)
        assert found.interval[0] < found.value < found.interval[1]


def test_models_of_one_kind_agree_and_unrelated_ones_do_not():
    """The interval is far above 0, or around it; the noise ceiling is near 1 in both."""
    alike = run([table(BASE, seed=i) for i in range(5)])
    assert alike.value > 0.98 and alike.interval[0] > 0.95
    apart = run([table(shuffled(i), seed=i) for i in range(5)])
    assert apart.interval[0] < 0 < apart.interval[1] and abs(apart.value) < 0.3
    for found in (alike, apart):
        assert min(found.details["noise_ceiling"].values()) > 0.98
    assert alike.details["null_standard_deviation"] == pytest.approx(19**-0.5)


def test_noise_of_the_examples_widens_the_interval():
    """The same models measured worse; and models that differ widen it too."""
    sharp = run([table(BASE, seed=i, noise=0.3) for i in range(4)])
    blurred = run([table(BASE, seed=i, noise=3.0) for i in range(4)])
    parts = [found.details["interval_parts"] for found in (sharp, blurred)]
    assert parts[1]["examples_half_width"] > 3 * parts[0]["examples_half_width"] > 0
    assert blurred.interval[1] - blurred.interval[0] > sharp.interval[1] - sharp.interval[0]
    assert np.mean(list(blurred.details["noise_ceiling"].values())) < 0.9 < np.mean(list(sharp.details["noise_ceiling"].values()))


def test_the_interval_adds_what_models_and_examples_leave_open():
    """In quadrature; the examples' part is the spread of the value when examples are drawn again, the same for all models."""
    tables = [table(BASE + np.random.default_rng(i).normal(size=N) * 0.5, seed=i, noise=2.0) for i in range(4)]
    found = run(tables, split="in_sample", resamples=2000)
    parts = found.details["interval_parts"]
    for end, side in enumerate((-1, 1)):
        models = abs(parts["models"][end] - found.value)
        assert found.interval[end] == pytest.approx(found.value + side * np.hypot(models, parts["examples_half_width"]))
    rng, values = np.random.default_rng(99), []
    for _ in range(600):
        rows = rng.integers(0, 80, 80)
        means = [one.loss.astype(np.float32)[rows].mean(0) for one in tables]
        values.append(np.mean([spearmanr(means[i], means[j])[0] for i in range(4) for j in range(i + 1, 4)]))
    assert parts["examples_half_width"] == pytest.approx(1.96 * np.std(values), rel=0.12)


def test_roles_are_counted_over_models_beside_what_chance_gives():
    """L0H0 has the lowest gradient and the highest cost in 3 of 4 models; the last component the reverse."""
    units = UNIVERSE.component_names
    swapped = BASE.copy()
    swapped[0], swapped[-1] = 3.0, 0.01
    gradient = BASE.copy()
    found = run([table(swapped, gradient, seed=i) for i in range(3)] + [table(BASE, gradient, seed=9)])
    heroes, bloats = found.details["roles"]["heroes"], found.details["roles"]["bloats"]
    assert {u: c for u, c in heroes["counts"].items() if c} == {units[0]: 3}
    assert {u: c for u, c in bloats["counts"].items() if c} == {units[-1]: 3}
    chance = 14 * 15 / 2 / 400
    assert heroes["chance_of_one"] == pytest.approx(chance) and heroes["expected_models"] == pytest.approx(4 * chance)
    for count in range(4):
        named = {units[0]: 3, units[1]: 0}
        for unit, k in named.items():
            assert heroes["chance_of_as_many"][unit] == pytest.approx(binom.sf(k - 1, 4, chance)), count
    assert heroes["in_each_model"] == [[units[0]]] * 3 + [[]]
    assert f"hidden hero in most of 4 models: {units[0]} 3; expected by chance: 1.1 each" in found.details["notes"]


def test_few_models_are_told_to_be_few():
    """From ten on nothing is said."""
    assert any("3 models are few" in line for line in run([table(BASE, seed=i) for i in range(3)]).details["notes"])
    assert not any("are few" in line for line in run([table(BASE, seed=i) for i in range(10)]).details["notes"])


def unable(**more):
    return table(BASE, right=np.zeros(80, bool), **more)


def test_models_that_cannot_do_the_task_fail_or_are_left_out():
    """As the claim says; the others make the value."""
    tables = [table(BASE, seed=i) for i in range(3)] + [unable()]
    with pytest.raises(
        Invalid, match=r"'s@3' cannot be measured \(`invalid: skip` leaves such models out\): the intact model answers 0 of"
    ):
        run(tables)
    found = run(tables, invalid="skip")
    assert list(found.details["left_out"]) == ["s@3"] and list(found.details["models"]) == ["s@0", "s@1", "s@2"]
    assert found.value == run(tables[:3]).value
    with pytest.raises(Invalid, match="2 of 4 models could be measured, and 3 are needed; 's@3': the intact model"):
        run([*tables[:2], unable(), unable()], invalid="skip")


@pytest.mark.parametrize(
    ("tables", "parameters", "message"),
    [
        ([table(BASE)] * 2, {}, "needs at least 3, and 's@1' is a series of 2: give the model `checkpoints`"),
        ([table(BASE), table(BASE), table(np.zeros(N), BASE, noise=0.0)], {}, "'s@2' cannot be measured .*: no ablation changes the loss"),
        (
            [table(BASE), table(BASE), table(BASE, np.ones(N), noise=0.0)],
            {},
            "'s@2' cannot be measured .*: all 20 components have the same",
        ),
        ([table(BASE), table(BASE), table(np.arange(1, 16), universe=Universe(3, 4, 8))], {}, "'s@0' has 20 components and 's@2' 15"),
        ([table(BASE, seed=i) for i in range(3)], {"gap": 20}, "the ranks of 20 components differ by at most 19, so gap: 20"),
    ],
)
def test_what_cannot_be_compared_is_invalid(tables, parameters, message):
    """With the model and the arithmetic."""
    with pytest.raises(Invalid, match=message):
        run(tables, **parameters)


def test_a_model_that_is_there_twice_is_refused():
    """It would agree with itself."""
    with pytest.raises(Invalid, match="'s@2' and 's@0' have the same weights"):
        run([table(BASE, seed=i) for i in range(3)], fingerprints=["a", "b", "a"])


def test_gaps_that_are_all_equal_make_no_ranking():
    """G and C rank alike, so nobody has another role than anybody else."""
    with pytest.raises(Invalid, match="by gap, all 20 components of 's@0' rank alike"):
        run([table(BASE, noise=0.0, seed=i) for i in range(3)], ranking="gap")
    assert run([table(BASE, noise=0.0, seed=i) for i in range(3)]).details["mean_over_pairs"]["gap"] is None


def test_ties_of_accuracy_settle_nothing():
    """Effects that are nearly all at the floor are no ranking; the gradients' ranking does not care."""
    wrong = np.zeros((80, N), bool)
    wrong[:, 0], wrong[:40, 1] = True, True
    tables = [table(BASE, seed=i, wrong=wrong) for i in range(3)]
    assert "s@0: " in run(tables, effect="accuracy").unsettled
    assert run(tables, effect="accuracy", ranking="gradient").unsettled is None


def test_the_same_numbers_come_out_again():
    """Seeded."""
    tables = [table(shuffled(i), seed=i, noise=1.0) for i in range(3)]
    assert run(tables).interval == run(tables).interval
