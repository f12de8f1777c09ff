"""Prompts of a sentence with slots, and pairs that were drawn one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.errors import OptionError, TaskError
from pytest_circuits.tasks.base import PromptPair
from pytest_circuits.tasks.grammar.listed_pairs import as_dict, drawn_source
from pytest_circuits.tasks.load import load_source, load_task
from pytest_circuits.tasks.records import pair_from

NAMES = ["Ann", "Bob", "Cid", "Dot"]
GIVING = {
    "template": "{A} and {B} met in {PLACE}. {B} gave it to",
    "corrupt": "{A} and {B} met in {PLACE}. {A} gave it to",
    "slots": {"A": NAMES, "B": NAMES, "PLACE": ["Rome", "Oslo"]},
    "answer": " {A}",
    "foil": " {B}",
}
CAPITALS = {
    "template": ["The capital of {C} is", "{C} is ruled from"],
    "corrupt": ["The capital of {D} is", "{D} is ruled from"],
    "slots": {"C": ["France", "Peru"], "D": ["France", "Peru"]},
    "facts": {"capital": {"France": "Paris", "Peru": "Lima"}},
    "answer": " {C.capital}",
    "foil": [" {D.capital}", " {C}"],
}


def test_every_filling_is_made_and_no_other():
    task = load_task("template", n=24, **GIVING)
    expected = {
        PromptPair(
            f"{a} and {b} met in {place}. {b} gave it to", f"{a} and {b} met in {place}. {a} gave it to", f" {a}", (f" {b}",),
            group="+".join(sorted((f" {a}", f" {b}"))),
        )
        for a, b in itertools.permutations(NAMES, 2) for place in ("Rome", "Oslo")
    }  # fmt: skip
    assert set(task.pairs) == expected and len(task) == len(expected)
    with pytest.raises(TaskError, match="only 24 different prompts"):
        load_task("template", n=25, **GIVING)


def test_facts_follow_the_word_in_their_slot_and_templates_go_with_their_corruption():
    task = load_task("template", n=4, **CAPITALS)
    assert {(p.clean, p.corrupt, p.answer, p.foils) for p in task} == {
        ("The capital of France is", "The capital of Peru is", " Paris", (" Lima", " France")),
        ("The capital of Peru is", "The capital of France is", " Lima", (" Paris", " Peru")),
        ("France is ruled from", "Peru is ruled from", " Paris", (" Lima", " France")),
        ("Peru is ruled from", "France is ruled from", " Lima", (" Paris", " Peru")),
    }


def test_slots_with_the_same_words_never_take_the_same_one():
    slots = {"A": NAMES, "B": NAMES, "C": ["Ann", "Bob"]}
    task = load_task("template", n=24, template="{A} saw {B} and {C}", corrupt="nobody saw {C}", slots=slots, answer="x", foil="y")
    assert {p.clean for p in task} == {f"{a} saw {b} and {c}" for a, b in itertools.permutations(NAMES, 2) for c in ("Ann", "Bob")}


def test_doubled_braces_are_braces():
    [pair] = load_task("template", n=1, template="{{{A}}}", corrupt="{{}}", slots={"A": ["x"]}, answer="y", foil="z")
    assert (pair.clean, pair.corrupt) == ("{x}", "{}")


def test_fillings_whose_corruption_changes_nothing_are_passed_over():
    with pytest.raises(TaskError, match="only 0 of 1 different prompts exist"):
        load_task("template", n=1, template="{A}", corrupt="{A}", slots={"A": ["x"]}, answer="y", foil="z")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": " {Z}"}, r"answer ' \{Z\}' has the slot 'Z', which has no words; .*allowed: A, B, PLACE"),
        ({"slots": {**GIVING["slots"], "E": ["x"]}}, "slot 'E' is not used"),
        ({"slots": {**GIVING["slots"], "A": ["Ann"], "B": ["Ann"]}}, "slots A, B share a list of 1 words"),
        ({"slots": {**GIVING["slots"], "PLACE": ["Rome", "Rome"]}}, "slot 'PLACE' has the word 'Rome' twice"),
        ({"template": "no slot"}, "has no slot"),
        ({"template": "{A"}, "write braces that are not a slot twice"),
        ({"template": "{A!r}"}, "a slot is a name in braces"),
        ({"corrupt": ["{A}", "{B}"]}, "1 templates need as many corrupt sentences, got 2"),
        ({"answer": " {A.capital}"}, "uses the unknown fact 'capital'; nothing is allowed here"),
        ({"answer": " {A.age}", "facts": {"age": {"Ann": "9"}}}, "the fact 'age' is missing for 'Bob' of slot 'A'"),
    ],
)
def test_mistakes_are_told_with_the_text_that_has_them(change, message):
    with pytest.raises(OptionError, match=message):
        load_task("template", **{**GIVING, **change})


def test_a_template_needs_its_words():
    with pytest.raises(OptionError, match="task 'template' needs the parameter 'template'"):
        load_task("template")


PAIRS = st.builds(
    PromptPair,
    *[st.text(min_size=1, max_size=5)] * 3,
    st.tuples(st.text(min_size=1, max_size=3)),
    st.none() | st.text(min_size=1),
    st.none() | st.text(min_size=1),
) | st.builds(
    PromptPair, *[st.tuples(st.integers(0, 99), st.integers(0, 99))] * 3, st.lists(st.tuples(st.integers(0, 9)), max_size=2).map(tuple)
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(PAIRS, min_size=1, max_size=4), st.sampled_from(["choices", "argmax"]), st.sampled_from([None, "digits"]))
def test_drawn_pairs_come_back_from_their_source_and_from_their_fields(pairs, scoring, stop):
    task = load_source(drawn_source("mine", pairs, scoring, stop))
    assert (task.name, task.pairs, task.scoring, task.stop, task.unfit) == ("mine", tuple(pairs), scoring, stop, "drop")
    assert drawn_source("mine", pairs, scoring, stop) == drawn_source("mine", list(pairs), scoring, stop)
    for pair in pairs:
        again = pair_from(as_dict(pair), "here")
        fields = ("clean", "corrupt", "answer", "group")
        assert [getattr(again, f) for f in fields] == [getattr(pair, f) for f in fields]
        assert again.foils == tuple(dict.fromkeys(pair.foils))
