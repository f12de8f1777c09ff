"""Joint against single drops: hand-made tables, heads that back each other up, and coverage in simulated populations."""

import numpy as np
import pytest
from pydantic import ValidationError

from pytest_circuits.core.results import Encoded
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid, UnitError
from pytest_circuits.measurement.example_selection import examples_of
from pytest_circuits.measurement.requests import Ablate, Part, Sweep
from pytest_circuits.properties.gradients.joint_ablation import JOINT_ABLATION
from pytest_circuits.properties.gradients.superadditivity import SUPERADDITIVITY
from tests.fakes.gradients import Planted, Table, settle

UNIVERSE = Universe(2, 4)
N, UNITS = UNIVERSE.components, UNIVERSE.component_names
PAIR = {"units": ["L1H0", "L0H1"]}


def table(n=120, seed=0, c=None, **more):
    rng = np.random.default_rng(seed)
    c = np.arange(1.0, N + 1) / 10 if c is None else c
    return Table(UNIVERSE, rng.gamma(25, 0.04, (n, N)) * np.arange(N, 0, -1), rng.gamma(1, 1, (n, N)) * c, **more)


def test_additive_losses_are_certified_additive():
    found = settle(SUPERADDITIVITY, table(), set={"units": list(UNITS[:4])})
    assert found.value == pytest.approx(0, abs=1e-6) and max(map(abs, found.interval)) < 1e-5


@pytest.mark.parametrize("extra", [0.5, -0.5])
def test_the_value_is_joint_minus_the_sum_on_the_same_evaluation_examples(extra):
    model = table()
    rng = np.random.default_rng(1)
    surplus = extra + rng.normal(0, 0.2, 120)
    model.joint = lambda names: model.loss[:, UNIVERSE.index(names)].sum(1) + surplus
    found = settle(SUPERADDITIVITY, model, set=PAIR)
    assert found.interval[0] < extra < found.interval[1] and found.interval[1] - found.interval[0] < 0.15, "paired: singles cancel"
    d = found.details
    assert d["set"]["units"] == ["L0H1", "L1H0"] and d["set"]["chosen"] == "named"
    assert found.value == pytest.approx(d["joint"]["loss"] - d["single"]["L0H1"]["loss"] - d["single"]["L1H0"]["loss"], abs=1e-6)
    asked = [r for r in model.asked if isinstance(r, Ablate)][-1]
    assert asked.sets == (("L0H1", "L1H0"), ("L0H1",), ("L1H0",)) and asked.part.which == "evaluation"
    assert not any(isinstance(r, Sweep) for r in model.asked), "a named set costs k + 1 ablations"
    mean = settle(SUPERADDITIVITY, model, set=PAIR, against="mean")
    assert mean.value == pytest.approx(d["joint"]["loss"] - d["sum_of_singles"]["loss"] / 2, abs=1e-6)


def accuracies(joint, one, two, n=400, seed=0):
    """Intact always right; these shares become wrong, each drawn on its own."""
    rng = np.random.default_rng(seed)
    wrong = np.zeros((n, N), bool)
    wrong[:, 1], wrong[:, 5] = rng.random(n) < one, rng.random(n) < two
    both = rng.random(n) < joint if joint is not None else wrong[:, 1] | wrong[:, 5]
    return table(n=n, wrong=wrong, joint_wrong=lambda names: both)


def test_accuracy_is_compared_with_the_sum_the_mean_and_independence():
    model = accuracies(0.5, 0.2, 0.3)
    found = {a: settle(SUPERADDITIVITY, model, set=PAIR, effect="accuracy", against=a) for a in ("sum", "mean", "independence")}
    d = found["sum"].details
    joint, one, two = d["joint"]["accuracy"], d["single"]["L0H1"]["accuracy"], d["single"]["L1H0"]["accuracy"]
    assert found["sum"].value == pytest.approx(joint - one - two)
    assert found["mean"].value == pytest.approx(joint - (one + two) / 2)
    assert found["independence"].value == pytest.approx(joint - (1 - (1 - one) * (1 - two)))
    assert found["sum"].interval[0] < 0 < found["sum"].interval[1] and found["mean"].interval[0] > 0
    assert found["independence"].interval[0] < 0.06 < found["independence"].interval[1]
    independent = settle(SUPERADDITIVITY, accuracies(None, 0.2, 0.3), set=PAIR, effect="accuracy", against="independence")
    assert independent.interval[0] < 0 < independent.interval[1]


def test_singles_that_exceed_the_accuracy_and_ratios_without_a_denominator_are_pointed_out():
    lost = settle(SUPERADDITIVITY, accuracies(1.0, 0.7, 0.8), set=PAIR, effect="accuracy")
    assert lost.value < 0 and lost.details["sum_exceeds_intact"] and lost.details["saturated"]
    assert any("use against: independence" in line for line in lost.details["notes"])
    assert any("saturation" in line for line in lost.details["notes"])
    assert lost.details["ratio_warning"] is None and lost.details["joint_over_mean_single"] == pytest.approx(1 / 0.75, abs=0.1)
    nothing = settle(SUPERADDITIVITY, table(c=np.zeros(N), joint=lambda names: np.ones(120)), set=PAIR)
    assert nothing.details["joint_over_mean_single"] is None and "not clearly above 0" in nothing.details["ratio_warning"]
    assert nothing.value == pytest.approx(1)


def test_sets_are_chosen_on_discovery_examples_alone():
    """What is a bloat differs between the sides of the split; the discovery side decides."""
    model = table(c=np.where(np.arange(N) < 3, 0.0, 1.0))
    found = settle(SUPERADDITIVITY, model, set="bloats")
    assert found.details["set"]["units"] == ["L0H0", "L0H1", "L0H2"]
    assert [r.part.which for r in model.asked if isinstance(r, Sweep)] == ["discovery"]
    rows = examples_of(Part("evaluation", 0.5, 0), Encoded(120, model.groups, "d"))
    model.loss[rows, :3] = 5.0  # harmless on discovery examples only
    again = settle(SUPERADDITIVITY, model, set="bloats")
    assert again.details["set"]["units"] == found.details["set"]["units"] and again.details["single"]["L0H0"]["loss"] == pytest.approx(5)


def test_each_way_of_choosing_a_set():
    model = table(c=np.array([0.0, 0.01, 1.0, 0.3, 0.2, 0.08, 0.0, 0.5, 0.02, 2.0]))

    def units(**options):
        return settle(SUPERADDITIVITY, model, **options).details["set"]["units"]

    assert units(set="heroes") == ["L1H2", "L1MLP"]
    assert units(set="bloats") == ["L0H0", "L0H1"]
    assert units(set="heroes", chosen_by="metric", delta=0.3) == ["L1H2", "L1MLP"]
    assert units(set="heroes", rule="rank_gap", gap=3) == ["L1H2", "L1MLP"]
    assert units(set="top", size=3) == ["L0H0", "L0H1", "L0H2"]
    assert units(set="top", threshold=0.15) == ["L0H0", "L0H1"]
    discovery = examples_of(Part("discovery", 0.5, 0), Encoded(120, model.groups, "d"))
    top_four = (model.gradient[discovery].argsort(1).argsort(1) >= N - 4).mean(0)
    assert units(set="shared", size="40%", p=0.8) == [u for u, share in zip(UNITS, top_four, strict=True) if share >= 0.8]


@pytest.mark.parametrize(
    ("make", "options", "reason"),
    [
        (table, {"set": {"units": ["L0H1"]}}, "has only L0H1"),
        (table, {"set": "top", "size": 1}, "at least 2 components"),
        (table, {"set": {"units": list(UNITS)}}, "all 10 components"),
        (table, {"set": "shared", "size": "100%"}, "all 10 components"),
        (lambda: table(c=np.ones(N)), {"set": "bloats"}, "none of 10 components is one of the bloats"),
        (lambda: table(c=np.zeros(N)), {"set": "heroes"}, "no ablation changes the loss"),
        (lambda: Table(UNIVERSE, np.zeros((40, N)), np.ones((40, N))), {"set": "top"}, "only 0 of 10 components have"),
        (lambda: Table(UNIVERSE, np.eye(N)[np.arange(40) % N], np.ones((40, N))), {"set": "shared"}, "is empty"),
        (lambda: table(right=np.zeros(120, bool)), {"set": PAIR}, "below min_accuracy"),
        (
            lambda: table(right=np.zeros(120, bool)),
            {"set": PAIR, "min_accuracy": 0.0, "effect": "accuracy", "against": "independence"},
            "intact accuracy is 0",
        ),
    ],
)
def test_what_is_no_set_is_invalid(make, options, reason):
    with pytest.raises(Invalid, match=reason):
        settle(SUPERADDITIVITY, make(), **options)


def test_mistakes_in_the_set_are_refused():
    with pytest.raises(UnitError, match="does not exist"):
        settle(SUPERADDITIVITY, table(), set={"units": ["L7H0", "L0H0"]})
    for wrong, reason in (
        ({"set": {"units": ["L0H0", "L0H0"]}}, "named twice"),
        ({"set": {"units": []}}, "at least 1"),
        ({"set": "villains"}, "heroes"),
        ({"set": PAIR, "against": "independence"}, "needs effect: accuracy"),
        ({"set": PAIR, "low": 0.7}, "overlap"),
        ({}, "set"),
    ):
        with pytest.raises(ValidationError, match=reason):
            SUPERADDITIVITY.parameters.model_validate({"task": "t", **wrong})


def test_ranges_make_vacuous_bounds_visible():
    def limits(prop, **options):
        return prop.range(prop.parameters.model_validate({"task": "t", **options}))

    assert limits(SUPERADDITIVITY, set=PAIR) == (None, None)
    assert limits(SUPERADDITIVITY, set=PAIR, effect="accuracy") == (-2, 2)
    assert limits(SUPERADDITIVITY, set="top", effect="accuracy") == (None, None)
    assert limits(SUPERADDITIVITY, set="top", effect="accuracy", against="mean") == (-1, 1)
    assert limits(JOINT_ABLATION, set=PAIR) == (-1, 1) and limits(JOINT_ABLATION, set=PAIR, effect="loss") == (None, None)


def test_coverage_of_skewed_surpluses_by_group():
    """Surpluses are lognormal, four examples of a group share theirs: intervals must count groups."""
    truth, hits = np.exp(0.5), 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        surplus = np.repeat(rng.lognormal(size=64), 4)
        model = table(n=256, seed=seed, groups=tuple(f"g{i // 4}" for i in range(256)))
        model.joint = lambda names, s=surplus, m=model: m.loss[:, UNIVERSE.index(names)].sum(1) + s
        low, high = settle(SUPERADDITIVITY, model, set=PAIR).interval
        hits += low <= truth <= high
    assert hits >= 0.88 * 150, "32 groups of a lognormal: about 92%"


@pytest.fixture(scope="module")
def backup():
    return Planted("backup")


def test_planted_backups_are_certified_superadditive_and_others_additive(backup):
    heads = {"units": ["L0H1", "L1H3"]}
    loss = settle(SUPERADDITIVITY, backup, set=heads)
    assert loss.interval[0] > 2 and loss.details["joint"]["accuracy"] == 1 and loss.details["sum_of_singles"]["loss"] == pytest.approx(0)
    for against in ("sum", "mean", "independence"):
        assert settle(SUPERADDITIVITY, backup, set=heads, effect="accuracy", against=against).interval[0] > 0
    for other in (["L0H1", "L0H0"], ["L1H3", "L2MLP"], ["L0H0", "L1H1", "L2H2"]):
        found = settle(SUPERADDITIVITY, backup, set={"units": other})
        assert found.interval == pytest.approx((0, 0), abs=1e-4)


def test_joint_ablation_of_backups_beats_random_sets_of_the_same_types(backup):
    heads = {"units": ["L0H1", "L1H3"]}
    alone = settle(JOINT_ABLATION, backup, set=heads)
    assert alone.value == 1 and alone.interval[0] > 0.3 and alone.details["accuracy_without_set"] == 0
    controlled = settle(JOINT_ABLATION, backup, set=heads, control="c3")
    assert controlled.value == 1 and controlled.details["control"]["rank_p"] == pytest.approx(1 / 50)
    assert all(len(s) == 2 and not any(u.endswith("MLP") for u in s) for s in controlled.details["control"]["sets"])
    loss = settle(JOINT_ABLATION, backup, set=heads, effect="loss", control="c3")
    assert loss.value == pytest.approx(np.log(21), abs=1e-3)
    single = settle(JOINT_ABLATION, backup, set={"units": ["L0H1"]}, effect="loss")
    assert single.interval == pytest.approx((0, 0), abs=1e-4)


def test_joint_ablation_of_a_table_is_the_drop_minus_the_mean_control():
    model = table(c=np.where(np.arange(N) == 9, 4.0, np.arange(N) / 10))
    found = settle(JOINT_ABLATION, model, set={"units": ["L0H0", "L1MLP"]}, effect="loss", control="c3")
    controls = found.details["control"]
    assert found.value == pytest.approx(found.details["drop"] - np.mean(controls["drops"]))
    assert all(sum(u.endswith("MLP") for u in s) == 1 and not {"L0H0", "L1MLP"} & set(s) for s in controls["sets"])
    assert found.interval[0] < found.value < found.interval[1] and found.details["drop"] == pytest.approx(4, abs=0.8)
    heroes = settle(JOINT_ABLATION, table(c=np.where(np.arange(N) == 8, 1.0, 0.0)), set="heroes", effect="loss")
    assert heroes.details["set"]["units"] == ["L1H3"] and heroes.interval[0] > 0.5


def test_controls_that_are_the_set_itself_or_unknown_are_refused():
    with pytest.raises(ValidationError, match="did you mean 'c3"):
        JOINT_ABLATION.parameters(task="t", set="top", control="c33")
    with pytest.raises(Invalid, match="2 MLPs are needed"):
        settle(JOINT_ABLATION, table(), set={"units": ["L0MLP", "L1MLP"]}, control="c3")
    with pytest.raises(Invalid, match="itself"):
        settle(JOINT_ABLATION, table(), set={"units": ["L0MLP", "L1MLP"]}, control="c3_parity")
