"""accuracy against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits.errors import Invalid
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.split import split_by_group
from tests.fakes.known_circuits import N, plain, study


def test_accuracy_is_the_mean_over_the_groups_of_the_evaluation_examples():
    """Groups of one and of three examples count the same; the interval is the betting interval."""
    groups = tuple(f"g{i // 2}" if i < 20 else f"h{i // 4}" for i in range(N))
    right = np.arange(N) % 3 > 0
    found = study(correct=lambda s, mode, n: right, groups=groups, chance=0.25).estimate("accuracy", task="t")
    rows = split_by_group(groups, 0.5, 0)[1]
    means = [np.mean([right[i] for i in rows if groups[i] == g]) for g in dict.fromkeys(groups[i] for i in rows)]
    assert found.value == pytest.approx(np.mean(means))
    assert found.interval == grouped_mean_interval(right[rows], [groups[i] for i in rows], 0.95)[1]
    details = plain(found.details)
    assert (details["correct"], details["n"], details["chance"]) == (int(right[rows].sum()), len(rows), 0.25)
    assert details["groups_evaluated"] == len(means)
    assert details["per_group"]["standard_deviation"] == pytest.approx(np.std(means, ddof=1))
    worst = min(means)
    assert min(details["per_group"]["lowest"].values()) == pytest.approx(worst, abs=1e-4)


def test_accuracy_has_no_gate_since_it_is_the_accuracy():
    """A model that is always wrong is measured, not refused, whatever min_accuracy says."""
    found = study(correct=lambda s, mode, n: np.zeros(n, bool), chance=0.5).estimate("accuracy", task="t", min_accuracy=0.9)
    assert found.value == 0 and found.interval[0] == 0 and 0 < found.interval[1] < 0.3
    assert "not clearly above the 0.500" in found.details["notes"][0]


def test_accuracy_in_sample_counts_all_examples():
    """And only them: the intact model is the only thing that is measured."""
    made = study(correct=lambda s, mode, n: np.arange(n) < 30)
    found = made.estimate("accuracy", task="t", split="in_sample")
    assert (found.n, found.value) == (N, 0.75)
    assert [type(one).__name__ for one in made.asked] == ["Encode", "Ablate"]
    assert made.asked[1].sets == ((),)


def test_accuracy_with_too_few_groups_is_invalid():
    with pytest.raises(Invalid, match="form 3 groups"):
        study(groups=tuple(f"g{i % 3}" for i in range(N))).estimate("accuracy", task="t")
