"""Encoding: where an answer begins, what is refused, what is replaced; with GPT-2's byte-level BPE and small word-level tokenizers."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from pytest_circuits import PromptPair, Task, TaskError, load_task
from pytest_circuits.model.encoded_task import encode
from pytest_circuits.model.tokenization import Tokenization
from pytest_circuits.tasks import TASKS
from tests.paths import GPT2_TOKENIZER

IDS = 50257


@pytest.fixture(scope="module")
def gpt2():
    tokenizer = Tokenizer.from_str(gzip.decompress(GPT2_TOKENIZER.read_bytes()).decode())
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>"
    )


def word_level(text: str, before: str = "", after: str = "", unknown: str = "declared") -> PreTrainedTokenizerFast:
    """Words between white space; `<s>` in front or `</s>` behind on request; `<unk>` declared, undeclared or absent."""
    first = "<none>" if unknown == "absent" else "<unk>"
    vocabulary = {w: i for i, w in enumerate([first, "<s>", "</s>", *dict.fromkeys(text.split())])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if before or after:
        special = [(t, vocabulary[t]) for t in (before, after) if t]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{before} $A {after}".strip(), special_tokens=special)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>" if unknown == "declared" else None)


WORDS = word_level("a b c d e f x y z", before="<s>")


def one(clean="a b", corrupt="a c", answer="x", foils=("y",), **more) -> Task:
    scoring = more.pop("scoring", "choices")
    stop = more.pop("stop", None)
    return Task("mine", (PromptPair(clean, corrupt, answer, foils, source="pairs.jsonl:17", **more),), scoring, stop)


def tokens(tokenizer, ids) -> list[str]:
    return tokenizer.convert_ids_to_tokens(list(ids))


# where the answer begins


def test_a_trailing_space_of_the_prompt_becomes_part_of_the_answers_token(gpt2):
    task = one("Compute: 47 + 12 = ", "Compute: 47 + 13 = ", "59", ("60",), scoring="argmax", stop="digits")
    code = encode(task, gpt2, IDS)
    assert tokens(gpt2, code.clean[0][: code.start[0] + 1]) == ["Comp", "ute", ":", "Ġ47", "Ġ+", "Ġ12", "Ġ="]
    assert ["Ġ59"] == tokens(gpt2, code.answer[0]) == tokens(gpt2, code.clean[0][code.start[0] + 1 :])
    assert ["Ġ60"] == tokens(gpt2, code.foils[0][0]) == tokens(gpt2, code.corrupt[0][code.start[0] + 1 :])


def test_an_answer_with_its_own_leading_space_is_the_same_tokens_as_a_prompt_with_a_trailing_one(gpt2):
    spaced, trailing = (
        one("The capital is", "The color is", " Rome", (" blue",)),
        one("The capital is ", "The color is ", "Rome", ("blue",)),
    )
    assert encode(spaced, gpt2, IDS).digest == encode(trailing, gpt2, IDS).digest


@pytest.mark.parametrize(
    ("prompt", "answer", "expected"),
    [
        ("a b", "x", ["a", "b", "x"]),  # both alphanumeric: a space
        ("a b =", "x", ["a", "b", "=", "x"]),  # "=x" is no word: a space
        ("a b ", "x", ["a", "b", "x"]),
        ("a b", " x", ["a", "b", "x"]),
    ],
)
def test_words_are_kept_apart_where_the_author_wrote_no_space(prompt, answer, expected):
    tokenizer = word_level("a b = x y z")
    code = encode(one(prompt, prompt.replace("b", "z"), answer, (answer.replace("x", "y"),)), tokenizer, 99)
    assert expected == tokens(tokenizer, code.clean[0] + code.answer[0])


def test_a_digit_is_joined_directly_where_the_prompts_tokens_survive_that(gpt2):
    code = encode(one("(4 + 5) (", "(4 + 6) (", "9", ("8",)), gpt2, IDS)
    assert tokens(gpt2, code.answer[0]) == ["9"]
    code = encode(one("4 + 5 =", "4 + 6 =", "9", ("8",)), gpt2, IDS)
    assert tokens(gpt2, code.answer[0]) == ["9"]


@settings(max_examples=100, deadline=None)
@given(prompt=st.text("ab1 .=\n(", min_size=1, max_size=12), answer=st.text("ab1 .", min_size=1, max_size=5))
def test_prompt_and_answer_are_a_tokenization_of_the_joint_text(gpt2, prompt, answer):
    joint, begin = Tokenization(gpt2, "a").continuation(prompt, answer)
    assert gpt2.decode(joint) in (prompt + answer, f"{prompt} {answer}")
    assert gpt2(gpt2.decode(joint))["input_ids"] == list(joint)
    alone = gpt2(prompt)["input_ids"]
    assert alone[:begin] == list(joint[:begin])
    assert begin == len(alone) or alone[begin] != joint[begin]


# special tokens


@pytest.mark.parametrize(("before", "after"), [("", ""), ("<s>", ""), ("", "</s>"), ("<s>", "</s>")])
def test_a_bos_token_is_kept_and_an_eos_token_removed(before, after):
    tokenizer = word_level("a b c x y", before, after)
    code = encode(one(), tokenizer, 99)
    assert [t for t in [before, "a", "b"] if t] == tokens(tokenizer, code.clean[0])
    assert [t for t in [before, "a", "c"] if t] == tokens(tokenizer, code.corrupt[0])
    assert (len(code.clean[0]) - 1,) == code.start


# forced tokens and the end of a number


def test_answer_tokens_but_the_last_are_forced_and_with_a_stop_all_of_them():
    task = one(answer="x y z", foils=("x z y",), scoring="argmax")
    code = encode(task, WORDS, 99)
    assert (tokens(WORDS, code.clean[0]), code.start[0]) == (["<s>", "a", "b", "x", "y"], 2)
    assert tokens(WORDS, code.corrupt[0]) == ["<s>", "a", "c", "x", "z"]
    code = encode(dataclasses.replace(task, stop="digits"), WORDS, 99)
    assert (tokens(WORDS, code.clean[0][3:]), tokens(WORDS, code.corrupt[0][3:])) == (["x", "y", "z"], ["x", "z", "y"])


def test_the_corrupt_answer_is_forced_when_given_and_the_answers_own_tokens_when_lengths_differ():
    code = encode(one(answer="x y", foils=("z z",), corrupt_answer="y x"), WORDS, 99)
    assert tokens(WORDS, code.corrupt[0][3:]) == ["y"] and not code.notes
    code = encode(one(answer="x y", foils=("z",)), WORDS, 99)
    assert tokens(WORDS, code.corrupt[0][3:]) == ["x"]
    assert "1 of 1 pairs: the corrupt answer has another number of tokens" in code.notes[0]


def test_only_tokens_that_would_lengthen_the_number_stop_it(gpt2):
    code = encode(load_task("addition", n=4), gpt2, IDS)
    stops = set(tokens(gpt2, code.stop_ids))
    assert {"0", "7", "12", "2015"} <= stops
    assert not {"Ġ7", "Ġ12", ".", ",", "a1"} & stops
    assert all(t[0] in "0123456789" for t in stops)
    assert encode(load_task("ioi", n=4), gpt2, IDS).stop_ids == ()


def test_a_metaspace_tokenizer_tells_digits_that_follow_from_digits_after_a_space():
    vocabulary = {t: i for i, t in enumerate(["<unk>", "▁5", "5", "<0x37>", "<0x41>", "▁a", "b"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    code = encode(one((5,), (6,), (1,), ((2,),), stop="digits"), PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>"), 7)
    assert code.stop_ids == (2, 3)


# refusals

REFUSED = {
    "shared first token": (one(answer="x y", foils=("x z",)), "share their first token"),
    "answer begins like the foil": (one(answer="x y", foils=("x",), scoring="argmax"), "share their first token"),
    "equal tokens": (one(answer="x", foils=(" x",)), "share their first token"),
    "unequal prompts": (one(corrupt="a b c"), "the clean prompt has 3 tokens, the corrupt one 4"),
    "equal prompts": (one(corrupt="a  b"), "clean and corrupt are the same 3 tokens"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_pair_that_cannot_be_used_is_refused_with_its_place_and_a_remedy(case):
    task, message = REFUSED[case]
    with pytest.raises(TaskError, match="1 of 1 pairs of task 'mine' cannot be used: pairs.jsonl:17: .*" + re.escape(message)) as raised:
        encode(task, WORDS, 99)
    assert "must" in str(raised.value)


def test_labels_that_share_their_first_token_are_refused_not_tied(gpt2):
    with pytest.raises(TaskError, match=r"share their first token.*move a shared beginning into the prompt"):
        encode(one("Answer:", "Reply:", "\nA", ("\nB",)), gpt2, IDS)
    assert encode(one("Answer:\n", "Question:\n", "A", ("B",)), gpt2, IDS).n == 1


def test_answer_and_foil_that_begin_at_different_tokens_are_refused(gpt2):
    with pytest.raises(TaskError, match="begin at the same token"):
        encode(one("It is ", "He is ", "5", ("\nno",), scoring="argmax"), gpt2, IDS)


def test_sums_may_share_digits_but_not_all():
    tokenizer = word_level("a b 1 2 3")
    assert encode(one("a", "b", "1 2", ("1 3",), scoring="argmax"), tokenizer, 99).n == 1
    with pytest.raises(TaskError, match="share their first 2 tokens"):
        encode(one("a", "b", "1 2", ("1 2 3",), scoring="argmax"), tokenizer, 99)


@pytest.mark.parametrize("part", ["clean", "corrupt", "answer", "foils"])
@pytest.mark.parametrize("unknown", ["declared", "undeclared", "absent"])
def test_a_word_outside_the_vocabulary_is_named(part, unknown):
    tokenizer = word_level("a b c x y", unknown=unknown)
    text = {"clean": "a quux", "corrupt": "a quux", "answer": "quux", "foils": ("quux",)}[part]
    with pytest.raises(TaskError, match="quux"):
        encode(one(**{part: text}), tokenizer, 99)


def test_an_unknown_word_names_the_place_and_whether_it_is_in_prompt_or_answer():
    with pytest.raises(TaskError, match=r"pairs\.jsonl:17: the prompt contains 'quux', which is not in the tokenizer's vocabulary"):
        encode(one(clean="a quux b"), WORDS, 99)
    with pytest.raises(TaskError, match=r"pairs\.jsonl:17: the answer contains 'quux'"):
        encode(one(answer="quux"), WORDS, 99)


def test_a_tokenizer_with_more_ids_than_the_model_does_not_fit():
    with pytest.raises(TaskError, match=r"token id 10 is outside the model's vocabulary of 9: the tokenizer does not fit this model"):
        encode(one(), WORDS, 9)
    assert encode(one(), WORDS, 11).n == 1


def test_a_prompt_longer_than_the_model_takes_is_refused_counting_forced_tokens():
    task = one(answer="x y", foils=("y x",))
    assert encode(task, WORDS, 99, max_length=4).n == 1
    with pytest.raises(TaskError, match=r"4 tokens \(3 of the prompt.*at most 3"):
        encode(task, WORDS, 99, max_length=3)


def test_an_empty_task_a_missing_tokenizer_and_a_pair_of_two_forms_are_refused():
    with pytest.raises(TaskError, match="no prompt pairs"):
        encode(Task("none", ()), WORDS, 99)
    with pytest.raises(TaskError, match="needs a tokenizer"):
        encode(one(), None, 99)
    with pytest.raises(TaskError, match="needs a tokenizer"):
        encode(one((1,), (2,), (3,), (), stop="digits"), None, 99)
    with pytest.raises(TaskError, match="text and token ids are mixed"):
        encode(one(answer=(3,)), WORDS, 99)


def test_an_empty_prompt_needs_a_bos_token():
    with pytest.raises(TaskError, match="the answer has no tokens before it"):
        encode(one(clean=""), word_level("a b c x y"), 99)


def test_only_the_first_pairs_are_quoted():
    pair = one().pairs[0]
    bad = tuple(dataclasses.replace(pair, corrupt="a b c", source=f"f:{i}") for i in range(9))
    with pytest.raises(TaskError, match=r"9 of 10 pairs .*f:0: .*f:1: .*f:2: .*and 6 more") as raised:
        encode(Task("many", (pair, *bad)), WORDS, 99)
    assert "f:3" not in str(raised.value)


# token ids


def test_token_ids_pass_through_without_a_tokenizer():
    code = encode(one((1, 2), (1, 3), (4, 5), ((6, 5),)), None, 7)
    assert (code.clean, code.corrupt, code.start, code.answer, code.foils) == (((1, 2, 4),), ((1, 3, 6),), (1,), ((4, 5),), (((6, 5),),))
    with pytest.raises(TaskError, match=r"token id 6 .*the task's token ids do not fit this model"):
        encode(one((1, 2), (1, 3), (4, 5), ((6, 5),)), None, 6)


# replacements


def letters(good: int, more) -> Task:
    bad = PromptPair("a", "a b", "x", ("y",), group="bad")
    fine = tuple(PromptPair(f"a {c}", "b a", "x", ("y",), group=c) for c in "abcdef"[:good])
    return Task("made", (*fine, bad), more=more)


def test_pairs_that_do_not_fit_are_replaced_in_place_and_counted():
    further = [
        PromptPair("c", "a b", "x", ("y",)),
        PromptPair("b b", "a b", "x", ("y",), group="new"),
        PromptPair("c c", "a b", "x", ("y",)),
    ]
    code = encode(letters(2, lambda: iter(further)), WORDS, 99)
    assert (code.n, code.regenerated, code.groups) == (3, 1, ("a", "b", "new"))
    assert code.pairs[2].clean == "b b"


def test_a_clean_prompt_is_not_used_twice_when_pairs_are_replaced():
    again = [PromptPair("a a", "c a", "x", ("y",)), PromptPair("f f", "c a", "x", ("y",))]
    assert encode(letters(1, lambda: iter(again)), WORDS, 99).pairs[1].clean == "f f"


def test_replacing_gives_up_after_20_draws_a_pair_and_says_what_was_wrong():
    drawn = []

    def endless():
        for i in itertools.count():
            drawn.append(i)
            yield PromptPair("a", "a b" if i % 2 else "a", "x", ("y",))

    message = r"1 of 2 pairs could not be replaced in 40 further draws \(21 × .*number of tokens.*; 20 × .*must differ"
    with pytest.raises(TaskError, match=message):
        encode(letters(1, endless), WORDS, 99)
    assert len(drawn) == 40


@pytest.mark.parametrize("name", [name for name in TASKS.names() if not name.startswith(("arc_", "template"))])  # data, words
def test_built_in_tasks_fit_gpt2(gpt2, name):
    code = encode(load_task(name, n=256), gpt2, IDS)
    assert 256 == code.n == len({p.clean for p in code.pairs})
    assert all(len(a) == len(b) and a != b for a, b in zip(code.clean, code.corrupt, strict=True))
    first = [(answer[0], foil[0]) for answer, foils in zip(code.answer, code.foils, strict=True) for foil in foils]
    assert code.scoring == "argmax" or all(a != b for a, b in first)
    assert code.digest == encode(load_task(name, n=256), gpt2, IDS).digest
    if name == "capitals":
        assert 0 < code.regenerated < 256


# groups and digest


def test_a_pair_without_a_group_has_one_of_its_own():
    pair = PromptPair("a b", "a c", "x", ("y",))
    others = [dataclasses.replace(pair, clean=f"{word} b") for word in "bcd"]
    pairs = (pair, dataclasses.replace(others[0], group="#0"), dataclasses.replace(others[1], group="g"), others[2])
    groups = encode(Task("t", pairs), WORDS, 99).groups
    assert groups[1:3] == ("#0", "g")
    assert len(set(groups)) == 4


def test_copies_of_a_prompt_share_a_group_whatever_they_say():
    """Thirty copies of one example are one example."""
    pair = PromptPair("a b", "a c", "x", ("y",))
    copies = (pair, dataclasses.replace(pair, group="g"), dataclasses.replace(pair, corrupt="b b"), dataclasses.replace(pair, clean="c b"))
    groups = encode(Task("t", copies), WORDS, 99).groups
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_chance_is_guessing_or_the_most_frequent_answer():
    pair = PromptPair("a b", "a c", "x", ("y", "z"))
    other = PromptPair("b b", "b c", "y", ("x", "z"))
    assert encode(Task("t", (pair, other)), WORDS, 99).chance == 0.5
    assert encode(Task("t", (pair, dataclasses.replace(pair, clean="c b"))), WORDS, 99).chance == 1.0
    assert encode(Task("t", (pair, other), "argmax"), WORDS, 99).chance == 0.5


@pytest.mark.parametrize(
    "change",
    [{"clean": "b b"}, {"corrupt": "b c"}, {"answer": "z"}, {"foils": ("z",)}, {"scoring": "argmax"}, {"group": "g"}, {"stop": "digits"}],
)
def test_the_digest_changes_with_everything_that_a_measurement_depends_on(change):
    assert encode(one(), WORDS, 99).digest != encode(one(**change), WORDS, 99).digest


def test_the_digest_depends_on_the_tokenizer_and_not_on_names():
    assert encode(one(), WORDS, 99).digest == encode(dataclasses.replace(one(), name="other"), WORDS, 99).digest
    assert encode(one(), WORDS, 99).digest != encode(one(), WORDS, 99, tokenizer_digest="other").digest


def test_encoding_imports_no_torch():
    code = "import sys, pytest_circuits.model.encoded_task; print(sorted({'torch', 'transformers', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
