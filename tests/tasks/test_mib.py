"""MIB records with named counterfactuals, and EAP-IG tables: what they give, with GPT-2's tokens, and what is refused."""

from __future__ import annotations

import csv
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pytest_circuits import TaskError, load_task, open_model
from pytest_circuits.errors import OptionError
from tests.fakes.published_data import PUBLISHED, answers, encoded, gpt2, lines, write

IOI, CHOICES, SUMS = PUBLISHED / "mib-ioi.jsonl", PUBLISHED / "mib-choices.jsonl", PUBLISHED / "mib-arithmetic.jsonl"
IDS, WORDS = PUBLISHED / "eap-ids.csv", PUBLISHED / "eap-words.csv"
RECORD = {
    "prompt": "Ann or Bob? It is",
    "choices": ["Ann", "Bob"],
    "answerKey": 0,
    "flip_counterfactual": {"prompt": "Bob or Ann? It is", "choices": ["Ann", "Bob"], "answerKey": 1},
}
ROW = {"clean": "a b", "corrupted": "a c", "correct_idx": 4, "incorrect_idx": 5}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    """GPT-2's tokenizer as a directory."""
    folder = tmp_path_factory.mktemp("gpt2")
    gpt2().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def few_words(tmp_path_factory):
    """A tokenizer of eight words as a directory: Mark is 4, Mary is 5."""
    folder = tmp_path_factory.mktemp("few")
    made = Tokenizer(
        models.WordLevel({w: i for i, w in enumerate(["<unk>", "a", "b", "c", "Mark", "Mary", "Mark's", "Anna"])}, unk_token="<unk>")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>").save_pretrained(folder)
    return str(folder)


# MIB


def test_texts_are_chosen_from_by_text_and_the_counterfactuals_answer_is_the_foil():
    task = load_task(IOI, format="mib", counterfactual="s2_io_flip")
    for pair, record in zip(task, lines(IOI), strict=True):
        names = record["metadata"]
        assert (pair.clean, pair.corrupt) == (record["prompt"], record["s2_io_flip_counterfactual"]["prompt"])
        assert (pair.answer, pair.foils, pair.corrupt_answer) == (
            f" {names['indirect_object']}",
            (f" {names['subject']}",),
            f" {names['subject']}",
        )
    assert answers(task)[0] == ("ĠAnna", ["ĠMark"])


def test_a_counterfactual_is_called_with_or_without_its_suffix():
    short, long = (load_task(IOI, format="mib", counterfactual=name) for name in ("abc", "abc_counterfactual"))
    assert short.pairs == long.pairs and short.pairs[0].corrupt == lines(IOI)[0]["abc_counterfactual"]["prompt"]


def test_an_answer_that_is_no_choice_follows_the_corrupt_prompt_and_is_no_foil():
    pair = load_task(IOI, format="mib", counterfactual="random_names").pairs[0]
    assert (pair.answer, pair.foils, pair.corrupt_answer) == (" Anna", (" Mark",), " Paul")


def test_labelled_choices_are_answered_by_label_and_counterfactuals_may_be_grouped():
    task = load_task(CHOICES, format="mib", counterfactual="answerPosition")
    assert [(p.answer, p.foils[0], p.corrupt_answer) for p in task] == [(" B", " C", " C"), (" A", " D", " D")]
    assert [sorted(p.foils) for p in task] == [[" A", " C", " D"], [" B", " C", " D"]]
    assert answers(task) == [("ĠB", ["ĠC", "ĠA", "ĠD"]), ("ĠA", ["ĠD", "ĠB", "ĠC"])]


def test_a_counterfactual_with_numbered_choices_keeps_its_own_answer():
    pair = load_task(CHOICES, format="mib", counterfactual="symbol").pairs[0]
    assert (pair.answer, pair.foils, pair.corrupt_answer) == (" B", (" A", " C", " D"), " 2") and "2. red" in pair.corrupt


def test_sums_are_answered_by_their_label_and_need_no_choice_of_counterfactual_where_there_is_one():
    task = load_task(SUMS, format="mib", scoring="argmax", stop="digits")
    for pair in task:
        for prompt, answer in ((pair.clean, pair.answer), (pair.corrupt, pair.corrupt_answer)):
            assert sum(map(int, re.findall(r"\d+", prompt))) == int(answer)
        assert pair.foils == (pair.corrupt_answer,)
    assert (task.scoring, task.stop) == ("argmax", "digits")


@pytest.mark.parametrize(
    ("task", "options"), [(IOI, {"counterfactual": "s2_io_flip"}), (CHOICES, {"counterfactual": "answerPosition"}), (SUMS, {})]
)
def test_gpt2_takes_every_pair_as_it_is(task, options):
    code = encoded(load_task(task, format="mib", **options))
    assert code.regenerated == 0 and all(len(a) == len(b) for a, b in zip(code.clean, code.corrupt, strict=True))


def test_records_without_this_counterfactual_or_with_an_equal_one_are_left_out_and_counted(tmp_path):
    same = RECORD | {"flip_counterfactual": {**RECORD["flip_counterfactual"], "prompt": RECORD["prompt"]}}
    task = load_task(write(tmp_path / "a.jsonl", RECORD | {"flip_counterfactual": None}, same, RECORD), format="mib")
    assert (len(task), task.dropped, task.pairs[0].source[-2:]) == (1, 2, ":3")


def test_the_rest_of_the_file_replaces_what_does_not_fit(tmp_path):
    longer = RECORD | {"flip_counterfactual": {**RECORD["flip_counterfactual"], "prompt": "Is it really Bob or Ann? It is"}}
    path = write(
        tmp_path / "a.jsonl",
        longer,
        {**RECORD, "prompt": "Bob or Ann, then? It is", "flip_counterfactual": RECORD | {"prompt": "Ann or Bob, then? It is"}},
    )
    code = encoded(load_task(path, format="mib", n=1))
    assert (code.regenerated, code.pairs[0].source) == (1, f"{path}:2")
    with pytest.raises(TaskError, match="1 of 2 pairs could not be replaced"):
        encoded(load_task(path, format="mib"))


def test_an_answer_after_white_space_gets_no_further_space(tmp_path):
    path = write(tmp_path / "a.jsonl", {"prompt": "1 + 1 = ", "label": 2, "x_counterfactual": {"prompt": "1 + 2 = ", "label": "3"}})
    pair = load_task(path, format="mib").pairs[0]
    assert (pair.answer, pair.foils) == ("2", ("3",))


@settings(deadline=None)
@given(st.integers(2, 6).flatmap(lambda k: st.tuples(st.just(k), st.integers(0, k - 1), st.integers(0, k - 1))))
def test_the_answer_is_the_choice_at_the_key_and_the_other_answer_comes_first(tmp_path_factory, sizes):
    count, key, other = sizes
    names = [f"n{i}" for i in range(count)]
    record = {"prompt": "p", "choices": names, "answerKey": key, "f_counterfactual": {"prompt": "q", "choices": names, "answerKey": other}}
    (pair,) = load_task(write(tmp_path_factory.mktemp("t") / "a.jsonl", record), format="mib")
    rest = [f" n{i}" for i in range(count) if i != key]
    assert (pair.answer, sorted(pair.foils)) == (f" n{key}", rest)
    assert key == other or pair.foils[0] == f" n{other}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answerKey": 2}, ":1: answerKey must be an index from 0 to 1; got 2"),
        ({"answerKey": True}, "answerKey must be an index"),
        ({"answerKey": "Ann"}, "answerKey must be an index"),
        ({"choices": ["Ann"]}, "choices must be a list of at least two texts"),
        ({"choices": ["Ann", "Ann"]}, r"two choices are the same \(Ann, Ann\)"),
        ({"choices": ["Ann", ""]}, "each choice must be a non-empty text or a number"),
        ({"choices": None}, "label must be a non-empty text or a number; got None"),
        ({"prompt": ""}, "prompt must be a non-empty text"),
        ({"flip_counterfactual": "Bob"}, "the counterfactual 'flip' must be an object"),
        ({"flip_counterfactual": {"prompt": "q"}}, ":1: the counterfactual: label must be"),
        ({"other_counterfactual": None}, r"several counterfactuals; choose one with counterfactual: flip \| other"),
        ({"counterfactuals": ["flip"]}, "counterfactuals must be an object"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, change, message):
    with pytest.raises(TaskError, match=message):
        load_task(write(tmp_path / "a.jsonl", RECORD | change), format="mib")


def test_unknown_counterfactuals_and_records_without_any_are_told(tmp_path):
    with pytest.raises(TaskError, match="no counterfactual 'abd'; did you mean 'abc'"):
        load_task(IOI, format="mib", counterfactual="abd")
    with pytest.raises(TaskError, match="no counterfactual; the record needs NAME_counterfactual"):
        load_task(write(tmp_path / "a.jsonl", {"prompt": "p", "label": "x"}), format="mib")
    with pytest.raises(TaskError, match=":1: a MIB record is an object with prompt"):
        load_task(write(tmp_path / "b.jsonl", {"clean": "p"}), format="mib")


# EAP-IG tables


def test_token_ids_become_the_words_of_the_tokenizer_that_is_named(vocabulary):
    task = load_task(IDS, format="eap", tokenizer=vocabulary)
    assert [(p.answer, p.foils, p.corrupt_answer) for p in task] == [(" Anna", (" Mark",), " Mark"), (" John", (" Mary",), " Mary")]
    rows = list(csv.DictReader(IDS.open(encoding="utf-8")))
    code = encoded(task)
    assert [(a[0], f[0][0]) for a, f in zip(code.answer, code.foils, strict=True)] == [
        (int(r["correct_idx"]), int(r["incorrect_idx"])) for r in rows
    ]
    assert [(p.clean, p.corrupt) for p in task] == [(r["clean"], r["corrupted"]) for r in rows]


def test_a_tokenizer_beside_the_file_is_found_by_a_relative_path(few_words, tmp_path, monkeypatch):
    shutil.copytree(few_words, tmp_path / "tok")
    path = write(tmp_path / "a.jsonl", ROW)
    monkeypatch.chdir("/")
    assert load_task(path, format="eap", tokenizer="tok").pairs[0].answer == "Mark"


def test_words_beside_ids_need_no_tokenizer():
    task = load_task(WORDS, format="eap")
    assert [(p.answer, p.foils) for p in task] == [(" France", (" Germany",)), (" Japan", (" Italy",))]


def test_ids_may_be_written_as_a_table_with_gaps_writes_them(tmp_path, few_words):
    rows = [ROW | {"correct_idx": value} for value in (4, 4.0, "4", "4.0")]
    found = load_task(write(tmp_path / "a.jsonl", *rows), format="eap", tokenizer=few_words)
    assert [(p.answer, p.foils) for p in found] == [("Mark", ("Mary",))] * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ":1: correct_idx and incorrect_idx are ids of one tokenizer's tokens; name it: tokenizer:"),
        ({"incorrect_idx": None}, ":1: incorrect_idx must be a token id"),
        ({"correct_idx": "1.5"}, "correct_idx must be a token id, a whole number; got '1.5'"),
        ({"correct_idx": 99999999}, "token id 99999999 of the tokenizer .* has no text"),
        ({"correct_idx": 6}, "token id 6 .* has no text that is encoded as this token"),
        ({"clean": ""}, "clean must be a non-empty text"),
        ({"corrupted": 3}, "corrupted must be a non-empty text"),
    ],
)
def test_a_mistake_in_a_row_is_told_with_its_line(tmp_path, few_words, change, message):
    options = {"tokenizer": few_words} if change else {}
    with pytest.raises(TaskError, match=message):
        load_task(write(tmp_path / "a.jsonl", ROW | change), format="eap", **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"correct_idx": 14}, "correct_idx alone, which stands for all answers above it; a pair needs one answer and one foil"),
        ({"answers_idx": "[1, 2]"}, "several answers"),
        ({"plural": "True"}, "no answer, only a class of answers"),
        ({"label": "x"}, "no answers found; a row needs answer with corrupted_answer"),
    ],
)
def test_tables_in_which_more_than_one_token_is_right_are_refused_with_the_reason(tmp_path, columns, message):
    with pytest.raises(TaskError, match=message):
        load_task(write(tmp_path / "a.jsonl", {"clean": "a", "corrupted": "b"} | columns), format="eap")


def test_a_tokenizer_that_is_not_there_is_told(tmp_path):
    with pytest.raises(TaskError, match=r"tokenizer: ./nowhere cannot be opened, neither in"):
        load_task(IDS, format="eap", tokenizer="./nowhere")
    with pytest.raises(OptionError, match="tokenizer needs format: eap, but the format is mib"):
        load_task(IOI, format="mib", tokenizer="gpt2")


def test_tables_serve_ordinary_pairs_too_and_agreement_data_is_read_by_its_published_names(tmp_path):
    path = tmp_path / "sva.csv"
    path.write_text('clean_prefix,patch_prefix,clean_answer,patch_answer,case\n"The boy,","The boys,", is, are,sing\n\n', encoding="utf-8")
    (pair,) = load_task(path)
    assert (pair.clean, pair.corrupt, pair.answer, pair.foils, pair.source) == ("The boy,", "The boys,", " is", (" are",), f"{path}:2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clean,corrupt,answer,foil\na,b,c\n", ":2: 3 cells, but the header names 4 columns"),
        ('clean,corrupt,answer,foil\n"a\nb",c,x,y\na,b,c\n', ":4: 3 cells"),
        ("clean,clean,answer\na,b,c\n", ":1: the field 'clean' appears twice"),
        ('clean,corrupt,answer,foil\n"a,b,c,d', "not a row of a table"),
        ("", "no prompt pairs in this file"),
        ("clean,corrupt,answer\n,b,c\n", ":2: clean missing"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_its_line(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TaskError, match=message):
        load_task(path)


# measured


def test_published_data_can_be_measured_on_an_unmodified_model():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    subject = open_model(GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=64)).eval(), gpt2())
    for task in (load_task(IOI, format="mib", counterfactual="s2_io_flip"), load_task(PUBLISHED / "arc-hub.jsonl", format="arc")):
        scores = subject.attribute(task, method="atp").scores
        assert scores.shape == (len(task), 6) and (scores != 0).any(1).all()
