"""Circuits by a share of the scores, and contrastive circuits: by hand, by brute force, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits.core.results import Attribution
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid, OptionError
from pytest_circuits.measurement.requests import Attribute
from pytest_circuits.properties.consistency.reuse import Reuse
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.specificity.jaccard import Jaccard
from pytest_circuits.properties.steps.attribution import strength
from pytest_circuits.stats.split import split_by_group
from tests.fakes.components import Fake, Study, planted_scores

UNIVERSE = Universe(2, 3)  # 8 components: L0H0 L0H1 L0H2 L0MLP L1H0 …
UNITS = UNIVERSE.names()
N = 40


def made_of(values, indices=None):
    return Attribution(np.asarray(values, np.float32), UNITS, "eap", "component", "logit_diff", indices=indices)


# circuits_above


@given(st.lists(st.integers(-40, 40), min_size=8, max_size=8), st.sampled_from([0.01, 0.1, 0.125, 0.2, 0.3, 1 / 3, 0.5, 0.7, 0.999]))
def test_circuits_above_compares_in_exact_arithmetic(row, threshold):
    """|s| ≥ τ·Σ|s| in integers; nothing where all are zero."""
    total = sum(map(abs, row))
    expected = [total > 0 and abs(s) > 0 and abs(s) >= Fraction(str(threshold)) * total for s in row]
    found = made_of([row]).circuits_above(threshold)
    assert found.members.tolist() == [expected]
    assert found.members.sum() <= 1 / Fraction(str(threshold))


def test_a_unit_with_exactly_the_threshold_is_in_although_floats_say_otherwise():
    """7 of 100 is 7%, and in floats 0.07 · 100 is more than 7."""
    assert 0.07 * 100.0 > 7.0
    row = [7, 93, 0, 0, 0, 0, 0, 0]
    assert made_of([row]).circuits_above(0.07).members.tolist() == [[True] * 2 + [False] * 6]


def test_rows_without_scores_have_no_circuit():
    """A threshold of 0 times 0 would otherwise take every component."""
    found = made_of([[0] * 8, [1] * 8]).circuits_above(0.125)
    assert found.members.sum(1).tolist() == [0, 8]


@pytest.mark.parametrize("threshold", [0, 1, -0.1, 1.5, True, "10%", None, float("nan")])
def test_a_threshold_is_a_share_between_0_and_1(threshold):
    with pytest.raises(OptionError, match=r"between 0 and 1 \(exclusive\)"):
        made_of([[1] * 8]).circuits_above(threshold)


def test_a_threshold_needs_all_scores():
    kept = made_of([[3, 2]], np.array([[4, 1]], np.int32))
    with pytest.raises(OptionError, match="only the 2 strongest of 8"):
        kept.circuits_above(0.1)
    every = made_of([[3, 2, 1, 1, 1, 1, 1, 0]], np.array([[7, 1, 0, 2, 3, 4, 5, 6]], np.int32))
    assert every.circuits_above(0.2).members.tolist() == [[False, True] + [False] * 5 + [True]]


# threshold as a parameter


def test_threshold_takes_the_place_of_size_in_every_property_of_circuits():
    """Scores 4, 3, 2, 1: two units have 30%; by size there would be one."""
    scores = np.tile([4, 3, 2, 1, 0, 0, 0, 0], (N, 1))
    made = Study(UNIVERSE, {"t": Fake(scores)})
    found = made.estimate("reuse", task="t", p=0.9, threshold=0.3)
    assert found.details["shared_set"]["units"] == ["L0H0", "L0H1"]
    assert made.estimate("composition", task="t", threshold=0.15, what="mlp_share_of_mlps").details["mean_circuit_size"] == 3
    removed = made.estimate("necessity", task="t", p=0.9, threshold=0.3, control="c3_any", draws=20)
    assert removed.details["shared_set"]["size"] == 2


@pytest.mark.parametrize(
    ("scores", "threshold", "reason"),
    [
        (np.tile([4, 3, 2, 1, 0, 0, 0, 0], (N, 1)), 0.5, r"no component has 0.5 of the sum .* the largest share is 0.4\. Lower threshold"),
        (np.ones((N, 8)), 0.1, "threshold 0.1 puts all 8 components"),
        (np.zeros((N, 8)), 0.1, "scores of task 't' are zero"),
    ],
)
def test_thresholds_that_choose_nothing_or_everything_are_invalid(scores, threshold, reason):
    with pytest.raises(Invalid, match=reason):
        Study(UNIVERSE, {"t": Fake(scores)}).estimate("reuse", task="t", threshold=threshold)


def test_an_empty_shared_set_of_threshold_circuits_advises_a_lower_threshold():
    scores = np.eye(8)[np.arange(N) % 8]
    with pytest.raises(Invalid, match="Lower p or lower threshold"):
        Study(UNIVERSE, {"t": Fake(scores)}).estimate("necessity", task="t", threshold=0.5)


def test_size_and_threshold_exclude_each_other():
    with pytest.raises(ValidationError, match="size and threshold are two ways"):
        Reuse(task="t", size="10%", threshold=0.1)
    assert Reuse(task="t", threshold=0.1).threshold == 0.1
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(ValidationError):
            Reuse(task="t", threshold=wrong)


# contrast


@given(st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), min_size=1, max_size=4))
def test_strength_is_a_share_or_a_rank_and_zero_for_a_score_of_zero(rows):
    """Against counting: the rank is the number of weaker units and half of the equal ones, of N."""
    for row, share, rank in zip(rows, strength(rows, "share"), strength(rows, "rank"), strict=True):
        size = [abs(s) for s in row]
        assert share == pytest.approx([s / max(1, sum(size)) for s in size])
        below = [sum(o < s for o in size) + (sum(o == s for o in size) + 1) / 2 for s in size]
        assert rank == pytest.approx([b / 5 if s else 0 for b, s in zip(below, size, strict=True)])


def contrastive(by, here, *others, **more):
    """The circuits, as rows of unit names, of every example of task a against the others."""
    tasks = {"a": Fake(here), **{f"b{i}": Fake(other) for i, other in enumerate(others)}}
    made = Study(UNIVERSE, tasks)
    found = made.estimate("shared_size", task="a", contrast=list(tasks), contrast_by=by, p=0.9, split="in_sample", **more)
    return found.details["shared_set"]["units"], made, found


@pytest.mark.parametrize("by", ["share", "rank"])
def test_a_component_that_every_task_uses_is_not_in_a_contrastive_circuit(by):
    """L0MLP is the strongest everywhere; L1H1 is what this task has for itself."""
    shared = planted_scores(N, UNIVERSE, ["L0MLP"], noise=0.1)
    here = shared.copy()
    here[:, UNIVERSE.index(["L1H1"])] = 0.9
    plain = Study(UNIVERSE, {"a": Fake(here)}).estimate("shared_size", task="a", size=1, p=0.9, split="in_sample")
    assert plain.details["shared_set"]["units"] == ["L0MLP"]
    assert contrastive(by, here, planted_scores(N, UNIVERSE, ["L0MLP"], 1, 0.1), size=1)[0] == ["L1H1"]


def test_contrast_by_share_and_by_rank_by_hand():
    """One example repeated: scores 6 3 1 0 …, the other tasks 2 6 1 1 … and 0 8 2 0 …"""
    here, one, two = (np.tile(row + [0] * 4, (N, 1)) for row in ([6, 3, 1, 0], [2, 6, 1, 1], [0, 8, 2, 0]))
    # shares .6 .3 .1 0 against means of .2 .6 .1 .1 and 0 .8 .2 0: .5, −.4, −.05, −.05
    assert contrastive("share", here, one, two, size=3)[0] == ["L0H0"]
    # ranks 8 7 6 of 8, one 7 8 5.5 5.5, two – 8 7 –: differences of (8 − 3.5), (7 − 8), (6 − 6.25)
    assert contrastive("rank", here, one, two, size=3)[0] == ["L0H0"]
    # without the first, units 0 (8 − 0) and 2 (6 − 7), by share .6 − 0 and .1 − .2
    assert contrastive("rank", here, two, size=3)[0] == ["L0H0"]
    # against the first alone 2 has 6 − 5.5 by rank, and .1 − .1 by share
    assert contrastive("rank", here, one, size=3)[0] == ["L0H0", "L0H2"]
    assert contrastive("share", here, one, size=3)[0] == ["L0H0"]


def test_contrast_uses_the_discovery_examples_of_the_other_tasks_only():
    """On its evaluation examples the other task is the very opposite, which must not show."""
    groups = tuple(f"g{i}" for i in range(N))
    evaluation = split_by_group(groups, 0.5, 0)[1]
    here = planted_scores(N, UNIVERSE, ["L0MLP", "L1H1"])
    other = planted_scores(N, UNIVERSE, ["L0MLP"])
    other[evaluation] = 100 * planted_scores(N, UNIVERSE, ["L1H1"], 2)[evaluation]
    made = Study(UNIVERSE, {"a": Fake(here), "b": Fake(other)})
    found = made.estimate("reuse", task="a", contrast=["b"], size=1, p=0.9)
    assert found.details["shared_set"]["units"] == ["L1H1"] and found.value == 1


def test_contrast_with_a_threshold_is_a_share_of_what_stands_out():
    """Differences +.5 and +.1 of the shares: the second is a sixth of what stands out."""
    here, other = (np.tile(row + [0] * 4, (N, 1)) for row in ([5, 2, 3, 0], [0, 1, 9, 0]))
    assert contrastive("share", here, other, threshold=0.16)[0] == ["L0H0", "L0H1"]
    assert contrastive("share", here, other, threshold=0.17)[0] == ["L0H0"]


def test_equal_tasks_have_no_contrast():
    """Neither exactly, nor by what float32 leaves: a third of the sum is no number of bits."""
    scores = np.tile([1, 1, 1, 0, 0, 0, 0, 0], (N, 1))
    for by in ("share", "rank"):
        with pytest.raises(Invalid, match=rf"no component stands out on any example of task 'a' against a, b0 \(by {by}\)"):
            contrastive(by, scores, scores * 7)


def test_a_contrast_task_must_be_done_and_must_have_scores():
    here = planted_scores(N, UNIVERSE, ["L0H0"])
    with pytest.raises(Invalid, match="scores of contrast task 'b0' are zero"):
        contrastive("share", here, np.zeros((N, 8)))
    unable = Study(UNIVERSE, {"a": Fake(here), "b": Fake(here, lambda names, mode, n: np.zeros(n, bool))})
    with pytest.raises(Invalid, match="answers 0 of 20 examples of task 'b' correctly"):
        unable.estimate("reuse", task="a", contrast=["b"])


def test_examples_without_scores_have_no_contrastive_circuit_and_do_not_dilute_the_others():
    """In the other task, half of the examples have no score: the mean is over those that do."""
    here = np.tile([5, 4, 1, 0, 0, 0, 0, 0], (N, 1))
    here[::4] = 0
    other = np.tile([6, 4, 0, 0, 0, 0, 0, 0], (N, 1))
    other[::2] = 0
    made = Study(UNIVERSE, {"a": Fake(here), "b": Fake(other)})
    found = made.estimate("composition", task="a", contrast=["b"], size=2, split="in_sample")
    assert found.details["examples_without_circuit"] == N // 4
    assert found.details["mean_circuit_size"] == 1  # .1 − 0; .5 − .6 and .4 − .4 are not positive


def test_scores_are_asked_for_all_at_once_and_the_task_itself_is_left_out():
    _, made, _ = contrastive("share", planted_scores(N, UNIVERSE, ["L0H0"]), planted_scores(N, UNIVERSE, ["L1H0"], 1))
    asked = [one.task.name for one in made.asked if isinstance(one, Attribute)]
    assert asked == ["a", "b0"]


def test_two_tasks_are_each_contrasted_with_the_other():
    """The same list serves both: their contrastive circuits share nothing, their plain ones half."""
    a, b = planted_scores(N, UNIVERSE, ["L0MLP", "L1H0"]), planted_scores(N, UNIVERSE, ["L0MLP", "L1H1"], 1)
    made = Study(UNIVERSE, {"a": Fake(a), "b": Fake(b)})
    assert made.estimate("jaccard", tasks=["a", "b"], size=2, p=0.9).value == pytest.approx(1 / 3)
    assert made.estimate("jaccard", tasks=["a", "b"], size=1, p=0.9, contrast=["a", "b"]).value == 0


def test_contrast_tasks_are_references_that_come_after_the_task_and_must_make_sense():
    assert task_names(Reuse(task="a", contrast=["b", "a", "c"])) == ["a", "b", "c"]
    assert task_names(Jaccard(tasks=["a", "b"], contrast=["c"])) == ["a", "b", "c"]
    for wrong, reason in ((["a"], "only the task itself"), (["b", "b"], "names a task twice")):
        with pytest.raises(ValidationError, match=reason):
            Reuse(task="a", contrast=wrong)
    with pytest.raises(ValidationError):
        Reuse(task="a", contrast=["b"], contrast_by="ratio")
    made = Study(UNIVERSE, {"a": Fake(planted_scores(N, UNIVERSE, ["L0H0"])), "b": Fake(planted_scores(N, UNIVERSE, ["L1H0"]))})
    with pytest.raises(Invalid, match="contrast names only 'b'"):
        made.estimate("jaccard", tasks=["a", "b"], contrast=["b"])
