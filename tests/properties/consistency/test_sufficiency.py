"""sufficiency against hand-made outcomes and on planted circuits; controls that need norms; its relation to necessity."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from pytest_circuits.core.units import Universe, head_mlp_split
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.requests import Ablate, MeasureNorms
from pytest_circuits.properties.consistency.necessity import Necessity
from pytest_circuits.properties.consistency.sufficiency import SUFFICIENCY, Sufficiency
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.split import split_by_group
from tests.fakes.components import Fake, Study, planted_scores

UNIVERSE = Universe(4, 3)
N = 60
CORE = ["L0H1", "L2MLP"]
EVALUATION = split_by_group(tuple(f"g{i}" for i in range(N)), 0.5, 0)[1]


def study(correct, n=N, chance=0.0, **more):
    return Study(UNIVERSE, {"t": Fake(planted_scores(n, UNIVERSE, CORE), correct, chance=chance), **more})


def needs_core(names, mode, n):
    """Right exactly where both core units are live."""
    live = set(CORE) <= names if mode == "keep" else not set(CORE) & names
    return np.full(n, live)


def guesses(names, mode, n):
    """The intact model is right; with anything ablated, half of the answers are, whatever is kept."""
    return np.ones(n, bool) if mode == "remove" and not names else np.arange(n) % 2 == 0


def test_a_set_that_carries_the_task_alone_is_sufficient_beyond_any_control():
    """All of 1 against none of 49 controls; controls have one head and one MLP, and are kept, not removed."""
    made = study(needs_core)
    found = made.estimate("sufficiency", task="t", size=2)
    assert found.value == 1
    assert found.interval[0] > 0.7 and found.interval[1] == 1
    kept, controls = (one for one in made.asked[-2:])
    assert (kept.sets, kept.mode, controls.mode) == ((tuple(CORE), ()), "keep", "keep")
    assert len(controls.sets) == 49
    assert all(head_mlp_split(s) == {"heads": 1, "mlps": 1} and not set(s) & set(CORE) for s in controls.sets)
    details = json.loads(json.dumps(found.details, allow_nan=False))
    assert (details["accuracy_kept"], details["accuracy_keeping_nothing"], details["accuracy_keeping_control"]) == (1, 0, 0)
    assert details["rank_p"] == pytest.approx(1 / 50)


def test_a_set_that_keeps_no_more_than_random_ones_is_not_sufficient_however_many_answers_are_right():
    """Half of the answers are right under any ablation: the difference is 0, while the bare accuracy kept is a half and settles nothing."""
    made = study(guesses, chance=0.5)
    assert made.estimate("sufficiency", task="t", size=2).value == 0
    alone = made.estimate("sufficiency", task="t", size=2, control="none")
    assert alone.value == np.mean(EVALUATION % 2 == 0)
    assert "which is not clearly more" in alone.unsettled


def test_the_sign_is_that_of_the_set_over_its_controls():
    """A set that does worse than random ones has a negative value; the interval is not turned around."""
    found = study(lambda names, mode, n: np.full(n, not set(CORE) <= names)).estimate("sufficiency", task="t", size=2)
    assert found.value == -1
    assert found.interval[0] == -1 < found.interval[1] < -0.7


def test_the_bare_accuracy_kept_has_the_betting_interval_and_needs_no_draws():
    def most(names, mode, n):
        return np.ones(n, bool) if mode == "remove" else np.full(n, bool(names)) & (np.arange(n) % 5 > 0)

    made = study(most)
    found = made.estimate("sufficiency", task="t", size=2, control="none")
    right = EVALUATION % 5 > 0
    assert (found.value, found.interval) == grouped_mean_interval(right, [f"g{i}" for i in EVALUATION], 0.95)[:2]
    assert found.unsettled is None
    assert sum(isinstance(one, Ablate) for one in made.asked) == 2


def test_relative_is_a_share_of_the_intact_accuracy():
    """8 of 10 right intact, 4 of 10 with the set kept: a half, with an interval that holds it and no point outside [0, 1.25]."""

    def correct(names, mode, n):
        rank = np.empty(n, int)
        rank[EVALUATION] = np.arange(len(EVALUATION))
        rank[np.setdiff1d(np.arange(n), EVALUATION)] = np.arange(n - len(EVALUATION))
        return rank % 10 < (8 if mode == "remove" and not names else 4 if set(CORE) <= names else 0)

    for control in ("none", "c3"):
        made = study(correct)
        absolute = made.estimate("sufficiency", task="t", size=2, control=control)
        relative = made.estimate("sufficiency", task="t", size=2, control=control, definition="relative")
        assert (absolute.value, relative.value) == (pytest.approx(0.4), pytest.approx(0.5))
        assert 0 <= relative.interval[0] < 0.5 < relative.interval[1] <= 1.25
        # where the intact accuracy has no noise at all, the two are the same thing, though bets on a wider range win less
        certain = study(lambda names, mode, n: correct(names, mode, n) | (mode == "remove" and not names))
        plain, ratio = (certain.estimate("sufficiency", task="t", size=2, control=control, definition=d) for d in ("absolute", "relative"))
        assert ratio.value == plain.value
        assert ratio.interval[0] <= plain.interval[0] + 0.01 and plain.interval[1] - 0.01 <= ratio.interval[1]
        assert np.ptp(ratio.interval) < 1.5 * np.ptp(plain.interval)


def test_another_task_s_set_can_be_kept():
    other = Fake(planted_scores(N, UNIVERSE, ["L1H0", "L3MLP"]))
    made = study(needs_core, other=other)
    found = made.estimate("sufficiency", task="t", circuit={"task": "other"}, size=2, control="c3_any")
    assert found.details["shared_set"]["units"] == ["L1H0", "L3MLP"] and found.details["circuit_of"] == "other"
    assert found.details["accuracy_kept"] == 0


@pytest.mark.parametrize("name", ["sufficiency", "necessity"])
def test_matched_controls_ask_for_the_norms_of_the_discovery_examples(name):
    """The fake's norms are component numbers, so that candidates are neighbours; other controls need none."""
    made = study(needs_core)
    made.estimate(name, task="t", size=2, control="c3_matched", draws=20)
    asked = [one for one in made.asked if isinstance(one, MeasureNorms)]
    assert [one.part.which for one in asked] == ["discovery"]
    assert {unit for s in made.asked[-1].sets for unit in s} == {"L0H0", "L0H2", "L1MLP", "L3MLP"}
    made.asked.clear()
    made.estimate(name, task="t", size=2, draws=20)
    assert not any(isinstance(one, MeasureNorms) for one in made.asked)


def test_a_set_of_everything_and_a_control_that_cannot_be_drawn_are_invalid():
    alike = Study(UNIVERSE, {"t": Fake(np.tile(np.arange(16), (N, 1)) + np.arange(N)[:, None] % 2 * np.arange(16, 0, -1) * 2)})
    with pytest.raises(Invalid, match="the shared set is all 16 components"):
        alike.estimate("sufficiency", task="t", size="95%", p=0.1)
    mlps = Study(UNIVERSE, {"t": Fake(planted_scores(N, UNIVERSE, ["L0MLP", "L1MLP", "L2MLP"]))})
    with pytest.raises(Invalid, match="3 MLPs are needed but only 1 of 4"):
        mlps.estimate("sufficiency", task="t", size=3)


def test_necessity_and_sufficiency_refuse_unknown_controls_and_only_one_takes_none():
    for kind in (Necessity, Sufficiency):
        with pytest.raises(ValidationError, match="unknown control 'c4'"):
            kind(task="t", control="c4")
    assert Sufficiency(task="t", control="none").control == "none"
    with pytest.raises(ValidationError, match="unknown control 'none'"):
        Necessity(task="t", control="none")


@pytest.mark.parametrize(
    ("more", "limits"),
    [
        ({}, (-1, 1)),
        ({"control": "none"}, (0, 1)),
        ({"definition": "relative"}, (None, None)),
        ({"definition": "relative", "control": "none"}, (0, None)),
    ],
)
def test_the_range_of_values_follows_from_the_parameters(more, limits):
    """So that a bound that every value meets is refused."""
    assert SUFFICIENCY.range(Sufficiency(task="t", **more)) == limits


def test_a_rank_needs_twenty_different_control_sets_and_says_so_where_there_are_fewer():
    """4 MLPs, two in the set: c3_any leaves plenty; as many MLPs outside it are one single set, whatever is drawn."""
    mlps = ["L0MLP", "L2MLP"]
    made = Study(UNIVERSE, {"t": Fake(planted_scores(N, UNIVERSE, mlps), needs_core)})
    for name in ("sufficiency", "necessity"):
        found = made.estimate(name, task="t", size=2)
        assert found.details["control"]["distinct_sets"] == 1 and found.details["control"]["draws"] == 49
        assert found.details["rank_p"] is None and "only one control set is possible" in found.details["rank_p_reason"]
        assert any("no rank among the controls" in line for line in found.details["notes"])
        many = made.estimate(name, task="t", size=2, control="c3_any")
        assert many.details["control"]["distinct_sets"] == 91 and many.details["rank_p_reason"] is None
        assert many.details["rank_p"] >= 1 / 50


@pytest.mark.parametrize(("possible", "known"), [(1, False), (19, False), (20, True)])
def test_the_rank_is_the_number_of_draws_at_least_as_extreme(possible, known):
    from pytest_circuits.properties.steps.controls import control_rank, format_rank

    rank = control_rank(0.5, [0.1, 0.5, 0.9], possible)
    assert rank["rank_p"] == (pytest.approx(3 / 4) if known else None)
    assert ("p = 0.750" in format_rank(rank)) == known
