"""composition against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits.errors import Invalid
from tests.fakes.known_circuits import EVALUATION, circuits, plain, study


def test_composition_averages_the_shares_of_the_evaluation_examples():
    """Circuits of 4: one with 1 MLP, one with 3; 12 heads and 4 MLPs in the model."""
    scores = circuits(["L0H0", "L0H1", "L1H0", "L1MLP"], ["L0MLP", "L1MLP", "L3MLP", "L2H1"])
    made = study(scores)
    second = np.mean(EVALUATION % 2)
    expected = {
        "mlp_share": 0.25 + 0.5 * second,
        "head_share_of_heads": (3 - 2 * second) / 12,
        "mlp_share_of_mlps": (1 + 2 * second) / 4,
    }
    for what, value in expected.items():
        found = made.estimate("composition", task="t", size=4, what=what)
        assert found.value == pytest.approx(value)
        assert found.interval[0] < value < found.interval[1]
    details = plain(found.details)
    assert details["means"] == pytest.approx(expected)
    assert details["chance"] == {"mlp_share": 0.25, "head_share_of_heads": 0.25, "mlp_share_of_mlps": 0.25}
    assert details["per_layer"]["mlps"] == pytest.approx([second, 1, 0, second])
    assert details["per_layer"]["heads"] == pytest.approx([2 * (1 - second), 1 - second, second, 0])


def test_examples_without_a_circuit_are_left_out_of_the_composition_and_counted():
    """Otherwise their 0 of 0 MLPs would count as something."""
    scores = circuits(["L0MLP", "L1MLP"])
    scores[EVALUATION[:5]] = 0
    found = study(scores).estimate("composition", task="t", size=2)
    assert (found.value, found.n, found.details["examples_without_circuit"]) == (1, 15, 5)
    scores[EVALUATION] = 0
    with pytest.raises(Invalid, match="none of the 20 evaluation examples"):
        study(scores).estimate("composition", task="t", size=2)
