"""What holds for accuracy, shared_size, composition and layer_profile alike: the gate, degenerate scores, the same numbers again."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits.errors import Invalid
from tests.fakes.known_circuits import N, plain, study

CALLS = [
    ("shared_size", {}),
    ("composition", {}),
    ("layer_profile", {"part": "early"}),
    ("circuit_match", {"known": ["L0H0"]}),
    ("sufficiency", {}),
]


@pytest.mark.parametrize(("name", "more"), CALLS)
def test_the_gate_and_the_degenerate_scores_hold_for_every_property(name, more):
    """A model that cannot do the task, zero scores, K of all components, and a P that asks for a single example; each with its code."""

    def check(made, match, code, **parameters):
        with pytest.raises(Invalid, match=match) as refusal:
            made.estimate(name, task="t", **more, **parameters)
        assert refusal.value.code == code

    check(study(correct=lambda s, mode, n: np.zeros(n, bool)), "no behaviour to explain", "accuracy-below-gate")
    guessing = study(correct=lambda s, mode, n: np.arange(n) % 8 > 1, chance=0.7)
    check(guessing, r"is not clearly above 0\.700", "accuracy-not-above-chance")
    check(study(np.zeros((N, 16))), "scores of task 't' are zero", "no-circuit")
    check(study(), "all 16 components", "circuit-is-everything", size="100%")
    check(study(groups=tuple(f"g{i % 4}" for i in range(N))), "form 4 groups", "too-few-groups")
    if name not in ("composition", "layer_profile"):
        check(study(), "is a single one", "share-of-one-example", p=0.01)


@pytest.mark.parametrize(("name", "more"), [("accuracy", {}), *CALLS])
def test_the_same_study_gives_the_same_numbers(name, more):
    first, second = (study().estimate(name, task="t", **({} if name == "accuracy" else {"size": 2}), **more) for _ in range(2))
    assert first == second
    plain(first.details)
    assert all(isinstance(line, str) for line in first.details["notes"]) and first.details["notes"]
