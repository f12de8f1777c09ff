"""What can be told of a claim before anything is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_circuits.claims.preflight import warnings
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Bound, Estimate, decide
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.store import Store
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.preflight import PreflightContext, best_case
from pytest_circuits.stats.betting import betting_interval

MODEL = ModelSource("m", "nowhere")
SMALL, LARGE = Universe(4, 8, 64), Universe(12, 12, 3072)


def told(name, bound, n=200, universe=LARGE, expect="certified", discovery=None, **parameters):
    """The warnings about a claim with n groups of evaluation examples."""
    prop = PROPERTIES.get(name)
    checked = prop.parameters(**parameters)
    sides = dict.fromkeys(task_names(checked), (discovery or n, n))
    context = PreflightContext(bound, checked.confidence, sides, sides, universe)
    return [warning.text for warning in prop.warnings(checked, context) if warning.verdict in (None, expect)]


@pytest.mark.parametrize(("bound", "n", "expect", "fits"), [
    (Bound(0.7), 12, "certified", False),  # twelve ones: [0.676, 1]
    (Bound(0.67), 12, "certified", True),
    (Bound(0.7), 40, "certified", True),
    (Bound(None, 0.3), 12, "certified", False),
    (Bound(None, 0.33), 12, "certified", True),
    (Bound(0.3), 12, "refuted", False),
    (Bound(0.3), 20, "refuted", True),
    (Bound(None, 0.7), 12, "refuted", False),
    (Bound(0.4, 0.6), 20, "certified", False),
    (Bound(0.4, 0.6), 500, "certified", True),
    (Bound(0.8, 1.0), 30, "certified", True),
    (Bound(0.01, 0.99), 12, "refuted", False),
    (Bound(0.4, 0.99), 12, "refuted", True),
    (Bound(0.7), 12, "inconclusive", True),
])  # fmt: skip
def test_too_few_examples_for_even_perfect_ones_to_settle_it(bound, n, expect, fits):
    found = told("accuracy", bound, n, expect=expect, task="t")
    assert bool(found) is not fits
    if not fits:
        assert len(found) == 1 and f"{n} groups of evaluation examples are too few for it to be {expect}" in found[0]


def test_the_arithmetic_is_told():
    (line,) = told("reuse", Bound(0.7), 12, task="t")
    assert "if all agreed on 1, the 95% interval would be [0.676, 1.000], and the bound is 'at least 0.7'; give more prompts" in line
    low = betting_interval(np.ones(12), 0.95)[0]
    assert f"{low:.3f}" == "0.676"


@settings(max_examples=150, deadline=None)
@given(
    st.integers(5, 40), st.floats(0, 1), st.floats(0, 1), st.sampled_from(["at_least", "at_most", "within"]),
    st.sampled_from([(0.0, 1.0), (-1.0, 1.0)]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_what_is_said_to_be_impossible_never_happens(n, a, b, kind, ends, seed):
    lowest, highest = ends
    a, b = sorted(lowest + (highest - lowest) * x for x in (a, b))
    assume(a < b)
    bound = {"at_least": Bound(a), "at_most": Bound(None, b), "within": Bound(a, b)}[kind]
    prop = PROPERTIES.get("accuracy")
    context = PreflightContext(bound, 0.95, {"t": (n, n)}, {"t": (n, n)})
    impossible = {one.verdict for one in best_case(lowest, highest)(prop.parameters(task="t"), context)}
    rng = np.random.default_rng(seed)
    middle = (max(a, lowest) + min(b, highest)) / 2
    for values in (
        np.full(n, lowest), np.full(n, highest), np.full(n, a), np.full(n, middle), rng.uniform(lowest, highest, n),
        np.where(rng.random(n) < 0.5, lowest, highest),
    ):  # fmt: skip
        interval = betting_interval(values, 0.95, lowest, highest)
        verdict = decide(Estimate(float(values.mean()), interval, n), bound).kind
        assert verdict not in impossible, (values, interval)


@pytest.mark.parametrize(("name", "parameters", "doubtful"), [
    ("necessity", {}, True),
    ("necessity", {"definition": "relative"}, False),
    ("sufficiency", {}, True),
    ("sufficiency", {"control": "none", "definition": "relative"}, False),
    ("specificity", {"tasks": ["u"]}, True),
    ("cross_task_ablation", {}, True),
    ("cross_task_ablation", {"normalised": "row", "circuit": {"task": "u"}}, False),
    ("joint_ablation", {"set": "shared", "effect": "accuracy"}, True),
    ("joint_ablation", {"set": "shared", "effect": "loss"}, False),
    ("composition", {}, True),
    ("layer_profile", {"part": "early"}, True),
    ("shared_size", {}, False),  # a bootstrap of equal data has no width
    ("neuron_faithfulness", {"neurons": 20}, False),
])  # fmt: skip
def test_which_properties_have_intervals_that_can_be_told(name, parameters, doubtful):
    assert any("too few" in one for one in told(name, Bound(0.9), 8, task="t", **parameters)) is doubtful


@pytest.mark.parametrize(
    ("draws", "confidence", "wanted"), [(20, 0.95, None), (49, 0.98, None), (49, 0.99, 99), (20, 0.96, 24), (99, 0.99, None)]
)
def test_too_few_draws_for_the_confidence(draws, confidence, wanted):
    """The rank of one among m others is at least 1/(m + 1)."""
    found = [one for one in told("necessity", Bound(0.1), task="t", draws=draws, confidence=confidence) if "draws" in one]
    assert bool(found) is (wanted is not None)
    if wanted:
        assert f"under p = {1 / (draws + 1):.3f}" in found[0] and found[0].endswith(f"that takes {wanted} draws")
        assert 1 / (wanted + 1) <= round(1 - confidence, 9) < 1 / wanted
    assert not told("sufficiency", Bound(0.1), 500, task="t", draws=draws, control="none", confidence=confidence)


@pytest.mark.parametrize(("universe", "more", "k"), [
    (SMALL, {"size": "5%"}, 1), (SMALL, {"size": "10%"}, None), (SMALL, {"size": 2}, 2), (Universe(4, 4, 8), {"size": "10%"}, 2),
    (LARGE, {"size": "5%"}, None), (None, {"size": "5%"}, None), (SMALL, {"threshold": 0.3}, None),
])  # fmt: skip
def test_circuits_of_very_few_components(universe, more, k):
    found = told("reuse", Bound(0.1), universe=universe, task="t", **more)
    assert len(found) == (k is not None)
    if k is not None:
        assert f"of the model's {universe.components} components makes circuits of {k}" in found[0]
        assert ("10% would be 3" in found[0]) is (universe == SMALL)


def test_a_named_set_that_leaves_no_control():
    named = {"set": {"units": ["L0MLP", "L1MLP", "L2MLP", "L0H1"]}, "task": "t", "effect": "accuracy"}
    (line,) = told("joint_ablation", Bound(0.1), universe=SMALL, control="c3", **named)
    assert "the set has 3 of the model's 4 MLPs, so only 1 are left for a control c3 of 3" in line
    assert not told("joint_ablation", Bound(0.1), universe=SMALL, control="c3_any", **named)
    assert not told("joint_ablation", Bound(0.1), universe=LARGE, control="c3", **named)
    assert not told("joint_ablation", Bound(0.1), universe=SMALL, control="none", **named)


def test_a_share_that_is_one_example():
    assert "P = 0.1 of 10 discovery examples of 't' is a single one" in told("reuse", Bound(0.1), discovery=10, p=0.1, task="t")[0]
    assert not told("reuse", Bound(0.1), discovery=11, p=0.1, task="t")


def question(name, task="ioi", n=24, **parameters):
    prop = PROPERTIES.get(name)
    checked = prop.parameters(task="t", **parameters)
    return Claim(name, checked, MODEL, {"t": TaskSource.make("t", "builtin", task, {"n": n})})


def asked(tmp_path, made, bound, expect="certified", universe=LARGE):
    return warnings(Executor(Store(tmp_path), opener=None), made.with_bound(bound, expect), universe)


def test_groups_are_counted_on_the_side_that_is_evaluated(tmp_path):
    assert "12 groups" in asked(tmp_path, question("accuracy"), Bound(0.9))[0]
    assert "5 groups" in asked(tmp_path, question("accuracy", split=0.8), Bound(0.9))[0]
    assert "23 groups" in asked(tmp_path, question("accuracy", split="in_sample"), Bound(0.95))[0]


def test_the_last_planned_look_counts_and_its_share_of_the_error(tmp_path):
    assert not asked(tmp_path, question("accuracy", max_n=200), Bound(0.9))
    (line,) = asked(tmp_path, question("accuracy", max_n=48), Bound(0.95))
    assert "97.5% interval" in line
    assert "0.95" not in asked(tmp_path, question("necessity", max_n=400, draws=20), Bound(0.1))  # draws: the claim's own confidence


def test_only_what_stands_in_the_way_of_what_is_expected(tmp_path):
    made = question("accuracy")
    assert "certified" in asked(tmp_path, made, Bound(0.9))[0]
    assert asked(tmp_path, made, Bound(0.9), "refuted") == []
    assert "refuted" in asked(tmp_path, made, Bound(0.1), "refuted")[0]
    assert asked(tmp_path, made, Bound(0.9), "measured") == asked(tmp_path, made, Bound(0.9), "invalid") == []
    assert len(asked(tmp_path, question("reuse", size="5%"), Bound(0.9), "measured", SMALL)) == 1


def test_a_task_that_cannot_be_read_or_split_is_told_elsewhere(tmp_path):
    assert asked(tmp_path, question("accuracy", n=4), Bound(0.9)) == []
    gone = Claim("accuracy", PROPERTIES.get("accuracy").parameters(task="t"), MODEL, {"t": TaskSource.make("t", "file", "gone.jsonl")})
    assert asked(tmp_path, gone, Bound(0.9)) == []
