"""Reversal and sorting: right answers, right corruptions, and what tokenizers make of them."""

from __future__ import annotations

import gzip
import itertools
import re
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pytest_circuits.core.sources import TaskSource
from pytest_circuits.errors import OptionError, TaskError
from pytest_circuits.model.encoded_task import encode
from pytest_circuits.model.metrics import Targets, correct
from pytest_circuits.tasks import TASKS
from pytest_circuits.tasks.load import load_source, load_task
from tests.paths import GPT2_TOKENIZER

NAMES = ("reversal", "sorting")
MARKS = ("[START]", "[SEP]", "[END]")


def asked(prompt: str) -> list[int]:
    return [int(word) for word in re.fullmatch(r"\[START\]((?: [1-9][0-9]*)+) \[SEP\]", prompt)[1].split()]


def answered(answer: str) -> list[int]:
    return [int(word) for word in re.fullmatch(r"((?: [1-9][0-9]*)+) \[END\]", answer)[1].split()]


def is_reversed(numbers: list[int], answer: list[int]) -> bool:
    return len(answer) == len(numbers) and all(answer[-1 - i] == number for i, number in enumerate(numbers))


def is_sorted(numbers: list[int], answer: list[int]) -> bool:
    return Counter(answer) == Counter(numbers) and all(a <= b for a, b in itertools.pairwise(answer))


RIGHT = {"reversal": is_reversed, "sorting": is_sorted}


def tokenizer(words: list[str], splitter: pre_tokenizers.PreTokenizer) -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate(["[UNK]", *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = splitter
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")


def by_words() -> PreTrainedTokenizerFast:
    return tokenizer([*map(str, range(1, 100)), *MARKS], pre_tokenizers.WhitespaceSplit())


def by_digits() -> PreTrainedTokenizerFast:
    parts = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex("[0-9]"), "isolated")]
    return tokenizer([*"0123456789", *MARKS], pre_tokenizers.Sequence(parts))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(
    length=st.lists(st.integers(2, 12), min_size=1, max_size=3) | st.integers(2, 12),
    largest=st.sampled_from([5, 99, 999]),
    corruption=st.sampled_from(["one", "all"]),
    seed=st.integers(0, 1000),
)
def test_answers_are_right_and_the_corrupt_prompts_answer_is_the_foil(name, length, largest, corruption, seed):
    for pair in load_task(name, n=8, seed=seed, length=length, largest=largest, corruption=corruption):
        clean, corrupt = asked(pair.clean), asked(pair.corrupt)
        assert len(clean) == len(corrupt) and len(clean) in (length if isinstance(length, list) else [length])
        assert all(1 <= number <= largest for number in clean + corrupt)
        assert RIGHT[name](clean, answered(pair.answer))
        (foil,) = pair.foils
        assert RIGHT[name](corrupt, answered(foil)) and foil != pair.answer
        assert corruption == "all" or sum(a != b for a, b in zip(clean, corrupt, strict=True)) == 1
        assert pair.group is None


@pytest.mark.parametrize("name", NAMES)
def test_independent_corrupt_prompts_share_hardly_a_number_with_the_clean_ones(name):
    pairs = [(asked(p.clean), asked(p.corrupt)) for p in load_task(name, n=200, corruption="all")]
    assert sum(a != b for clean, corrupt in pairs for a, b in zip(clean, corrupt, strict=True)) > 0.95 * 200 * 7


@pytest.mark.parametrize("name", NAMES)
def test_lengths_are_equally_frequent_and_all_numbers_occur_everywhere(name):
    numbers = [asked(p.clean) for p in load_task(name, n=2000, length=[3, 5])]
    assert 0.45 < sum(len(n) == 3 for n in numbers) / 2000 < 0.55
    assert all({n[place] for n in numbers} == set(range(1, 100)) for place in range(3))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("corruption", ["one", "all"])
def test_a_task_can_have_all_its_prompts_and_not_one_more(name, corruption):
    small = {"length": [2, 3], "largest": 2, "corruption": corruption}
    every = {p.clean for p in load_task(name, n=4 + 8, **small)}
    expected = {f"[START] {' '.join(map(str, n))} [SEP]" for k in (2, 3) for n in itertools.product((1, 2), repeat=k)}
    assert every == expected
    with pytest.raises(TaskError, match=r"only 12 different prompts.*n=13"):
        load_task(name, n=13, **small)
    assert TASKS.get(name)(TASKS.get(name).Parameters()).space() == 99**7


def test_the_two_tasks_do_not_ask_the_same_prompts():
    assert not {p.clean for p in load_task("reversal")} & {p.clean for p in load_task("sorting")}


def test_a_spec_names_the_lengths():
    task = load_source(TaskSource.make("further", "builtin", "sorting", {"length": [8, 11], "n": 40}))
    assert ("further", {8, 11}) == (task.name, {len(asked(p.clean)) for p in task})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"length": 1}, "length=1"),
        ({"length": []}, "length=[]"),
        ({"length": [3, 65]}, "length=[3, 65]"),
        ({"length": 7.0}, "length=7.0"),
        ({"largest": 1}, "largest=1"),
        ({"corruption": "some"}, "corruption='some'"),
        ({"lenght": 3}, "no parameter 'lenght'; did you mean 'length'"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_parameter_is_named(name, parameters, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        load_task(name, **parameters)


# tokens


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("corruption", ["one", "all"])
def test_each_number_is_one_token_where_the_tokenizer_has_words_for_them(name, corruption):
    task, words = load_task(name, n=200, length=[3, 8, 11], corruption=corruption), by_words()
    code = encode(task, words, len(words))
    start, sep, end = words.convert_tokens_to_ids(list(MARKS))
    for i, pair in enumerate(task):
        numbers, answer = asked(pair.clean), answered(pair.answer)
        assert code.clean[i] == (start, *numbers, sep, *answer)  # a number's id is the number, END is predicted but not read
        assert code.corrupt[i] == (start, *asked(pair.corrupt), sep, *answered(pair.foils[0]))
        assert code.answer[i] == (*answer, end) and code.foils[i] == ((*answered(pair.foils[0]), end),)
        assert code.start[i] == len(numbers) + 1
    assert (code.regenerated, code.notes, len(set(code.groups))) == (0, (), 200)


@pytest.mark.parametrize("name", NAMES)
def test_a_sequence_that_does_not_end_is_wrong(name):
    words = by_words()
    code = encode(load_task(name, n=3), words, len(words))
    answer = torch.tensor(code.answer)
    targets = Targets(answer, torch.tensor(code.foils), code.scoring)
    logits = torch.nn.functional.one_hot(answer, len(words)).float()
    assert correct(logits, targets).tolist() == [True, True, True]
    logits[1, -1, 5] = 2.0  # a further number in place of the end
    logits[2, 0, 0] = 2.0
    assert correct(logits, targets).tolist() == [True, False, False]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("corruption", ["one", "all"])
def test_numbers_of_several_tokens_fit_too_once_unequal_pairs_are_replaced(name, corruption):
    digits = by_digits()
    code = encode(load_task(name, n=100, length=[3, 6], corruption=corruption), digits, len(digits))
    assert 0 < code.regenerated < 90
    assert all(len(a) == len(b) for a, b in zip(code.clean, code.corrupt, strict=True))
    assert not code.notes  # each corrupt prompt is followed by its own answer
    for pair, answer in zip(code.pairs, code.answer, strict=True):
        assert "".join(digits.convert_ids_to_tokens(list(answer))) == pair.answer.replace(" ", "")


def test_gpt2_has_one_token_a_number_and_some_for_each_mark():
    gpt2 = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(gzip.decompress(GPT2_TOKENIZER.read_bytes()).decode("utf-8")))
    for name in NAMES:
        code = encode(load_task(name, n=100), gpt2, 50257)
        assert code.regenerated == 0
        for pair, answer in zip(code.pairs, code.answer, strict=True):
            tokens = gpt2.convert_ids_to_tokens(list(answer))
            assert tokens == [f"Ġ{number}" for number in answered(pair.answer)] + ["Ġ[", "END", "]"]


def test_a_tokenizer_without_the_marks_is_refused_by_name():
    numbers = tokenizer([*map(str, range(1, 100))], pre_tokenizers.WhitespaceSplit())
    with pytest.raises(TaskError, match=re.escape("the prompt contains '[START]', which is not in the tokenizer's vocabulary")):
        encode(load_task("sorting"), numbers, len(numbers))


def test_numbers_that_the_tokenizer_does_not_know_are_refused_by_name():
    words = by_words()
    with pytest.raises(TaskError, match=r"contains '[1-9][0-9]{2}', which is not in the tokenizer's vocabulary"):
        encode(load_task("reversal", largest=999), words, len(words))
