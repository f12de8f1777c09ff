"""Longer versions of a task begin with the task: its pairs, and what a tokenizer makes of them."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from pytest_circuits.core.sources import TaskSource
from pytest_circuits.errors import TaskError
from pytest_circuits.model.encoded_task import encode
from pytest_circuits.tasks import TASKS
from pytest_circuits.tasks.base import PromptPair, Task
from pytest_circuits.tasks.datasets.arc import ArcEasy
from pytest_circuits.tasks.growth import grown
from pytest_circuits.tasks.load import load_source, load_task
from tests.paths import GPT2_TOKENIZER

NAMES = sorted(set(TASKS.names()) - {"arc_easy", "arc_challenge", "template"})
FIELDS = ("clean", "corrupt", "start", "answer", "foils", "groups")


@pytest.fixture(scope="module")
def gpt2():
    tokenizer = Tokenizer.from_str(gzip.decompress(GPT2_TOKENIZER.read_bytes()).decode())
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_task_grows_into_what_it_would_have_been_with_a_larger_n(name):
    """The first pairs do not depend on n, for every built-in."""
    small, large = load_task(name, n=40, seed=1), load_task(name, n=130, seed=1)
    assert small.pairs == large.pairs[:40]
    assert grown(small, 130).pairs == grown(grown(small, 77), 130).pairs == large.pairs


@pytest.mark.parametrize(("name", "more"), [
    ("addition", {"digits": 1}), ("boolean", {"operators": 2}), ("capitals", {"target": "state"}), ("ioi", {"order": "abba"}),
    ("sorting", {"length": [3, 5], "corruption": "all"}), ("sva", {"form": "simple"}),
])  # fmt: skip
def test_also_with_other_parameters(name, more):
    assert grown(load_task(name, n=12, **more), 45).pairs == load_task(name, n=45, **more).pairs


def test_arc_grows_by_further_questions_and_not_by_other_corruptions_of_the_same(monkeypatch):
    rows = [
        {"question": f"Which is number {i}?", "choices": {"text": [f"{i}", f"x{i}", f"y{i}"], "label": ["A", "B", "C"]}, "answerKey": "A"}
        for i in range(30)
    ]
    monkeypatch.setattr(ArcEasy, "_rows", classmethod(lambda cls, split: rows))
    small = load_task("arc_easy", n=8)
    assert grown(small, 20).pairs == load_task("arc_easy", n=20).pairs
    with pytest.raises(TaskError, match="only 30 different prompts with these parameters: lower max_n \\(31\\)"):
        grown(small, 31)


@pytest.mark.parametrize(("name", "more"), [("addition", {"digits": 3}), ("capitals", {}), ("sorting", {"largest": 999})])
def test_what_a_tokenizer_replaces_stays_replaced_by_the_same_pairs(gpt2, name, more):
    """With a larger n from the start, others would take their place: the continuation begins later."""
    task = load_task(name, n=60, **more)
    before, middle, after = (encode(one, gpt2, 50257) for one in (task, grown(task, 100), grown(grown(task, 100), 150)))
    assert before.regenerated > 0
    assert middle.regenerated >= before.regenerated
    for field in FIELDS:
        assert getattr(after, field)[:100] == getattr(middle, field)
        assert getattr(middle, field)[:60] == getattr(before, field)
    assert len({pair.clean for pair in after.pairs}) == 150 == after.n
    assert encode(load_task(name, n=150, **more), gpt2, 50257).clean[:60] != before.clean


def test_a_tokenizer_that_replaces_nothing_sees_the_task_with_a_larger_n(gpt2):
    task = load_task("boolean", n=30)
    assert encode(task, gpt2, 50257).regenerated == 0
    assert encode(grown(task, 90), gpt2, 50257).clean == encode(load_task("boolean", n=90), gpt2, 50257).clean


def test_tasks_that_grew_differently_are_told_apart():
    """Which pairs take the place of those that do not fit depends on it."""
    task = load_task("ioi", n=20)
    prints = {grown(task, 80).fingerprint, grown(grown(task, 40), 80).fingerprint, load_task("ioi", n=80).fingerprint, task.fingerprint}
    assert len(prints) == 4
    assert grown(task, 80).fingerprint == grown(load_task("ioi", n=20), 80).fingerprint


def test_a_task_that_cannot_make_as_many_says_how_many_it_can():
    source = TaskSource.make("mine", "builtin", "copycolors", {"n": 10, "options": 2})  # 20 things × 12 · 11 colours × 2 places
    with pytest.raises(TaskError, match="max_n is too large: task 'copycolors' has only 5280 different prompts"):
        load_source(replace(source, grown=(20, 5281)))
    assert len(load_source(replace(source, grown=(20, 40)))) == 40
    fixed = Task("mine", tuple(PromptPair(f"a{i}", f"b{i}", "x", ("y",)) for i in range(7)))
    with pytest.raises(TaskError, match="'mine' has no more than 7 pairs"):
        grown(fixed, 8)
    with pytest.raises(TaskError, match="already has 50 pairs, so it cannot be extended to 50"):
        grown(load_task("ioi", n=50), 50)


def test_a_continuation_goes_on_where_the_longer_task_ends():
    task = grown(load_task("ioi", n=10), 25)
    nxt = next(task.more())
    assert nxt == load_task("ioi", n=26).pairs[25]


def test_a_source_names_the_sizes_on_the_way():
    source = TaskSource.make("mine", "builtin", "ioi", {"n": 10})
    made = load_source(replace(source, grown=(20, 40)))
    assert (made.name, len(made), len(made.base), len(made.base.base)) == ("mine", 40, 20, 10)
    assert made.base.base.fingerprint == load_source(source).fingerprint
    assert source != replace(source, grown=(20,))
