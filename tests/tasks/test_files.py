"""Tasks read from JSONL files and from Python callables: what they give, and the message for each mistake."""

from __future__ import annotations

import json
import re
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits import PromptPair, Task, TaskError
from pytest_circuits.core.sources import TaskSource
from pytest_circuits.errors import OptionError
from pytest_circuits.tasks.load import load_source, load_task, task_parameters

ROW = {"clean": "a b", "corrupt": "a c", "answer": "x", "foil": "y"}


@pytest.fixture
def write(tmp_path):
    def written(*lines, name="pairs.jsonl"):
        path = tmp_path / name
        texts = [json.dumps(line) if isinstance(line, dict) else line for line in lines]
        path.write_bytes(b"\n".join(text if isinstance(text, bytes) else text.encode() for text in texts))
        return path

    return written


def test_a_line_is_a_pair_with_its_place(write):
    path = write(ROW, "", {**ROW, "clean": "d", "group": "g", "corrupt_answer": "z"})
    first, second = load_task(path)
    assert PromptPair("a b", "a c", "x", ("y",), None, None, f"{path}:1") == first
    assert PromptPair("d", "a c", "x", ("y",), "z", "g", f"{path}:3") == second


def test_choices_may_include_the_answer_and_foils_may_be_many(write):
    variants = ({"choices": ["y", "x", "z"]}, {"choices": ["y", "z"]}, {"foils": ["y", "z"]}, {})
    rows = [{"clean": "a", "corrupt": "b", "answer": "x", **more} for more in variants]
    assert [p.foils for p in load_task(write(*rows))] == [("y", "z")] * 3 + [()]


def test_the_field_names_of_published_agreement_data_are_understood(write):
    row = {"clean_prefix": "The boy", "patch_prefix": "The boys", "clean_answer": " is", "patch_answer": " are", "case": "sing"}
    (pair,) = load_task(write(row))
    assert (pair.clean, pair.corrupt, pair.answer, pair.foils, pair.corrupt_answer) == ("The boy", "The boys", " is", (" are",), " are")


def test_token_ids_are_read_as_tuples(write):
    (pair,) = load_task(write({"clean": [1, 2], "corrupt": [1, 3], "answer": [4], "foil": [5, 6]}))
    assert (pair.clean, pair.corrupt, pair.answer, pair.foils) == ((1, 2), (1, 3), (4,), ((5, 6),))


def test_parameters_choose_the_first_pairs_and_the_scoring(write):
    path = write(*({**ROW, "clean": f"c{i}"} for i in range(5)))
    task = load_task(str(path), n=2, scoring="argmax", stop="digits")
    assert ([p.clean for p in task], task.scoring, task.stop, task.more) == (["c0", "c1"], "argmax", "digits", None)
    assert load_source(TaskSource.make("mine", "file", str(path), {"n": 1})).name == "mine"


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_text_survives_the_file(tmp_path_factory, clean, corrupt):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    row = {"clean": clean, "corrupt": corrupt + clean, "answer": "a", "foil": "b"}
    path.write_text(json.dumps(row, ensure_ascii=True) + "\n", encoding="utf-8")
    (pair,) = load_task(path)
    assert (clean, corrupt + clean) == (pair.clean, pair.corrupt)


def test_line_separators_inside_a_text_do_not_end_the_line(write):
    row = {**ROW, "clean": "a\u2028b\x85c"}
    (pair,) = load_task(write(json.dumps(row, ensure_ascii=False)))
    assert row["clean"] == pair.clean


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], ":1: not a JSON object"),
        ([ROW, '{"clean": "a",}'], ":2: not a JSON object"),
        ([ROW, "[1]"], ":2: a pair is an object"),
        (["[" * 100_000], ":1: not a JSON object"),
        (['{"clean": "a", "clean": "b"}'], ":1: the field 'clean' appears twice"),
        ([{**ROW, "foils": ["z"]}], ":1: foil and foils exclude each other"),
        ([{**ROW, "clean_prefix": "q"}], ":1: 'clean' appears twice, also as 'clean_prefix'"),
        ([{**ROW, "corupt": "q"}], ":1: unknown field 'corupt'; did you mean 'corrupt'"),
        ([{"clean": "a", "foil": "b"}], ":1: corrupt and answer missing"),
        ([{**ROW, "answer": 3}], ":1: answer must be a non-empty text or list of token ids"),
        ([{**ROW, "answer": ""}], ":1: answer must be a non-empty text"),
        ([{**ROW, "clean": [True]}], ":1: clean must be a non-empty text"),
        ([{**ROW, "clean": [-1]}], ":1: clean must be a non-empty text"),
        ([{**ROW, "clean": [1, 2]}], ":1: text and token ids are mixed"),
        ([{"clean": "a", "corrupt": "b", "answer": "x", "foils": "yz"}], ":1: foils must be a list"),
        ([{"clean": "a", "corrupt": "b", "answer": "x", "foils": [1, 2]}], ":1: each of foils must be a non-empty text"),
        ([{"clean": "a", "corrupt": "b", "answer": "x", "choices": ["x"]}], ":1: choices has no option besides the answer"),
        ([{**ROW, "group": [1]}], ":1: group must be text"),
        ([ROW, json.dumps(ROW).replace("a b", "é").encode("latin-1")], ":2: not UTF-8 (byte 0xe9)"),
        ([""], "no prompt pairs"),
        ([ROW, {**ROW, "corrupt": "a b"}, {**ROW, "foil": "x"}], "clean equals corrupt in 1 ("),
        ([ROW, {**ROW, "foil": "x"}, {**ROW, "foil": "x"}], "the answer equals a foil in 2 ("),
    ],
)
def test_a_mistake_is_one_message_with_its_line(write, lines, message):
    with pytest.raises(TaskError, match=re.escape(message)) as raised:
        load_task(write(*lines))
    assert "pairs.jsonl" in str(raised.value) and "\n" not in str(raised.value)


def test_a_degenerate_pair_is_quoted_with_its_line(write):
    with pytest.raises(TaskError, match=r"in 1 \(.*pairs.jsonl:2\) of 2 pairs"):
        load_task(write(ROW, {**ROW, "corrupt": "a b"}))


def test_a_missing_file_and_too_few_pairs_say_so(write, tmp_path):
    with pytest.raises(TaskError, match=r"none\.jsonl: cannot read the task file: No such file"):
        load_task(tmp_path / "none.jsonl")
    with pytest.raises(TaskError, match="n=3 is more than the 1 pairs"):
        load_task(write(ROW), n=3)


def test_a_file_has_no_seed(write):
    with pytest.raises(OptionError, match="seed needs format: arc"):
        load_task(write(ROW), seed=1)
    assert {"n", "scoring", "stop", "format", "seed", "counterfactual", "tokenizer"} == set(task_parameters("file", "x.jsonl").model_fields)


# callables


@pytest.fixture
def module(monkeypatch):
    made = types.ModuleType("my_tasks")
    monkeypatch.setitem(sys.modules, "my_tasks", made)
    return made


def test_a_callable_may_yield_pairs_or_mappings_or_return_a_task(module):
    module.pairs = lambda n=1: (PromptPair(f"a{i}", "b", "x", ("y",)) for i in range(n))
    module.rows = lambda: [ROW]
    module.task = lambda: Task("own", (PromptPair("a", "b", "x"),), scoring="argmax")
    assert [p.source for p in load_task("my_tasks:pairs", n=2)] == ["my_tasks:pairs[0]", "my_tasks:pairs[1]"]
    assert load_task("my_tasks:rows").pairs[0].clean == "a b"
    assert load_source(TaskSource.make("t", "loader", "my_tasks:task")).scoring == "argmax"
    assert load_source(TaskSource.make("t", "loader", "my_tasks:task")).name == "t"
    assert task_parameters("loader", "my_tasks:task") is None


def late():
    yield ROW
    raise KeyError("later")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 1 / 0, "the task loader my_tasks:f raised ZeroDivisionError"),
        (late, "raised KeyError"),
        (lambda: 3, "my_tasks:f returned int"),
        (lambda: "text", "my_tasks:f returned str"),
        (lambda: ROW, "my_tasks:f returned dict"),
        (lambda: [], "my_tasks:f returned no prompt pairs"),
        (lambda: [ROW, 3], "my_tasks:f[1]: a pair is an object"),
        (lambda: [{**ROW, "foil": "x"}], "the answer equals a foil in 1 (my_tasks:f[0])"),
        (lambda: [PromptPair("a", "a", "x", ("y",))], "clean equals corrupt in 1 (my_tasks:f[0])"),
        (lambda needed: [], "raised TypeError"),
    ],
)
def test_a_mistake_in_a_callable_names_the_callable(module, function, message):
    module.f = function
    with pytest.raises(TaskError, match=re.escape(message)):
        load_task("my_tasks:f")


def test_a_reference_that_leads_nowhere_says_which_half(module):
    with pytest.raises(TaskError, match="'my_tasks' has no 'g'"):
        load_task("my_tasks:g")
    with pytest.raises(TaskError, match="cannot import 'no_such_module'"):
        load_task("no_such_module:f")
