"""ARC questions from files in both published forms and from a stand-in for `datasets`: prompts, letters, corruption, refusals."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pytest_circuits import TaskError, load_task
from pytest_circuits.errors import OptionError
from pytest_circuits.model.encoded_task import encode
from pytest_circuits.tasks.datasets.arc import offers
from tests.fakes.published_data import PUBLISHED, answers, encoded, lines, write

AI2, HUB = PUBLISHED / "arc-ai2.jsonl", PUBLISHED / "arc-hub.jsonl"
ITEM = {"question": "Which is a metal?", "choices": {"text": ["oak", "tin", "wool"], "label": ["A", "B", "C"]}, "answerKey": "B"}


def read(prompt: str) -> tuple[str, dict[str, str]]:
    """Question and lettered choices, from the prompt alone."""
    first, *choices, last = prompt.split("\n")
    assert last == "Answer:" and first.startswith("Question: ")
    return first.removeprefix("Question: "), dict(line.split(". ", 1) for line in choices)


def hub_item(texts, right, **more):
    labels = [chr(65 + i) for i in range(len(texts))]
    return {"question": "Which?", "choices": {"text": list(texts), "label": labels}, "answerKey": labels[right], **more}


def test_a_question_becomes_lettered_choices_and_the_answer_a_letter():
    pair = load_task(AI2, format="arc").pairs[0]
    assert pair.clean == "Question: Which of these can a magnet lift?\nA. a cork\nB. a nail\nC. a leaf\nD. a candle\nAnswer:"
    assert (pair.answer, sorted(pair.foils), pair.source) == (" B", [" A", " C", " D"], f"{AI2}:1")


def test_both_published_forms_give_the_same_pairs():
    first, second = load_task(AI2, format="arc"), load_task(HUB, format="arc")
    assert [(p.clean, p.corrupt, p.answer, p.foils) for p in first] == [(p.clean, p.corrupt, p.answer, p.foils) for p in second]
    assert first.fingerprint != second.fingerprint  # further pairs are made from the file


def test_the_letter_is_that_of_the_text_that_the_key_names_also_with_numbered_choices():
    for pair, item in zip(load_task(HUB, format="arc"), lines(HUB), strict=True):
        right = item["choices"]["text"][item["choices"]["label"].index(item["answerKey"])]
        stem, choices = read(pair.clean)
        assert (stem, choices[pair.answer.strip()]) == (item["question"], right)
        assert list(choices.values()) == item["choices"]["text"] and set(choices) == {f.strip() for f in (pair.answer, *pair.foils)}


def test_the_corrupt_prompt_has_the_answers_text_at_the_first_foils_letter_and_is_otherwise_the_same():
    for pair in load_task(HUB, format="arc"):
        (stem, before), (same, after) = read(pair.clean), read(pair.corrupt)
        old, new = pair.answer.strip(), pair.foils[0].strip()
        assert stem == same and after[new] == before[old] and after[old] == before[new] and old != new
        assert {k: v for k, v in before.items() if k not in (old, new)} == {k: v for k, v in after.items() if k not in (old, new)}


def test_three_and_five_choices_are_kept_and_counted_in_the_chance_level():
    found = encoded(load_task(HUB, format="arc"))
    sizes = [1 + len(foils) for foils in found.foils]
    assert sizes == [4, 4, 3, 5, 4, 4, 4, 4]
    assert found.chance == pytest.approx(max(sum(1 / s for s in sizes) / 8, 3 / 8))


def test_gpt2_reads_one_letter_for_each_answer_and_prompts_of_equal_length():
    code = encoded(load_task(HUB, format="arc"))
    assert all(len(a) == len(b) for a, b in zip(code.clean, code.corrupt, strict=True))
    assert all(answer in "ĠAĠBĠCĠDĠE" and len(answer) == 2 for answer, _ in answers(load_task(HUB, format="arc")))


def test_a_tokenizer_that_splits_the_space_off_a_letter_is_refused_since_all_answers_would_begin_alike():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with pytest.raises(TaskError, match=r"share their first token.*could not be replaced|could not be replaced.*first token"):
        encode(load_task(HUB, format="arc"), PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="!"), 256)


class Merging:
    """A tokenizer with one token a character that is no space, except for one run of characters, which is one token."""

    unk_token_id = None

    def __init__(self, run: str) -> None:
        self.run = run

    def __call__(self, texts, **_):
        return {"input_ids": [[ord(c) for c in text.replace(" ", "").replace(self.run, "#")] for text in texts]}

    def get_vocab(self):
        return {}


TWO = (hub_item(["ant", "bee", "fly", "wasp"], 1), ITEM)


def test_a_pair_that_a_tokenizer_gives_unequal_lengths_is_replaced_by_one_with_another_letter(tmp_path):
    path = write(tmp_path / "a.jsonl", *TWO)
    firsts = {load_task(path, format="arc", seed=seed, n=1).pairs[0].foils[0]: seed for seed in range(20)}
    assert set(firsts) == {" A", " C", " D"}
    task = load_task(path, format="arc", seed=firsts[" C"], n=1)
    code = encode(task, Merging("bee\nD"), 1 << 20)  # only at C does the answer's text stand before D
    assert (code.regenerated, code.pairs[0].clean) == (1, task.pairs[0].clean)
    assert code.pairs[0].foils[0] in (" A", " D") and len(code.clean[0]) == len(code.corrupt[0])


def test_a_question_that_fits_with_no_letter_is_replaced_by_one_of_the_others(tmp_path):
    path = write(tmp_path / "a.jsonl", *TWO)
    code = encode(load_task(path, format="arc", n=1), Merging("B.bee"), 1 << 20)
    assert (code.regenerated, read(code.pairs[0].clean)[0]) == (1, ITEM["question"])
    with pytest.raises(TaskError, match="1 of 2 pairs could not be replaced"):
        encode(load_task(path, format="arc"), Merging("B.bee"), 1 << 20)


def test_further_pairs_are_all_other_letters_of_all_questions(tmp_path):
    path = write(tmp_path / "a.jsonl", *TWO)
    for n in (1, 2):
        task = load_task(path, format="arc", n=n)
        every = [(p.clean, p.foils[0]) for p in (*task.pairs, *task.more())]
        assert len(every) == len(set(every)) == 3 + 2


def test_choices_in_the_answers_own_words_are_passed_over_and_questions_without_another_left_out(tmp_path):
    path = write(tmp_path / "a.jsonl", hub_item(["tin", "tin", "oak"], 0), hub_item(["tin", "tin"], 0), ITEM)
    task = load_task(path, format="arc")
    assert (len(task), task.dropped) == (2, 1)
    assert read(task.pairs[0].corrupt)[1]["C"] == "tin" and task.pairs[0].foils[0] == " C"
    with pytest.raises(TaskError, match="n=3 is more than the 2 pairs in it"):
        load_task(path, format="arc", n=3)
    alone = write(tmp_path / "b.jsonl", hub_item(["tin", "tin"], 0))
    with pytest.raises(TaskError, match="none of 1 records is usable"):
        load_task(alone, format="arc")


def test_a_question_in_the_same_words_is_one_group(tmp_path):
    path = write(tmp_path / "a.jsonl", hub_item(["a", "b"], 0), hub_item(["c", "d"], 0), ITEM)
    assert len(set(encoded(load_task(path, format="arc")).groups)) == 2


@settings(deadline=None)
@given(st.lists(st.text("abc ,'\n", min_size=1).filter(str.strip), min_size=2, max_size=6, unique_by=str.strip), st.data())
def test_every_wrong_letter_is_offered_once_whatever_the_texts(texts, data):
    right = data.draw(st.integers(0, len(texts) - 1))
    found = offers(hub_item(texts, right), "w", seed=data.draw(st.integers()))
    assert sorted(p.foils[0] for p in found) == sorted(f" {chr(65 + i)}" for i in range(len(texts)) if i != right)
    assert all(sorted(p.clean) == sorted(p.corrupt) and p.clean != p.corrupt for p in found)


def test_seed_moves_answers_and_nothing_else():
    first, second = load_task(HUB, format="arc", seed=0), load_task(HUB, format="arc", seed=1)
    assert [p.clean for p in first] == [p.clean for p in second] and [p.corrupt for p in first] != [p.corrupt for p in second]
    assert first.pairs == load_task(HUB, format="arc").pairs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answerKey": "E"}, r":1: answerKey is 'E', which is not a label of the choices \(A, B, C\)"),
        ({"answerKey": None}, "answerKey is 'None'"),
        ({"choices": {"text": ["a"], "label": ["A"]}, "answerKey": "A"}, ":1: 1 choices; a question needs 2 to 10"),
        ({"choices": {"text": ["a", "b"], "label": ["A", "A"]}, "answerKey": "A"}, "two choices have the same label"),
        ({"choices": {"text": ["a", " "], "label": ["A", "B"]}}, "each choice needs a label and a non-empty text"),
        ({"choices": {"text": ["a", "b"], "label": ["A"]}}, "each choice needs a label"),
        ({"choices": ["a", "b"]}, r"choices must be \[\{"),
        ({"question": ""}, "the question must be a non-empty text"),
        ({"question": {"stem": "s"}}, r"choices must be \[\{"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, change, message):
    with pytest.raises(TaskError, match=message):
        load_task(write(tmp_path / "a.jsonl", ITEM | change), format="arc")


def test_an_ordinary_pair_is_no_arc_item_and_the_other_way_round(tmp_path):
    path = write(tmp_path / "a.jsonl", {"clean": "a", "corrupt": "b", "answer": "x", "foil": "y"})
    with pytest.raises(TaskError, match=":1: an ARC item is an object with question, choices and answerKey"):
        load_task(path, format="arc")
    with pytest.raises(TaskError, match="unknown field 'id'"):
        load_task(HUB)
    with pytest.raises(OptionError, match="counterfactual needs format: mib, but the format is arc"):
        load_task(HUB, format="arc", counterfactual="symbol")


# the built-ins, through a stand-in for the package


@pytest.fixture
def datasets(monkeypatch):
    asked = []

    def load_dataset(path, name, split):
        asked.append((path, name, split))
        if split == "train":
            raise ConnectionError("offline")
        return lines(HUB)

    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return asked


def test_the_built_ins_read_the_two_sets_from_the_hub(datasets):
    easy, hard = load_task("arc_easy", n=8), load_task("arc_challenge", n=8, split="validation")
    assert datasets == [("allenai/ai2_arc", "ARC-Easy", "test"), ("allenai/ai2_arc", "ARC-Challenge", "validation")]
    assert {p.clean for p in easy} == {p.clean for p in load_task(HUB, format="arc")} == {p.clean for p in hard}
    assert (easy.name, easy.scoring, easy.stop) == ("arc_easy", "choices", None)


def test_the_seed_chooses_the_questions(datasets):
    chosen = {seed: [p.clean for p in load_task("arc_easy", n=3, seed=seed)] for seed in range(6)}
    assert len({tuple(found) for found in chosen.values()}) > 3
    assert chosen[2] == [p.clean for p in load_task("arc_easy", n=3, seed=2)] == [p.clean for p in load_task("arc_easy", n=5, seed=2)][:3]
    task = load_task("arc_easy", n=3)
    assert len({p.clean for p in task.more()} - {p.clean for p in task}) == 5


def test_too_few_questions_and_missing_data_are_told(datasets):
    with pytest.raises(TaskError, match=r"allenai/ai2_arc ARC-Easy test: n=256 is more than the 8 pairs"):
        load_task("arc_easy")
    with pytest.raises(TaskError, match=r"not in the cache .* and cannot be fetched \(ConnectionError: offline\); a local file"):
        load_task("arc_easy", n=4, split="train")


def test_without_the_package_a_local_file_is_named_as_the_way_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(TaskError, match=r"pip install datasets, or .*\{file: ARC-Easy-Test.jsonl, format: arc\}"):
        load_task("arc_easy")


def test_reading_published_files_imports_neither_numpy_nor_torch_nor_transformers():
    code = (
        f"import sys; from pytest_circuits import load_task; load_task({str(HUB)!r}, format='arc'); "
        f"load_task({str(PUBLISHED / 'mib-arithmetic.jsonl')!r}, format='mib'); "
        f"load_task({str(PUBLISHED / 'eap-words.csv')!r}, format='eap'); "
        "assert not {'numpy', 'torch', 'transformers', 'datasets'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
