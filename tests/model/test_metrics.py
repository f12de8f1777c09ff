"""Metrics and correctness against numbers worked out by hand, and against loops over mixed batches."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits import PromptPair, Task, open_model
from pytest_circuits.errors import OptionError, TaskError
from pytest_circuits.model.metrics import Targets, correct, log_prob, logit_diff, prob
from tests.fakes import tiny
from tests.fakes.plain_hooks import outcomes, same

LN2 = math.log(2)


def targets(answer, foils, scoring="choices", stop=None, size=4):
    """One row; `foils` of any lengths, -1 where a foil has no token."""
    longest = max((len(f) for f in foils), default=0)
    padded = [[*f, *[-1] * (longest - len(f))] for f in foils]
    mask = None
    if stop is not None:
        mask = torch.zeros(size, dtype=torch.bool)
        mask[list(stop)] = True
    return Targets(torch.tensor([answer]), torch.tensor([padded], dtype=torch.long).reshape(1, len(foils), longest), scoring, mask)


def rows(*positions):
    return torch.tensor([positions], dtype=torch.float64)


def test_logit_diff_of_one_token():
    """3 − 1 against one foil; 3 − mean(1, 2) against two."""
    logits = rows([3.0, 1.0, 2.0, 0.0])
    assert logit_diff(logits, targets([0], [[1]])).tolist() == [2.0]
    assert logit_diff(logits, targets([0], [[1], [2]])).tolist() == [1.5]


def test_logit_diff_of_several_tokens_is_summed_and_averaged_over_foils():
    """Answer (0, 1): (3−1) + (5−4) against foil (1, 0); a foil of one token counts only its own position: 3−2."""
    logits = rows([3.0, 1.0, 2.0, 0.0], [4.0, 5.0, 0.0, 0.0])
    assert logit_diff(logits, targets([0, 1], [[1, 0]])).tolist() == [3.0]
    assert logit_diff(logits, targets([0, 1], [[2]])).tolist() == [1.0]
    assert logit_diff(logits, targets([0, 1], [[1, 0], [2]])).tolist() == [2.0]


def test_log_prob_and_prob_by_hand():
    """Uniform over four: −log 4; two tokens: twice that; prob 1/16. Logits (log 2, 0, 0, 0): 2/5."""
    uniform = rows([0.0] * 4, [0.0] * 4)
    assert log_prob(uniform, targets([0, 3], [])).tolist() == pytest.approx([-4 * LN2])
    assert prob(uniform, targets([0, 3], [])).tolist() == pytest.approx([1 / 16])
    assert prob(rows([LN2, 0.0, 0.0, 0.0]), targets([0], [])).tolist() == pytest.approx([0.4])


def test_extra_logits_after_the_answer_do_not_count():
    """With `stop` there is one position more than the answer has tokens."""
    one, more = rows([1.0, 2.0, 0.0, 0.0]), rows([1.0, 2.0, 0.0, 0.0], [9.0, -9.0, 3.0, 1.0])
    for function in (logit_diff, log_prob, prob):
        assert function(one, targets([0], [[1]])).tolist() == function(more, targets([0], [[1]])).tolist()


@pytest.mark.parametrize(
    ("logits", "answer", "foils", "scoring", "expected"),
    [
        ([[3, 1, 9, 0]], [0], [[1]], "choices", True),  # above the foil, though not the argmax
        ([[3, 1, 9, 0]], [0], [[1]], "argmax", False),
        ([[3, 1, 9, 0]], [2], [[1]], "argmax", True),
        ([[3, 3, 9, 0]], [0], [[1]], "choices", False),  # a tie is no answer
        ([[3, 1, 9, 0]], [0], [[1], [2]], "choices", False),  # one foil of two is above
        ([[3, 1, 9, 0]], [2], [], "choices", True),  # without foils: argmax
        ([[3, 1, 9, 0]], [0], [], "choices", False),
        ([[3, 1, 0, 0], [0, 5, 4, 0]], [0, 1], [[1, 2]], "choices", True),
        ([[3, 1, 0, 0], [0, 3, 4, 0]], [0, 1], [[1, 2]], "choices", False),  # the second token loses
        ([[3, 1, 0, 0], [0, 3, 4, 0]], [0, 1], [[1, 1]], "choices", True),  # where the foil agrees nothing is decided
        ([[3, 1, 0, 0], [0, 3, 4, 0]], [0, 1], [[1]], "choices", True),  # a foil of one token
        ([[3, 1, 0, 0], [0, 3, 4, 0]], [0, 1], [[1]], "argmax", False),
        ([[3, 1, 0, 0], [0, 5, 4, 0]], [0, 1], [[1]], "argmax", True),
    ],
)
def test_correct_by_hand(logits, answer, foils, scoring, expected):
    """Choices: above every foil at every token where they differ; argmax: every token the most likely one."""
    assert correct(rows(*[[float(x) for x in row] for row in logits]), targets(answer, foils, scoring)).tolist() == [expected]


@pytest.mark.parametrize(("following", "expected"), [([0, 0, 9, 0], False), ([9, 0, 0, 0], True)])
def test_an_answer_that_would_go_on_is_not_given(following, expected):
    """Token 2 is a digit: 10 is not answered by the start of 102; 10 followed by anything else is."""
    logits = rows([0.0, 5.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0], [float(x) for x in following])
    assert correct(logits, targets([1, 0], [], "argmax", stop=[2])).tolist() == [expected]


def test_logit_diff_without_foils_is_refused_and_says_what_to_do():
    """Also when only one example of the batch has none."""
    pairs = (PromptPair((1, 2), (1, 3), (4,), ((5,),)), PromptPair((2, 2), (1, 3), (4,)))
    with pytest.raises(TaskError, match=r"needs a foil.*log_prob"):
        open_model(tiny.model("gpt2")).attribute(Task("t", pairs), "atp")
    assert np.isfinite(open_model(tiny.model("gpt2")).attribute(Task("t", pairs), "atp", metric="log_prob").scores).all()


def test_an_unknown_metric_is_refused_with_a_suggestion():
    """Did you mean."""
    with pytest.raises(OptionError, match="did you mean 'log_prob'"):
        open_model(tiny.model("gpt2")).sweep(tiny.task(n=1), metric="logprob")


TOKEN = st.integers(0, tiny.VOCAB - 1)
ANSWER = st.lists(TOKEN, min_size=1, max_size=3).map(tuple)
SHARED = tiny.model("gpt2")
opened = cache(lambda: open_model(SHARED))


@st.composite
def mixed_pairs(draw):
    """Pairs with answers of 1–3 tokens and 1–4 foils of 1–3 tokens, which differ from the answer at the first."""
    answer = draw(ANSWER)
    foils = draw(st.lists(ANSWER.filter(lambda f: f[0] != answer[0]), min_size=1, max_size=4, unique=True))
    clean = draw(st.lists(TOKEN, min_size=3, max_size=4).map(tuple))
    corrupt = (*clean[:-1], (clean[-1] + 1) % tiny.VOCAB)
    return PromptPair(clean, corrupt, answer, tuple(foils))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(mixed_pairs(), min_size=1, max_size=6),
    st.sampled_from(["choices", "argmax"]),
    st.sampled_from(["logit_diff", "log_prob", "prob"]),
)
def test_batches_with_mixed_answers_and_foils_equal_one_prompt_at_a_time(pairs, scoring, which):
    """The oracle is a loop over plain forwards."""
    task = Task("mixed", tuple(pairs), scoring)
    same(opened().ablate(task, remove=[], metric=which), outcomes(SHARED, task, which), 1e-5)
